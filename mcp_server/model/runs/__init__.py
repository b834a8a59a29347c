"""What does a run leave behind? The yeses it was given, and what was found when it was over."""
