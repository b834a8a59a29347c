"""grep and glob: where something is."""

from tools.search.offers import GLOB, GREP

__all__ = ["SEARCH"]

SEARCH = (GREP, GLOB)
