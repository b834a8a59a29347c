"""What a person types; one file per noun."""
