"""How does a model move through the menus and speak? The six meta-tools, and the two carriers for fixed lists."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mcp_server.model.ending import Code, Done, Ending, Problem
from mcp_server.model.ports.context import Context
from mcp_server.model.posture import Profile, Stage
from mcp_server.model.schema import Is, schema_of
from mcp_server.model.tool import EVERY_STAGE, Effect, Hints, Tool

LOOKING = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
MOVING = Hints(read_only=False, destructive=False, idempotent=True, open_world=False)
HANDLE = Annotated[str, "Menu handle from `menu_enter`, when calls share no connection"]


class NoArguments(TypedDict):
    pass


class Where(TypedDict):
    menu: NotRequired[HANDLE]


class Enter(TypedDict):
    mode: Annotated[str, "Mode name", Is(longest=200)]
    menu: NotRequired[HANDLE]


class Complete(TypedDict):
    final_answer: Annotated[str, "What was done, for the user"]
    status: NotRequired[Annotated[Literal["success", "partial", "failure"], "How it went"]]
    menu: NotRequired[HANDLE]


class Think(TypedDict):
    content: Annotated[str, "Your reasoning; kept private"]
    menu: NotRequired[HANDLE]


class MessageUser(TypedDict):
    message: Annotated[str, "What to tell or ask"]
    block_on_user: NotRequired[Annotated[bool, "Ask and wait for an answer", Is(default=False)]]
    attachments: NotRequired[Annotated[list[str], "Workspace paths", Is(most_items=20)]]


class Carry(TypedDict):
    tool: Annotated[str, "Tool name"]
    arguments: NotRequired[Annotated[dict[str, Any], "The tool's own arguments"]]
    mode: NotRequired[Annotated[str, "Enter this mode first"]]
    menu: NotRequired[HANDLE]


ENTERED = {
    "type": "object",
    "properties": {
        "mode": {"type": "string"},
        "menu": {"type": "string"},
        "tools": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["mode", "menu", "tools"],
}


async def _list(ctx: Context, _args: Where) -> Ending:
    return ctx.desk.overview()


async def _enter(ctx: Context, args: Enter) -> Ending:
    return await ctx.desk.enter(args["mode"])


async def _exit(ctx: Context, _args: Where) -> Ending:
    return await ctx.desk.leave()


async def _complete(ctx: Context, args: Complete) -> Ending:
    return await ctx.desk.complete(args["final_answer"], args.get("status", "success"))


async def _think(ctx: Context, args: Think) -> Ending:
    # The thought itself is dropped on purpose: nothing of it belongs in a result, a log or the ledger.
    return await ctx.desk.think(args["content"])


async def _message(ctx: Context, args: MessageUser) -> Ending:
    attachments = tuple(args.get("attachments", ()))
    if not args["message"].strip():
        return Problem(Code.INVALID_ARGUMENTS, "`message` is empty.", "Write what the user should read.")
    remembered = {"notes": {"message": args["message"]}}
    if args.get("block_on_user") and ctx.person.reachable():
        return await _asked(ctx, args["message"], attachments)
    left = await ctx.person.tell(args["message"], attachments)
    waiting = " It was not waited for: this client cannot put questions to the user." * bool(args.get("block_on_user"))
    return Done(
        f"Left in the user's messages as {left}; the user reads it with `menugate messages`.{waiting}",
        {"delivered": "outbox", "id": left},
        meta=remembered,
    )


async def _asked(ctx: Context, message: str, attachments: tuple[str, ...]) -> Ending:
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


async def _carried(_ctx: Context, _args: Mapping[str, Any]) -> Ending:
    # The pipeline puts the carried tool in the carrier's place before anything is decided, so this is never reached
    # by a call that names a tool; it answers for one that slipped through with none.
    return Problem(Code.NOT_CARRIED, "there is no tool in this call.", "Name one in `tool`.")


def _meta(name: str, title: str, description: str, run: Any, arguments: type, **more: Any) -> Tool:
    return Tool(
        name=name,
        title=title,
        description=description,
        arguments=schema_of(arguments),
        profile=Profile.RESTRICTED,
        effect=more.pop("effect", Effect.SESSION),
        hints=more.pop("hints", LOOKING),
        stages=more.pop("stages", EVERY_STAGE),
        run=run,
        meta=True,
        **more,
    )


BEFORE_DELIVERY = EVERY_STAGE - {Stage.DELIVERY_CHECK}

MENU_LIST = _meta(
    "menu_list",
    "List the menus",
    "Show where you are and what you can enter or use.",
    _list,
    Where,
    effect=Effect.NONE,
)
MENU_ENTER = _meta(
    "menu_enter",
    "Enter a mode",
    "Get the tools of a mode: ",
    _enter,
    Enter,
    hints=MOVING,
    stages=BEFORE_DELIVERY,
    result=ENTERED,
)
MENU_EXIT = _meta(
    "menu_exit",
    "Leave the mode",
    "Go back to ROOT. Not needed to switch: enter another mode.",
    _exit,
    Where,
    hints=MOVING,
    stages=BEFORE_DELIVERY,
)
COMPLETE = _meta(
    "complete",
    "Finish the task",
    "Say that the task is finished, with the final answer.",
    _complete,
    Complete,
    hints=MOVING,
    stages=EVERY_STAGE - {Stage.WARMUP},
)
THINK = _meta(
    "think",
    "Think",
    "Reason before acting. Changes nothing.",
    _think,
    Think,
    effect=Effect.NONE,
)
MESSAGE_USER = _meta(
    "message_user",
    "Message the user",
    "Tell the user something, or ask and wait.",
    _message,
    MessageUser,
    hints=Hints(read_only=False, destructive=False, idempotent=False, open_world=True),
    timeout=900.0,
)
META = (MENU_LIST, MENU_ENTER, MENU_EXIT, COMPLETE, THINK, MESSAGE_USER)

MENU_READ = _meta(
    "menu_read",
    "Call a reading tool",
    "Call a tool of a mode that only reads (files, search, status), by name, even if it is not listed.",
    _carried,
    Carry,
    effect=Effect.NONE,
)
MENU_CALL = _meta(
    "menu_call",
    "Call any tool",
    "Call any tool of a mode by name, even if it is not listed.",
    _carried,
    Carry,
    effect=Effect.DELEGATE,
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=True),
)
CARRIERS = (MENU_READ, MENU_CALL)
