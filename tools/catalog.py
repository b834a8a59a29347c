"""Which tools are there? Every one of them, written out, in the order of the documentation.

A new tool is a new name in this tuple, a line in the file of at least one mode under `menus/`, and a row in the policy
table. Nothing registers itself.

A pack's `definitions` say what it offers: each tool as it is listed, with its arguments, and what a call demands. The
modules beside it do the work; they are named there by `LazyFunction`, and loaded with the first call.
"""

from mcp_server.model.tools import Tool
from tools.files.definitions import EDIT, READ, WRITE
from tools.fs.definitions import CREATE_DIRECTORY, DELETE, FILE_INFO, LIST_DIRECTORY, MOVE, READ_FILE, WRITE_FILE
from tools.git.definitions import (
    ADD,
    BRANCH_LIST,
    CHECKOUT,
    COMMIT,
    CREATE_BRANCH,
    DIFF,
    DIFF_STAGED,
    DIFF_UNSTAGED,
    LOG,
    RESET,
    SHOW,
    STATUS,
)
from tools.lsp.definitions import LSP
from tools.meta.definitions import COMPLETE, MENU_CALL, MENU_ENTER, MENU_EXIT, MENU_LIST, MENU_READ, MESSAGE_USER, THINK
from tools.phases.definitions import ADVANCE_PHASE, ANALYZE_FAILURE, PHASE_STATUS, RETURN_TO_FIX
from tools.project.definitions import INDEX_READ, INDEX_SEARCH, INDEX_SYMBOLS, MEMORY_SEARCH
from tools.search.definitions import GLOB, GREP
from tools.shell.definitions import BASH, KILL, OUTPUT, READ_LINE, WAIT
from tools.shell.definitions import WRITE as WRITE_TO_SHELL
from tools.todos.definitions import TODO_CLAIM, TODO_CREATE, TODO_READ, TODO_START, TODO_VERIFY

__all__ = ["CATALOG", "READ_LINE"]

CATALOG: tuple[Tool, ...] = (
    # In every mode.
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
    # Commands.
    BASH,
    OUTPUT,
    WRITE_TO_SHELL,
    KILL,
    WAIT,
    # Searching.
    GREP,
    GLOB,
    LSP,
    # Version control.
    STATUS,
    DIFF_UNSTAGED,
    DIFF_STAGED,
    DIFF,
    COMMIT,
    ADD,
    RESET,
    LOG,
    CREATE_BRANCH,
    CHECKOUT,
    SHOW,
    BRANCH_LIST,
    # What there is to do.
    TODO_CREATE,
    TODO_READ,
    TODO_START,
    TODO_CLAIM,
    TODO_VERIFY,
    # The order in which a fault is mended.
    ADVANCE_PHASE,
    RETURN_TO_FIX,
    ANALYZE_FAILURE,
    PHASE_STATUS,
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
