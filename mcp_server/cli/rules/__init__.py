"""What a person types about rules: which there are, whether they prove themselves, and whose word counts."""
