"""What may be asked of a language server? The commands, and the arguments of a call."""

from typing import Annotated, NotRequired, TypedDict

from mcp_server.model.schema import Is
from tools.lsp.servers import BY_NAME

COMMANDS = (
    *("goto_definition", "goto_references", "hover_symbol", "file_diagnostics"),
    *("document_symbols", "workspace_symbols", "rename_preview"),
)
PAGE = 50
MOST_PAGE = 500


class LspArguments(TypedDict):
    command: Annotated[str, "What to find out", Is(enum=COMMANDS)]
    path: Annotated[
        str,
        "The file, absolute or relative to the workspace; for workspace_symbols any file of the language",
        Is(shortest=1, longest=4096),
    ]
    symbol: NotRequired[
        Annotated[str, "The name it is about, as the line has it; or `Class/method` without a line", Is(longest=500)]
    ]
    line: NotRequired[Annotated[int, "The line the name is on, counted from 1", Is(at_least=1, at_most=10_000_000)]]
    new_name: NotRequired[Annotated[str, "rename_preview: what it would be called", Is(shortest=1, longest=500)]]
    limit: NotRequired[Annotated[int, "At most so many places", Is(default=PAGE, at_least=1, at_most=MOST_PAGE)]]
    offset: NotRequired[Annotated[int, "Skip so many places", Is(default=0, at_least=0)]]
    server: NotRequired[
        Annotated[str, "Ask this language server instead of the best one installed", Is(enum=tuple(BY_NAME))]
    ]
