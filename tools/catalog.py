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
from tools.git.branches import BRANCH_LIST, CHECKOUT, CREATE_BRANCH
from tools.git.committing import COMMIT
from tools.git.diffs import DIFF, DIFF_STAGED, DIFF_UNSTAGED
from tools.git.history import LOG, SHOW
from tools.git.staging import ADD, RESET
from tools.git.status import STATUS
from tools.lsp.tool import LSP
from tools.meta import COMPLETE, MENU_CALL, MENU_ENTER, MENU_EXIT, MENU_LIST, MENU_READ, MESSAGE_USER, THINK
from tools.phases.failing import ANALYZE_FAILURE
from tools.phases.walking import ADVANCE_PHASE, PHASE_STATUS, RETURN_TO_FIX
from tools.project.memory import MEMORY_SEARCH
from tools.project.reading import INDEX_READ
from tools.project.searching import INDEX_SEARCH
from tools.project.symbols import INDEX_SYMBOLS
from tools.search import GLOB, GREP
from tools.shell.bash import BASH
from tools.shell.watching import KILL, OUTPUT, WAIT
from tools.shell.watching import WRITE as WRITE_TO_SHELL
from tools.todos.claiming import TODO_CLAIM, TODO_VERIFY
from tools.todos.listing import TODO_CREATE, TODO_READ, TODO_START

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
