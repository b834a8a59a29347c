"""How does a model move through the menus and speak? The six meta-tools, and the two carriers for fixed lists."""

from collections.abc import Mapping
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Problem
from tools.meta.definitions import (
    CompleteArguments,
    MenuArguments,
    MenuEnterArguments,
    MessageUserArguments,
    ThinkArguments,
)


async def show_overview(ctx: Context, _args: MenuArguments) -> Ending:
    return ctx.navigator.show_menu()


async def enter(ctx: Context, args: MenuEnterArguments) -> Ending:
    return await ctx.navigator.enter(args["mode"])


async def leave(ctx: Context, _args: MenuArguments) -> Ending:
    return await ctx.navigator.leave()


async def complete(ctx: Context, args: CompleteArguments) -> Ending:
    return await ctx.navigator.complete(args["final_answer"], args.get("status", "success"))


async def think(ctx: Context, args: ThinkArguments) -> Ending:
    # The thought itself is dropped on purpose: nothing of it belongs in a result, a log or the ledger.
    return await ctx.navigator.think(args["content"])


async def message_user(ctx: Context, args: MessageUserArguments) -> Ending:
    attachments = tuple(args.get("attachments", ()))
    if not args["message"].strip():
        return Problem(Code.INVALID_ARGUMENTS, "`message` is empty.", "Write what the user should read.")
    remembered = {"notes": {"message": args["message"]}}
    if args.get("block_on_user") and ctx.person.is_reachable():
        return await _ask_person(ctx, args["message"], attachments)
    left = await ctx.person.tell(args["message"], attachments)
    waiting = " It was not waited for: this client cannot put questions to the user." * bool(args.get("block_on_user"))
    return Done(
        f"Left in the user's messages as {left}; the user reads it with `menugate messages`.{waiting}",
        {"delivered": "outbox", "id": left},
        meta=remembered,
    )


async def _ask_person(ctx: Context, message: str, attachments: tuple[str, ...]) -> Ending:
    with_files = message + ("\n\nAttached: " + ", ".join(attachments) if attachments else "")
    action, answer = await ctx.person.ask("message", with_files)
    if action == "accept":
        return Done(f"Asked the user, who answered: {answer or '(nothing)'}", {"delivered": "asked", "answer": answer})
    left = await ctx.person.tell(message, attachments)
    said = {"decline": "declined to answer", "cancel": "closed the question", "timeout": "did not answer in time"}
    return Done(
        f"Asked the user, who {said.get(action, 'did not answer')}; the message is kept as {left}.",
        {"delivered": "asked", "answer": None, "id": left},
    )


async def refuse_empty_carrier(_ctx: Context, _args: Mapping[str, Any]) -> Ending:
    # The pipeline puts the carried tool in the carrier's place before anything is decided, so this is never reached
    # by a call that names a tool; it answers for one that slipped through with none.
    return Problem(Code.NOT_CARRIED, "there is no tool in this call.", "Name one in `tool`.")
