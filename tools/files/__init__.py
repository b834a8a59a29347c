"""Read, Edit and Write: the files of a programmer."""

from tools.files.edit import EDIT
from tools.files.read import READ
from tools.files.write import WRITE

__all__ = ["FILES"]

FILES = (READ, EDIT, WRITE)
