"""What does menugate itself offer to be read and said, beside its tools?"""
