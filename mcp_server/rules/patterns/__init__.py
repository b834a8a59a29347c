"""What a rule is matched against, taken apart: shell lines, and names and paths with wildcards."""
