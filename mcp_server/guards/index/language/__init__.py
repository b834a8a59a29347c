"""What does a source file define? Read line by line in a dozen languages, by tables and without a parser.

A parser of each language would be a dozen dependencies in C that hostile files are fed to, inside the server's process
and holding its lock; Python's own one gives up at the first fault of a half-written file and can exhaust the stack.
Looking at lines from which comments and strings were taken finds every definition that stands where people put them,
in time that grows with the length of the file alone. For Python it is compared with what `ast` finds.
"""

from mcp_server.guards.index.language.scanning import defined
from mcp_server.guards.index.language.tongues import named

__all__ = ["defined", "named"]
