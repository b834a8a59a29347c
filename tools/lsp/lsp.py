"""How does a question get to a server that runs and knows the files, and what if it breaks on the way?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Ending, Problem
from tools.files.lines import visible
from tools.lsp.connection import RequestDeclined, ServerGone, ServerSilent
from tools.lsp.locations import Shelf
from tools.lsp.pool import Patience, ServerPool
from tools.lsp.position import SymbolPosition
from tools.lsp.queries import COMMANDS
from tools.lsp.render import LspQuestion, listed, told
from tools.lsp.servers import Language, LanguageServer

PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """The server that is asked, and where its program is."""

    server: LanguageServer
    program: str
    language: Language


async def ask(ctx: Context, choice: ServerChoice, args: Mapping[str, Any]) -> Ending:
    while True:
        warm = kept(ctx, choice)
        async with warm.lock:
            # While this call waited for another, the session may have let go of it.
            if not warm.closed:
                return await held(ctx, warm, choice, args)


def kept(ctx: Context, choice: ServerChoice) -> ServerPool:
    """The session's own server, running or not."""
    name = f"language server {choice.server.name}"
    warm: ServerPool | None = ctx.belongings.get(name)
    if warm is None or warm.closed:
        warm = ServerPool(choice.server, choice.language, PATIENCE)
        ctx.belongings.keep(name, warm, warm.close, PATIENCE.idle)
    return warm


async def held(ctx: Context, warm: ServerPool, choice: ServerChoice, args: Mapping[str, Any]) -> Ending:
    name = f"`{choice.server.name}`"
    try:
        return await answered(ctx, warm, choice.program, args)
    except RequestDeclined as declined:
        if not warm.greeted:
            await warm.drop()
        return Problem(Code.TOOL_FAILED, f"{name} says: {visible(str(declined))[:500]}", "Check `symbol` and `line`.")
    except ServerSilent:
        await warm.drop()
        return Problem(
            Code.TIMEOUT,
            f"{name} did not answer in time and was stopped; the next call starts it anew.",
            "Ask again, or look with `grep`.",
        )
    except ServerGone as gone:
        words = visible((await warm.drop())[-500:])
        said = f" Its last words: {words}" if words else ""
        return Problem(
            Code.TOOL_FAILED,
            f"{name} broke off: {gone}. The next call starts it anew.{said}",
            "Ask again, or look with `grep`.",
        )


async def answered(ctx: Context, warm: ServerPool, program: str, args: Mapping[str, Any]) -> Ending:
    await ctx.progress(0, 2, f"starting {warm.server.name}")
    running = await warm.running(ctx, program)
    await running.mirror.follow(ctx.files)
    path = (await to_thread.run_sync(ctx.files.read, args["path"], 0)).path
    text = await running.mirror.open(ctx.files, path)
    await ctx.progress(1, 2, f"asking {warm.server.name}")
    await running.until(lambda: not running.busy, warm.patience.indexing)
    subject = SymbolPosition(running, ctx.files.root, path, text, args.get("symbol", "").strip(), args.get("line"))
    answer = await COMMANDS[args["command"]](subject, args.get("new_name", ""))
    question = LspQuestion(args, ctx.files.root, warm.server, running.busy)
    if not answer.entries and args["command"] == "hover_symbol":
        return told(question, answer)
    shelf = Shelf(ctx.files, path, running.encoding)
    return await to_thread.run_sync(listed, question, answer, shelf)
