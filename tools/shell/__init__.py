"""bash and the four tools around it: commands, in the foreground and behind it."""

from tools.shell.offers import BASH, KILL, OUTPUT, WAIT, WRITE

__all__ = ["SHELL"]

SHELL = (BASH, OUTPUT, WRITE, KILL, WAIT)
