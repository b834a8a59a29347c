"""How does a run go on, stop for the person, and end? From its first call to the report about it."""
