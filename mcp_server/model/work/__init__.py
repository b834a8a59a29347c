"""What is there to do, and how far is it?"""
