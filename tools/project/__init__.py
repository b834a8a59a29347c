"""The project as a whole: its index of words and symbols, and what is remembered about it."""
