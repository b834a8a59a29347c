"""Read, Edit and Write: the files of a programmer."""

from tools.files.offers import EDIT, READ, WRITE

__all__ = ["FILES"]

FILES = (READ, EDIT, WRITE)
