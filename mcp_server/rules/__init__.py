"""What may happen; pure."""
