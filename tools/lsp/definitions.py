"""What may be asked of a language server? `lsp_tool`: definitions, uses, types, problems, names."""

from typing import Annotated, NotRequired, TypedDict

from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.tools import ACTING, REVIEWING, WARMUP, Confirmation, Effect, LazyFunction, RuleSubject, Tool

COMMANDS = (
    *("goto_definition", "goto_references", "hover_symbol", "file_diagnostics"),
    *("document_symbols", "workspace_symbols", "rename_preview"),
)

SERVERS = (
    *("ty", "pyright-langserver", "jedi-language-server", "gopls", "rust-analyzer", "clangd"),
    "typescript-language-server",
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
        Annotated[
            str,
            "The name to look up, as written on the line; or `Class/method` without a line",
            Is(shortest=1, longest=500),
        ]
    ]
    line: NotRequired[Annotated[int, "The line the name is on, counted from 1", Is(at_least=1, at_most=10_000_000)]]
    new_name: NotRequired[Annotated[str, "rename_preview: the new name", Is(shortest=1, longest=500)]]
    limit: NotRequired[Annotated[int, "Maximum number of locations", Is(default=PAGE, at_least=1, at_most=MOST_PAGE)]]
    offset: NotRequired[Annotated[int, "How many locations to skip", Is(default=0, at_least=0)]]
    server: NotRequired[Annotated[str, "Ask this language server instead of the best one installed", Is(enum=SERVERS)]]


LSP = Tool(
    name="lsp_tool",
    title="Ask the language server",
    description=(
        "Ask a language server about code: where something is defined (goto_definition), every use of it "
        "(goto_references), its type and documentation (hover_symbol), the problems of a file (file_diagnostics), the "
        "names in a file (document_symbols) or in the project (workspace_symbols, `symbol` is the query), and what a "
        "rename would change (rename_preview, which writes nothing). Pass `symbol` and the `line` it is on, from 1; "
        "menugate finds the column. Without a line, it takes the symbol's declaration. Locations come as "
        "`path:line:col`, tab, the line. Python, Go, Rust, C, C++, TypeScript and JavaScript, if their servers are "
        'installed. Example: {"command": "goto_references", "path": "src/a.py", "symbol": "parse", "line": 12}'
    ),
    arguments=build_schema(LspArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    stages=WARMUP | ACTING | REVIEWING,
    run=LazyFunction("tools.lsp.lsp:ask_language_server"),
    demand=LazyFunction("tools.lsp.servers:demand_asking"),
    confirmation=Confirmation.BY_ARGUMENTS,
    subject=("path", RuleSubject.PATH),
    timeout=90.0,
)


TOOLS = (LSP,)
