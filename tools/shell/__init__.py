"""bash and the four tools around it: commands, in the foreground and behind it."""

from tools.shell.bash import BASH
from tools.shell.watching import KILL, OUTPUT, WAIT, WRITE

__all__ = ["SHELL"]

SHELL = (BASH, OUTPUT, WRITE, KILL, WAIT)
