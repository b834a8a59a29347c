"""The only doors to the machine: files, search, redaction."""
