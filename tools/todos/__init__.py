"""Todo*: what there is to do, how far it is, and how anybody can tell."""

from tools.todos.claiming import CLAIM, VERIFY
from tools.todos.listing import CREATE, READ, START

__all__ = ["TODOS"]

TODOS = (CREATE, READ, START, CLAIM, VERIFY)
