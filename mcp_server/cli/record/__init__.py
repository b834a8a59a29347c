"""What a person types to read the record of what happened."""
