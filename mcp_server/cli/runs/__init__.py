"""What does the person say about a run? Yes or no to a call, wait, go on, stop; and what came of it."""
