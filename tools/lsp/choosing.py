"""Which server is asked about this file? The best one that is installed and may be started."""

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Ending, Problem
from tools.files.lines import visible
from tools.lsp.definitions import LspArguments
from tools.lsp.lsp import ServerChoice, ask
from tools.lsp.servers import LANGUAGES, Language, LanguageServer, language_of


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
    choice = chosen(ctx, language, args.get("server"))
    return choice if isinstance(choice, Problem) else await ask(ctx, choice, args)


def chosen(ctx: Context, language: Language, wanted: str | None) -> ServerChoice | Problem:
    """The best that is installed, of those that this call may start."""
    fitting = [server for server in language.servers if wanted in (None, server.name)]
    if not fitting:
        names = " or ".join(f"`{server.name}`" for server in language.servers)
        return Problem(
            Code.INVALID_ARGUMENTS, f"`{wanted}` is no server for {language.name}.", f"Leave it out, or name {names}."
        )
    there = [(server, found) for server in fitting if (found := ctx.processes.find(server.name))]
    trusted = ctx.demand.profile.covers(Profile.TRUSTED)
    for server, found in there:
        if server.inert or trusted:
            return ServerChoice(server, found, language)
    if there:
        return forward(there[0][0], language)
    ways = "; ".join(f"`{server.name}` ({server.install})" for server in fitting)
    return Problem(
        Code.TOOL_FAILED,
        f"No language server for {language.name} is installed where menugate looks for programs.",
        f"Have the person install {ways}. Until then, look with `grep`.",
    )


def forward(server: LanguageServer, language: Language) -> Problem:
    """A server that may run what the project tells it to is only started by a call that was judged as such."""
    inert = " or ".join(f"`{one.name}` ({one.install})" for one in language.servers if one.inert)
    return Problem(
        Code.NOT_GRANTED,
        f"For {language.name} only `{server.name}` is installed, which may run code of the project it looks at and was "
        "not started.",
        f'Call again with "server": "{server.name}", which profile `trusted` allows; or have the person install '
        f"{inert}.",
    )
