"""What is kept of a run while it goes on, so that its beginning can be forgotten?"""
