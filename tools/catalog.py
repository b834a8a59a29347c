"""Which tools are there? Every one of them, written out, in the order of the documentation.

A new tool is a new name in this tuple, a line in the file of at least one mode under `menus/`, and a row in the policy
table. Nothing registers itself.
"""

from mcp_server.model.tool import Tool
from tools.data.changing import CREATE_DIRECTORY, DELETE, MOVE, WRITE_FILE
from tools.data.looking import FILE_INFO, LIST_DIRECTORY, READ_FILE
from tools.files.edit import EDIT
from tools.files.read import READ
from tools.files.write import WRITE
from tools.meta import COMPLETE, MENU_CALL, MENU_ENTER, MENU_EXIT, MENU_LIST, MENU_READ, MESSAGE_USER, THINK
from tools.project.memory import MEMORY_SEARCH
from tools.project.reading import INDEX_READ
from tools.project.searching import INDEX_SEARCH
from tools.project.symbols import INDEX_SYMBOLS
from tools.search import GLOB, GREP

CATALOG: tuple[Tool, ...] = (
    # Always there.
    MENU_LIST,
    MENU_ENTER,
    MENU_EXIT,
    COMPLETE,
    THINK,
    MESSAGE_USER,
    # The carriers, for clients whose list does not change.
    MENU_READ,
    MENU_CALL,
    # Source files.
    READ,
    EDIT,
    WRITE,
    GREP,
    GLOB,
    # Other files and folders.
    READ_FILE,
    WRITE_FILE,
    LIST_DIRECTORY,
    CREATE_DIRECTORY,
    DELETE,
    MOVE,
    FILE_INFO,
    # The project as a whole.
    INDEX_SEARCH,
    INDEX_SYMBOLS,
    INDEX_READ,
    MEMORY_SEARCH,
)
