"""How do things stand here? What holds, what waits for the person, and what was left to be read."""
