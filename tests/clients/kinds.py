"""Clients that behave as real hosts did.

They answer forms by themselves or much too late, get every prompt when they start or hand them to their model, fill in
what they should leave out, or share no connection between two calls.
"""

import json
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.clients.clients import MODERN
from tests.clients.form import FORM, code_in
from tests.clients.pipe import Pipe
from tests.clients.raw import RawClient, Stream
from tools.catalog import CATALOG

UNLISTED = "a-host-nobody-knows"
SCHEMAS = {tool.name: tool.arguments for tool in CATALOG}
COMMANDS: dict[str, dict[str, str]] = {
    "permission-profile": {"value": "unrestricted"},
    "mode": {"value": "repair"},
    "control": {"value": "manual"},
    "model-mode": {"value": "deep"},
    "steer": {"axis": "ai-mode", "value": "chat"},
    "autonomous": {"scope": "now"},
    "repair": {"scope": "now"},
    "next": {"units": "9"},
    "pause": {"when": "now"},
    "stop": {"when": "now"},
    "doctor": {"what": "fix"},
}
"""Every command that acts, with a value it knows."""

Client = Pipe | RawClient
Reply = dict[str, Any]


def accept(params: dict[str, Any]) -> Reply:
    """Every field is filled in, the code with the characters that the message shows."""
    fields = params["requestedSchema"]["properties"]
    return {"action": "accept", "content": dict.fromkeys(fields, "once") | {"code": code_in(params["message"])}}


def decline(_params: dict[str, Any]) -> Reply:
    return {"action": "decline"}


def cancel(_params: dict[str, Any]) -> Reply:
    return {"action": "cancel"}


def get_every_prompt(one: Client) -> None:
    """With nothing, with the placeholders of a template, with empty texts and with the names of the arguments."""
    listed = {prompt["name"]: prompt for prompt in one.request("prompts/list")["result"]["prompts"]}
    for name in dict.fromkeys([*listed, *COMMANDS]):
        known = [argument["name"] for argument in listed.get(name, {}).get("arguments", ())] or list(
            COMMANDS.get(name, ())
        )
        numbered = {argument: f"${number}" for number, argument in enumerate(known, 1)}
        for filled in ({}, numbered, dict.fromkeys(known, ""), {argument: argument for argument in known}):
            one.request("prompts/get", {"name": name, "arguments": filled})


def use_prompts_as_tools(one: Client) -> None:
    for name, arguments in COMMANDS.items():
        one.request("prompts/get", {"name": name, "arguments": arguments})


@dataclass(frozen=True)
class Kind:
    name: str
    answer: Callable[[dict[str, Any]], Reply] | None = None
    """What it says to a form, at once; None if it can show none."""
    late: bool = False
    """It says so when nobody waits for it any more."""
    begin: Callable[[Client], None] | None = None
    filling: tuple[str | None, ...] = ()
    """What it puts into every argument that it has nothing for."""
    alone: bool = False
    """Every call has a connection of its own."""
    handle: bool = False
    """It gives back the handle it got from `menu_enter`, even where the connection would do."""


KINDS = {
    kind.name: kind
    for kind in (
        Kind("auto-accept", accept),
        Kind("auto-decline", decline),
        Kind("auto-cancel", cancel),
        Kind("slow", accept, late=True),
        Kind("prompt prefetch", begin=get_every_prompt),
        Kind("prompts as tools", begin=use_prompts_as_tools),
        Kind("nulls", filling=(None,)),
        Kind("empty strings", filling=("",)),
        Kind("one connection per call", alone=True),
        Kind("one connection per call, with the handle", alone=True, handle=True),
    )
}


@dataclass
class ScriptedHost:
    """A client of one kind, connected in one way."""

    kind: Kind
    connect: Callable[[], AbstractContextManager[Client]]
    wait: Callable[[], None]
    """Lets the time pass that a late answer takes."""
    one: Client | None = None
    menu: str = ""
    overdue: list[Callable[[], Reply]] = field(default_factory=list[Callable[[], Reply]])
    """Modern questions that it has not come back with yet."""

    @contextmanager
    def opened(self) -> Generator["ScriptedHost"]:
        with ExitStack() as stack:
            if not self.kind.alone:
                self.one = stack.enter_context(self.connect())
            yield self

    def call(self, tool: str, /, **arguments: Any) -> str:
        with self.connect() if self.one is None else keep(self.one) as one:
            params = {"name": tool, "arguments": self.fill(tool, arguments)}
            return said(self.ask(one, params))

    def carry(self, tool: str, mode: str, arguments: dict[str, Any], carrier: str = "menu_call") -> str:
        handle = {"menu": self.menu} if self.menu else {}
        return self.call(carrier, tool=tool, mode=mode, arguments=self.fill(tool, arguments), **handle)

    def fill(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        for nothing in self.kind.filling:
            schema = SCHEMAS[tool]
            optional = [name for name in schema["properties"] if name not in schema.get("required", ())]
            arguments = dict.fromkeys(optional, nothing) | arguments
        return arguments

    def ask(self, one: Client, params: dict[str, Any]) -> Reply:
        if isinstance(one, RawClient):
            number, stream = one.send("tools/call", params)
            return self.settle(one, params, self.finish(one, number, stream))
        return self.settle(one, params, self.finish(one, one.send("tools/call", params), one))

    def finish(self, one: Client, number: int, stream: Pipe | Stream) -> Reply:
        """The answer to a request, with whatever the server asks before it."""
        overdue: list[Reply] = []
        while (message := stream.message()).get("id") != number or "method" in message:
            if message.get("method") == "elicitation/create":
                assert self.kind.answer is not None
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": self.kind.answer(message["params"])}
                if self.kind.late:
                    overdue.append(reply)
                else:
                    post(one, reply)
        for reply in overdue:
            self.wait()
            post(one, reply)
        return message["result"]

    def settle(self, one: Client, params: dict[str, Any], result: Reply) -> Reply:
        """Come back with the answer where the call itself comes back; a late client is in no hurry to."""
        if result.get("resultType") != "input_required":
            return result
        assert self.kind.answer is not None
        replies = {key: self.kind.answer(asked["params"]) for key, asked in result["inputRequests"].items()}
        back = params | {"inputResponses": replies, "requestState": result["requestState"]}

        def come_back() -> Reply:
            return one.request("tools/call", back)["result"]

        if self.kind.late:
            self.overdue.append(come_back)
            return {"content": [{"text": "Asked, and not answered yet."}]}
        return come_back()

    def come_back_late(self) -> list[str]:
        """Answer now what was asked long ago; the results."""
        self.wait()
        overdue, self.overdue = self.overdue, []
        return [said(come_back()) for come_back in overdue]


@contextmanager
def keep(one: Client) -> Generator[Client]:
    yield one


def post(one: Client, message: Reply) -> None:
    if isinstance(one, RawClient):
        one.post(message).close()
    else:
        one.raw(json.dumps(message).encode() + b"\n")


def said(result: Reply) -> str:
    return "\n".join(block["text"] for block in result["content"])


def greet(one: Pipe, kind: Kind, era: str) -> Pipe:
    one.able = FORM if kind.answer else {}
    one.hello(UNLISTED, era)
    return one


def shares_nothing(kind: Kind, transport: str, era: str) -> bool:
    """Whether two calls belong together only by the handle."""
    return kind.alone or (transport == "http" and era == MODERN)
