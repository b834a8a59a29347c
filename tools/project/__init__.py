"""The project as a whole: its index of words and symbols, and what is remembered about it."""

from tools.project.memory import MEMORY_SEARCH
from tools.project.reading import INDEX_READ
from tools.project.searching import INDEX_SEARCH
from tools.project.symbols import INDEX_SYMBOLS

__all__ = ["PROJECT"]

PROJECT = (INDEX_SEARCH, INDEX_SYMBOLS, INDEX_READ, MEMORY_SEARCH)
