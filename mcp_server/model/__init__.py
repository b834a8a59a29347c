"""What things are: frozen values that every other room speaks in."""
