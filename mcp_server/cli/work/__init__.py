"""What a person types about the work itself."""
