"""How does a question get to a server that runs and knows the files, and what if it breaks on the way?"""

from collections.abc import Mapping
from typing import Any

from anyio import to_thread

from mcp_server.model.ending import Code, Ending, Problem
from mcp_server.model.ports.context import Context
from tools.lsp.conversation import Declined, Gone, Silent
from tools.lsp.places import Shelf
from tools.lsp.pointing import Subject
from tools.lsp.questions import COMMANDS
from tools.lsp.servers import Language, Server
from tools.lsp.showing import Question, listed, told
from tools.lsp.warm import Patience, Warm

PATIENCE = Patience()


async def ask(ctx: Context, server: Server, language: Language, args: Mapping[str, Any]) -> Ending:
    warm = await kept(ctx, server, language)
    async with warm.lock:
        try:
            return await answered(ctx, warm, args)
        except Declined as declined:
            return Problem(
                Code.TOOL_FAILED, f"`{server.name}` says: {str(declined)[:500]}", "Check `symbol` and `line`."
            )
        except Silent:
            await warm.drop()
            return Problem(
                Code.TIMEOUT,
                f"`{server.name}` did not answer in time and was stopped; the next call starts it anew.",
                "Ask again, or look with `grep`.",
            )
        except Gone as gone:
            await warm.drop()
            return Problem(
                Code.TOOL_FAILED,
                f"`{server.name}` broke off: {gone}. The next call starts it anew.",
                "Ask again, or look with `grep`.",
            )
        finally:
            warm.rest()


async def answered(ctx: Context, warm: Warm, args: Mapping[str, Any]) -> Ending:
    await ctx.progress(0, 2, f"starting {warm.server.name}")
    running = await warm.running(ctx)
    await running.mirror.follow(ctx.files)
    path = (await to_thread.run_sync(ctx.files.read, args["path"], 0)).path
    text = await running.mirror.open(ctx.files, path)
    await ctx.progress(1, 2, f"asking {warm.server.name}")
    await running.until(lambda: not running.busy, warm.patience.indexing)
    subject = Subject(running, ctx.files.root, path, text, args.get("symbol", "").strip(), args.get("line"))
    answer = await COMMANDS[args["command"]](subject, args.get("new_name", ""))
    question = Question(args, ctx.files.root, warm.server, running.busy)
    if not answer.entries and args["command"] == "hover_symbol":
        return told(question, answer)
    shelf = Shelf(ctx.files, path, running.encoding)
    return await to_thread.run_sync(listed, question, answer, shelf)
