"""The project as a whole: its index of words and symbols, and what is remembered about it."""

from tools.project.offers import INDEX_READ, INDEX_SEARCH, INDEX_SYMBOLS, MEMORY_SEARCH

__all__ = ["PROJECT"]

PROJECT = (INDEX_SEARCH, INDEX_SYMBOLS, INDEX_READ, MEMORY_SEARCH)
