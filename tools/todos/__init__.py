"""Todo*: what there is to do, how far it is, and how anybody can tell."""

from tools.todos.offers import TODO_CLAIM, TODO_CREATE, TODO_READ, TODO_START, TODO_VERIFY

__all__ = ["TODOS"]

TODOS = (TODO_CREATE, TODO_READ, TODO_START, TODO_CLAIM, TODO_VERIFY)
