"""The order in which a fault is mended, for runs that choose it."""
