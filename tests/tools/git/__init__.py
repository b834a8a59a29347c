"""The git tools, over real repositories."""
