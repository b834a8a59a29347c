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
    # We drop the thought itself on purpose: no part of it may reach a result, a log or the ledger.
    return await ctx.navigator.think(args["content"])


async def message_user(ctx: Context, args: MessageUserArguments) -> Ending:
    attachments = tuple(args.get("attachments", ()))
    if not args["message"].strip():
        return Problem(Code.INVALID_ARGUMENTS, "`message` is empty.", "Write what you want to tell the user.")
    asks = args.get("block_on_user", False)
    if asks and ctx.person.is_reachable():
        return await _ask_person(ctx, args["message"], attachments)
    id = await ctx.person.tell(args["message"], attachments, asks)
    reply = f"replies with `menugate messages reply {id} TEXT`, and the reply comes with a later result"
    note = f" This call did not wait: the client cannot ask the user questions. The user {reply}." if asks else ""
    return Done(
        f"Left in the user's messages as {id}; the user reads it with `menugate messages`.{note}",
        {"delivered": "outbox", "id": id},
        meta={"notes": {"message": args["message"]}},
    )


NO_ANSWER = {
    "decline": "Asked the user, who declined to answer",
    "cancel": "Asked the user, who closed the question without an answer",
    "timeout": "Asked the user, who did not answer in time",
    "ended": "The run was completed before the user answered",
    "misshapen": "The client was asked and sent something that is no text",
    "automatic": "The client answered by itself within a second, before the user could have read the question",
}


async def _ask_person(ctx: Context, message: str, attachments: tuple[str, ...]) -> Ending:
    action, answer, id = await ctx.person.tell_and_wait(message, attachments)
    if action == "accept":
        return Done(
            f"Asked the user, who answered: {answer}",
            {"delivered": "asked", "answer": answer, "id": id},
        )
    return Done(
        f"{NO_ANSWER.get(action, 'Asked the user, who did not answer')}. The message is kept as {id}; a reply comes "
        "with a later result.",
        {"delivered": "asked", "answer": None, "id": id},
    )


async def refuse_empty_carrier(_ctx: Context, _args: Mapping[str, Any]) -> Ending:
    # Only for a call that names no tool: the pipeline replaces every other carrier with the tool it carries.
    return Problem(Code.NOT_CARRIED, "this call names no tool.", "Name one in `tool`.")
