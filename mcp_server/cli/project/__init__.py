"""What a person types about the project itself: its memory, and the index of its files."""
