"""What does the language server know about this? `lsp_tool`: definitions, uses, types, problems, names.

What speaks with a server is loaded with the first question to one: most sessions never ask, and every start would wait.
"""

from typing import TYPE_CHECKING

from mcp_server.model.ending import Code, Ending, Problem
from mcp_server.model.ports.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.schema import schema_of
from mcp_server.model.tool import ACTING, REVIEWING, WARMUP, Arguments, Demand, Effect, Hints, Subject, Tool
from tools.files import consent
from tools.files.lines import visible
from tools.lsp.asked import LspArguments
from tools.lsp.servers import BY_NAME, LANGUAGES, Language, Server, language_of

if TYPE_CHECKING:
    from tools.lsp.asking import Choice


async def lsp(ctx: Context, args: LspArguments) -> Ending:
    language = language_of(args["path"])
    if language is None:
        known = ", ".join(f"{one.name} ({' '.join(one.suffixes)})" for one in LANGUAGES)
        return Problem(
            Code.INVALID_ARGUMENTS,
            f"`{visible(args['path'])}` is of no language that a server is known for: {known}.",
            "Look into it with `grep` and `Read`.",
        )
    if args["command"] == "rename_preview" and not args.get("new_name"):
        return Problem(Code.INVALID_ARGUMENTS, "rename_preview needs `new_name`.", "Call again with it.")
    from tools.lsp.asking import ask

    choice = chosen(ctx, language, args.get("server"))
    return choice if isinstance(choice, Problem) else await ask(ctx, choice, args)


def chosen(ctx: Context, language: Language, wanted: str | None) -> "Choice | Problem":
    """The best that is installed, of those that this call may start."""
    fitting = [server for server in language.servers if wanted in (None, server.name)]
    if not fitting:
        names = " or ".join(f"`{server.name}`" for server in language.servers)
        return Problem(
            Code.INVALID_ARGUMENTS, f"`{wanted}` is no server for {language.name}.", f"Leave it out, or name {names}."
        )
    from tools.lsp.asking import Choice

    there = [(server, found) for server in fitting if (found := ctx.processes.find(server.name))]
    trusted = ctx.demand.profile.covers(Profile.TRUSTED)
    for server, found in there:
        if server.inert or trusted:
            return Choice(server, found, language)
    if there:
        return forward(there[0][0], language)
    ways = "; ".join(f"`{server.name}` ({server.install})" for server in fitting)
    return Problem(
        Code.TOOL_FAILED,
        f"No language server for {language.name} is installed where menugate looks for programs.",
        f"Have the person install {ways}. Until then, look with `grep`.",
    )


def forward(server: Server, language: Language) -> Problem:
    """A server that may run what the project tells it to is only started by a call that was judged as such."""
    inert = " or ".join(f"`{one.name}` ({one.install})" for one in language.servers if one.inert)
    return Problem(
        Code.NOT_GRANTED,
        f"For {language.name} only `{server.name}` is installed, which may run code of the project it looks at and was "
        "not started.",
        f'Call again with "server": "{server.name}", which profile `trusted` allows; or have the person install '
        f"{inert}.",
    )


def demand(args: Arguments) -> Demand:
    """Reading, whatever is asked; but a server that may run what the project says is for a trusted project."""
    path, named = str(args.get("path", "")), BY_NAME.get(str(args.get("server")))
    language = language_of(path)
    could = (named,) if named else language.servers if language else ()
    inert = not could or any(server.inert for server in could)
    return Demand(Effect.READ_LOCAL, Profile.RESTRICTED if inert else Profile.TRUSTED, consent.to_read(path))


LSP = Tool(
    name="lsp_tool",
    title="Ask the language server",
    description=(
        "Ask a language server about code: where something is defined (goto_definition), every use of it "
        "(goto_references), its type and documentation (hover_symbol), the problems of a file (file_diagnostics), the "
        "names in a file (document_symbols) or in the project (workspace_symbols, `symbol` is the query), and what a "
        "rename would change (rename_preview, which writes nothing). Give `symbol` and the `line` it is on, from 1; "
        "the column is found for you; without a line it is looked for where it is declared. Places come as "
        "`path:line:col`, tab, the line. Python, Go, Rust, C, C++, TypeScript and JavaScript, where their servers are "
        'installed. Example: {"command": "goto_references", "path": "src/a.py", "symbol": "parse", "line": 12}'
    ),
    arguments=schema_of(LspArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
    stages=WARMUP | ACTING | REVIEWING,
    run=lsp,
    demand=demand,
    subject=("path", Subject.PATH),
    timeout=90.0,
)
