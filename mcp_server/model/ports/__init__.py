"""What may a tool reach? The ports that the rooms above implement, and that a tool finds in its context."""
