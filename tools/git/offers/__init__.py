"""What do the git tools offer?"""
