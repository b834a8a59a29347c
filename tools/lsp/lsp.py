"""Which language server is asked, and how does the question get there?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Ending, Problem
from mcp_server.model.text import make_visible
from tools.lsp.connection import RequestDeclined, ServerGone, ServerSilent
from tools.lsp.definitions import LspArguments
from tools.lsp.locations import Shelf
from tools.lsp.pool import Patience, ServerPool
from tools.lsp.position import SymbolPosition
from tools.lsp.queries import COMMANDS
from tools.lsp.render import LspQuestion, render_places, render_text_answer
from tools.lsp.servers import LANGUAGES, Language, LanguageServer, find_language

# How does a question get to a server that runs and knows the files, and what if it breaks on the way?

PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """The server that is asked, and where its program is."""

    server: LanguageServer
    program: str
    language: Language


async def ask_server(ctx: Context, choice: ServerChoice, args: Mapping[str, Any]) -> Ending:
    while True:
        warm = get_server_pool(ctx, choice)
        async with warm.lock:
            # While this call waited for another, the session may have let go of it.
            if not warm.closed:
                return await answer_under_lock(ctx, warm, choice, args)


def get_server_pool(ctx: Context, choice: ServerChoice) -> ServerPool:
    """The session's own server, running or not."""
    name = f"language server {choice.server.name}"
    warm: ServerPool | None = ctx.belongings.get(name)
    if warm is None or warm.closed:
        warm = ServerPool(choice.server, choice.language, PATIENCE)
        ctx.belongings.keep(name, warm, warm.close, PATIENCE.idle)
    return warm


async def answer_under_lock(ctx: Context, warm: ServerPool, choice: ServerChoice, args: Mapping[str, Any]) -> Ending:
    name = f"`{choice.server.name}`"
    try:
        return await answer_question(ctx, warm, choice.program, args)
    except RequestDeclined as declined:
        if not warm.is_greeted:
            await warm.drop()
        return Problem(
            Code.TOOL_FAILED, f"{name} says: {make_visible(str(declined))[:500]}", "Check `symbol` and `line`."
        )
    except ServerSilent:
        await warm.drop()
        return Problem(
            Code.TIMEOUT,
            f"{name} did not answer in time and was stopped; the next call starts it anew.",
            "Ask again, or look with `grep`.",
        )
    except ServerGone as gone:
        words = make_visible((await warm.drop())[-500:])
        said = f" Its last words: {words}" if words else ""
        return Problem(
            Code.TOOL_FAILED,
            f"{name} broke off: {gone}. The next call starts it anew.{said}",
            "Ask again, or look with `grep`.",
        )


async def answer_question(ctx: Context, warm: ServerPool, program: str, args: Mapping[str, Any]) -> Ending:
    await ctx.progress(0, 2, f"starting {warm.server.name}")
    running = await warm.ensure_running(ctx, program)
    await running.mirror.announce_changes(ctx.files)
    path = (await to_thread.run_sync(ctx.files.read, args["path"], 0)).path
    text = await running.mirror.open(ctx.files, path)
    await ctx.progress(1, 2, f"asking {warm.server.name}")
    await running.wait_until(lambda: not running.is_busy, warm.patience.indexing)
    subject = SymbolPosition(running, ctx.files.root, path, text, args.get("symbol", "").strip(), args.get("line"))
    answer = await COMMANDS[args["command"]](subject, args.get("new_name", ""))
    question = LspQuestion(args, ctx.files.root, warm.server, running.is_busy)
    if not answer.entries and args["command"] == "hover_symbol":
        return render_text_answer(question, answer)
    shelf = Shelf(ctx.files, path, running.encoding)
    return await to_thread.run_sync(render_places, question, answer, shelf)


# Which server is asked about this file? The best one that is installed and may be started.


async def ask_language_server(ctx: Context, args: LspArguments) -> Ending:
    language = find_language(args["path"])
    if language is None:
        known = ", ".join(f"{one.name} ({' '.join(one.suffixes)})" for one in LANGUAGES)
        return Problem(
            Code.INVALID_ARGUMENTS,
            f"`{make_visible(args['path'])}` is of no language that a server is known for: {known}.",
            "Look into it with `grep` and `Read`.",
        )
    if args["command"] == "rename_preview" and not args.get("new_name"):
        return Problem(Code.INVALID_ARGUMENTS, "rename_preview needs `new_name`.", "Call again with it.")
    choice = choose_server(ctx, language, args.get("server"))
    return choice if isinstance(choice, Problem) else await ask_server(ctx, choice, args)


def choose_server(ctx: Context, language: Language, wanted: str | None) -> ServerChoice | Problem:
    """The best that is installed, of those that this call may start."""
    fitting = [server for server in language.servers if wanted in (None, server.name)]
    if not fitting:
        names = " or ".join(f"`{server.name}`" for server in language.servers)
        return Problem(
            Code.INVALID_ARGUMENTS, f"`{wanted}` is no server for {language.name}.", f"Leave it out, or name {names}."
        )
    there = [(server, found) for server in fitting if (found := ctx.processes.find_program(server.name))]
    trusted = ctx.demand.profile.covers(Profile.TRUSTED)
    for server, found in there:
        if server.inert or trusted:
            return ServerChoice(server, found, language)
    if there:
        return build_trust_problem(there[0][0], language)
    ways = "; ".join(f"`{server.name}` ({server.install})" for server in fitting)
    return Problem(
        Code.TOOL_FAILED,
        f"No language server for {language.name} is installed where menugate looks for programs.",
        f"Have the person install {ways}. Until then, look with `grep`.",
    )


def build_trust_problem(server: LanguageServer, language: Language) -> Problem:
    """A server that may run what the project tells it to is only started by a call that was judged as such."""
    inert = " or ".join(f"`{one.name}` ({one.install})" for one in language.servers if one.inert)
    return Problem(
        Code.NOT_GRANTED,
        f"For {language.name} only `{server.name}` is installed, which may run code of the project it looks at and was "
        "not started.",
        f'Call again with "server": "{server.name}", which profile `trusted` allows; or have the person install '
        f"{inert}.",
    )
