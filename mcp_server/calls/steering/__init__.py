"""How does the person change what holds? The doors, and the commands that hosts show with a slash."""
