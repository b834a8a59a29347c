"""Files on disk become model values, or a refusal that names every fault."""
