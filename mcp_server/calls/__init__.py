"""How a call runs: the pipeline on one screen, sessions, what the desk answers."""
