"""fs_*: files and folders as data."""

from tools.data.changing import CREATE_DIRECTORY, DELETE, MOVE, WRITE_FILE
from tools.data.looking import FILE_INFO, LIST_DIRECTORY, READ_FILE

__all__ = ["DATA"]

DATA = (READ_FILE, WRITE_FILE, LIST_DIRECTORY, CREATE_DIRECTORY, DELETE, MOVE, FILE_INFO)
