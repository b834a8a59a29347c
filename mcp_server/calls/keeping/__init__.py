"""What is kept for a session between its calls."""
