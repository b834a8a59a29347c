"""Which language server answers, and how does the question get there?"""

from collections.abc import Mapping
from typing import Any

from anyio import to_thread
from msgspec import Struct

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Ending, Problem
from mcp_server.model.text import escape_for_model, escape_name
from tools.lsp.connection import RequestDeclined, ServerGone, ServerSilent
from tools.lsp.definitions import LspArguments
from tools.lsp.locations import TextCache
from tools.lsp.pool import ServerPool, Timeouts
from tools.lsp.position import SymbolPosition
from tools.lsp.queries import COMMANDS
from tools.lsp.render import LspQuestion, render_places, render_text_answer
from tools.lsp.servers import LANGUAGES, Language, LanguageServer, find_language

TIMEOUTS = Timeouts()


class ServerChoice(Struct, frozen=True):
    server: LanguageServer
    program: str
    """Its full path."""
    language: Language


async def ask_language_server(ctx: Context, args: LspArguments) -> Ending:
    language = find_language(args["path"])
    if language is None:
        supported = ", ".join(f"{each.name} ({' '.join(each.suffixes)})" for each in LANGUAGES)
        return Problem(
            Code.INVALID_ARGUMENTS,
            f"menugate knows no language server for `{escape_name(args['path'])}`, only for {supported}.",
            "Use `grep` and `Read` instead.",
        )
    if args["command"] == "rename_preview" and not args.get("new_name"):
        return Problem(Code.INVALID_ARGUMENTS, "rename_preview needs `new_name`.", "Call again with `new_name`.")
    choice = _choose_server(ctx, language, args.get("server"))
    return choice if isinstance(choice, Problem) else await _ask_server(ctx, choice, args)


def _choose_server(ctx: Context, language: Language, server_name: str | None) -> ServerChoice | Problem:
    """Choose the best server that is installed and that this call may start."""
    candidates = [server for server in language.servers if server_name in (None, server.name)]
    if not candidates:
        names = " or ".join(f"`{server.name}`" for server in language.servers)
        return Problem(
            Code.INVALID_ARGUMENTS,
            f"`{server_name}` is not a server for {language.name}.",
            f"Leave out `server`, or pass {names}.",
        )
    installed = [(server, path) for server in candidates if (path := ctx.processes.find_program(server.name))]
    trusted = ctx.demand.profile.covers(Profile.TRUSTED)
    for server, path in installed:
        if server.inert or trusted:
            return ServerChoice(server, path, language)
    if installed:
        return _build_trust_problem(installed[0][0], language)
    options = "; ".join(f"`{server.name}` ({server.install})" for server in candidates)
    return Problem(
        Code.TOOL_FAILED,
        f"No language server for {language.name} is installed where menugate looks for programs.",
        f"Ask the user to install {options}. Until then, use `grep`.",
    )


def _build_trust_problem(server: LanguageServer, language: Language) -> Problem:
    """Refuse to start a server that may run the project's code; a call that names it was judged with that in mind."""
    inert = " or ".join(f"`{each.name}` ({each.install})" for each in language.servers if each.inert)
    return Problem(
        Code.NOT_GRANTED,
        f"The only installed server for {language.name} is `{server.name}`. It may run the project's code, so it was "
        f"not started.",
        f'Call again with "server": "{server.name}", which the profile `trusted` allows; or ask the user to install '
        f"{inert}.",
    )


async def _ask_server(ctx: Context, choice: ServerChoice, args: Mapping[str, Any]) -> Ending:
    while True:
        pool = _get_pool(ctx, choice)
        async with pool.lock:
            # The session may have closed it while we waited for the lock.
            if not pool.closed:
                return await _answer_under_lock(ctx, pool, choice, args)


def _get_pool(ctx: Context, choice: ServerChoice) -> ServerPool:
    name = f"language server {choice.server.name}"
    pool: ServerPool | None = ctx.belongings.get(name)
    if pool is None or pool.closed:
        pool = ServerPool(choice.server, choice.language, TIMEOUTS)
        ctx.belongings.keep(name, pool, pool.close, TIMEOUTS.idle)
    return pool


async def _answer_under_lock(ctx: Context, pool: ServerPool, choice: ServerChoice, args: Mapping[str, Any]) -> Ending:
    name = f"`{choice.server.name}`"
    try:
        return await _answer_question(ctx, pool, choice.program, args)
    except RequestDeclined as declined:
        if not pool.is_initialized:
            await pool.drop()
        return Problem(
            Code.TOOL_FAILED, f"{name} says: {escape_for_model(str(declined))[:500]}", "Check `symbol` and `line`."
        )
    except ServerSilent:
        await pool.drop()
        return Problem(
            Code.TIMEOUT,
            f"{name} did not answer in time and was stopped; the next call restarts it.",
            "Call again, or use `grep`.",
        )
    except ServerGone as gone:
        log = escape_for_model((await pool.drop())[-500:])
        return Problem(
            Code.TOOL_FAILED,
            f"{name} stopped working: {gone}. The next call restarts it.{f' Its last output: {log}' if log else ''}",
            "Call again, or use `grep`.",
        )


async def _answer_question(ctx: Context, pool: ServerPool, program: str, args: Mapping[str, Any]) -> Ending:
    await ctx.progress(0, 2, f"starting {pool.server.name}")
    running = await pool.ensure_running(ctx, program)
    await running.documents.announce_changes(ctx.files)
    path = (await to_thread.run_sync(ctx.files.read, args["path"], 0)).path
    text = await running.documents.open(ctx.files, path)
    await ctx.progress(1, 2, f"asking {pool.server.name}")
    await running.wait_until(lambda: not running.is_busy, pool.timeouts.indexing)
    position = SymbolPosition(running, ctx.files.root, path, text, args.get("symbol", "").strip(), args.get("line"))
    answer = await COMMANDS[args["command"]](position, args.get("new_name", ""))
    question = LspQuestion(args, ctx.files.root, pool.server, running.is_busy)
    if not answer.items and args["command"] == "hover_symbol":
        return render_text_answer(question, answer)
    texts = TextCache(ctx.files, path, running.encoding)
    return await to_thread.run_sync(render_places, question, answer, texts)
