"""Which tools exist? All of them, in the order of the documentation.

Add a new tool to the `TOOLS` of its pack, to the file of at least one mode under `menus/`, and to the policy table.
Nothing registers itself.

A pack's `definitions` declare each tool as it is listed, its arguments, and what a call demands. The modules beside it
do the work; `definitions` names them by `LazyFunction`, and they are imported on the first call."""

from mcp_server.model.tools import Tool
from tools.files import definitions as files
from tools.fs import definitions as fs
from tools.git import definitions as git
from tools.integrations import definitions as integrations
from tools.lsp import definitions as lsp
from tools.meta import definitions as meta
from tools.phases import definitions as phases
from tools.project import definitions as project
from tools.search import definitions as search
from tools.shell import definitions as shell
from tools.todos import definitions as todos

__all__ = ["CATALOG", "READ_LINE"]

READ_LINE = shell.READ_LINE
CATALOG: tuple[Tool, ...] = (
    # In every mode; the carriers are for clients whose list does not change.
    *meta.TOOLS,
    # Source files, and commands.
    *files.TOOLS,
    *shell.TOOLS,
    # Searching.
    *search.TOOLS,
    *lsp.TOOLS,
    # Version control.
    *git.TOOLS,
    # Todos, and the phases of fixing a bug.
    *todos.TOOLS,
    *phases.TOOLS,
    # Other files and folders.
    *fs.TOOLS,
    # The project as a whole.
    *project.TOOLS,
    # Tools of every mode and server.
    *integrations.TOOLS,
)
