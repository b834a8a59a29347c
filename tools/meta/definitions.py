"""Which tools are always listed? The six meta-tools, and the two carriers in lists that do not change."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mcp_server.model.posture import Profile, Stage
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.tools import EVERY_STAGE, HINTS, Effect, LazyFunction, Run, Tool

MOVING = HINTS[Effect.SESSION].adjust("a second identical call changes nothing", idempotent=True)
HANDLE = Annotated[str, "Menu handle from `menu_enter`, when calls share no connection", Is(shortest=1)]


class MenuArguments(TypedDict):
    menu: NotRequired[HANDLE]


class MenuEnterArguments(TypedDict):
    mode: Annotated[str, "Mode name", Is(longest=200)]
    menu: NotRequired[HANDLE]


class CompleteArguments(TypedDict):
    final_answer: Annotated[str, "What was done, for the user"]
    status: NotRequired[Annotated[Literal["success", "partial", "failure"], "How it went"]]
    menu: NotRequired[HANDLE]


class ThinkArguments(TypedDict):
    content: Annotated[str, "Your reasoning; kept private"]
    menu: NotRequired[HANDLE]


class MessageUserArguments(TypedDict):
    message: Annotated[str, "What to tell or ask"]
    block_on_user: NotRequired[Annotated[bool, "Ask and wait for an answer", Is(default=False)]]
    attachments: NotRequired[Annotated[list[str], "Workspace paths", Is(most_items=20)]]


class MenuCallArguments(TypedDict):
    tool: Annotated[str, "Tool name"]
    arguments: NotRequired[Annotated[dict[str, Any], "The tool's own arguments"]]
    mode: NotRequired[Annotated[str, "Enter this mode first", Is(shortest=1)]]
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


def _build_meta_tool(name: str, title: str, description: str, run: Run, arguments: type, **more: Any) -> Tool:
    return Tool(
        name=name,
        title=title,
        description=description,
        arguments=build_schema(arguments),
        profile=Profile.RESTRICTED,
        effect=more.pop("effect", Effect.SESSION),
        stages=more.pop("stages", EVERY_STAGE),
        run=run,
        meta=True,
        **more,
    )


BEFORE_DELIVERY = EVERY_STAGE - {Stage.DELIVERY_CHECK}

MENU_LIST = _build_meta_tool(
    "menu_list",
    "List the menus",
    "Show where you are and what you can enter or use.",
    LazyFunction("tools.meta.menus:show_overview"),
    MenuArguments,
    effect=Effect.NONE,
)

MENU_ENTER = _build_meta_tool(
    "menu_enter",
    "Enter a mode",
    "Get the tools of a mode: ",
    LazyFunction("tools.meta.menus:enter"),
    MenuEnterArguments,
    hints=MOVING,
    stages=BEFORE_DELIVERY,
    result=ENTERED,
)

MENU_EXIT = _build_meta_tool(
    "menu_exit",
    "Leave the mode",
    "Go back to ROOT. Not needed to switch: enter another mode.",
    LazyFunction("tools.meta.menus:leave"),
    MenuArguments,
    hints=MOVING,
    stages=BEFORE_DELIVERY,
)

COMPLETE = _build_meta_tool(
    "complete",
    "Finish the task",
    "Say that the task is finished, with the final answer.",
    LazyFunction("tools.meta.menus:complete"),
    CompleteArguments,
    hints=MOVING,
    stages=EVERY_STAGE - {Stage.WARMUP},
)

THINK = _build_meta_tool(
    "think",
    "Think",
    "Reason before acting. Changes nothing.",
    LazyFunction("tools.meta.menus:think"),
    ThinkArguments,
    effect=Effect.NONE,
)

MESSAGE_USER = _build_meta_tool(
    "message_user",
    "Message the user",
    "Tell the user something, or ask and wait.",
    LazyFunction("tools.meta.menus:message_user"),
    MessageUserArguments,
    hints=HINTS[Effect.SESSION].adjust("a person gets it and may answer", open_world=True),
    timeout=900.0,
)

META = (MENU_LIST, MENU_ENTER, MENU_EXIT, COMPLETE, THINK, MESSAGE_USER)

MENU_READ = _build_meta_tool(
    "menu_read",
    "Call a reading tool",
    "Call a tool of a mode that only reads (files, search, status), by name, even if it is not listed.",
    LazyFunction("tools.meta.menus:refuse_empty_carrier"),
    MenuCallArguments,
    effect=Effect.NONE,
)

MENU_CALL = _build_meta_tool(
    "menu_call",
    "Call any tool",
    "Call any tool of a mode by name, even if it is not listed.",
    LazyFunction("tools.meta.menus:refuse_empty_carrier"),
    MenuCallArguments,
    effect=Effect.DELEGATE,
)

CARRIERS = (MENU_READ, MENU_CALL)

TOOLS = (*META, *CARRIERS)
