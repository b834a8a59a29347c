"""grep and glob: where something is."""
