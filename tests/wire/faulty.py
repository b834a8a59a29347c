"""What do tools do that misbehave? A pack of them; run as a program, it is served like any other."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import server
from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Picture, Problem, Question, Raw, Refusal
from mcp_server.model.tool_packs import Pack, Prompt, PromptArgument, Resource, Template
from mcp_server.model.tools import Tool
from tests.conformance.shape import fixture

CANARY = "canary-5e0f91"
MODE = "faulty"
LONG = "".join(f"line {number} of what was said\n" for number in range(1, 6001))


class Speechless(Exception):
    """Cannot even say what went wrong."""

    def __str__(self) -> str:
        raise RuntimeError(CANARY)


def refusal() -> Exception:
    return Refusal(Problem(Code.NOT_FOUND, "there is nothing", "Look elsewhere."))


RAISED: dict[str, Callable[[], BaseException]] = {
    "runtime": lambda: RuntimeError(CANARY),
    "value": lambda: ValueError(CANARY),
    "key": lambda: KeyError(CANARY),
    "os": lambda: OSError(28, CANARY, f"/secret/{CANARY}"),
    "timeout": lambda: TimeoutError(CANARY),
    "recursion": lambda: RecursionError(CANARY),
    "stop": lambda: StopAsyncIteration(CANARY),
    "assertion": lambda: AssertionError(CANARY),
    "group": lambda: ExceptionGroup(CANARY, [ValueError(CANARY), KeyError(CANARY)]),
    "speechless": lambda: Speechless(CANARY),
    "exit": lambda: SystemExit(CANARY),
}
RETURNED: dict[str, Any] = {
    "nothing": None,
    "a text": "just words",
    "a mapping": {"content": []},
    "a type": Done,
    "text that is none": Done(5),  # type: ignore[arg-type]
    "a set": Done("x", {"x": {1, 2}}),
    "an object": Done("x", {"x": object()}),
    "bytes": Done("x", {"x": b"\xff"}),
    "NaN": Done("x", {"x": float("nan")}),
    "a list for data": Done("x", [1, 2]),  # type: ignore[arg-type]
    "a block that is none": Done("x", blocks=(5,)),  # type: ignore[arg-type]
    "a block that is no JSON": Done("x", blocks=(Raw({"type": "text", "text": object()}),)),
    "a picture of text": Done("x", blocks=(Picture("no bytes", "image/png"),)),  # type: ignore[arg-type]
    "a problem without a code": Problem("OOPS", "x"),  # type: ignore[arg-type]
    "a problem with data that is none": Problem(Code.NOT_FOUND, "x", "", {"x": object()}),
    "a question": Question("q", 5),  # type: ignore[arg-type]
}
HALVES: dict[str, Ending] = {
    "half a character in the text": Done("a\ud800b"),
    "half a character in the data": Done("x", {"names": ["a\ud800b"], "\udcff": 1}),
    "half a character in a problem": Problem(Code.NOT_FOUND, "a\ud800b", "c\udfffd", {"path": "\udcff"}),
    "half a character in a block": Done("x", blocks=(Raw({"type": "text", "text": "a\ud800b"}),)),
}


async def _raise(_ctx: Context, args: Any) -> Ending:
    raise RAISED[args["kind"]]()


async def _return(_ctx: Context, args: Any) -> Ending:
    return (RETURNED | HALVES)[args["kind"]]


async def _wait(_ctx: Context, args: Any) -> Ending:
    """Leaves a mark when it begins and another one when it is stopped."""
    mark = Path(args["mark"])
    mark.with_suffix(".begun").touch()
    try:
        await asyncio.Event().wait()
    finally:
        mark.with_suffix(".stopped").touch()
    return Done("never")


async def _overrun(_ctx: Context, _args: Any) -> Ending:
    await asyncio.Event().wait()
    return Done("never")


async def _progress(ctx: Context, _args: Any) -> Ending:
    for done in (0, 50, 100):
        await ctx.progress(done, 100, f"{done} of 100")
    return Done("All of it.")


async def _long(_ctx: Context, _args: Any) -> Ending:
    return Done(LONG)


def taking(**properties: str) -> Mapping[str, Any]:
    typed = {name: {"type": kind} for name, kind in properties.items()}
    return {"type": "object", "properties": typed, "required": list(typed), "additionalProperties": False}


def late(tool: Tool, seconds: float) -> Tool:
    from dataclasses import replace

    return replace(tool, timeout=seconds)


def fails(*_: Any) -> Any:
    raise ValueError(CANARY)


def completes(_typed: str) -> Sequence[str]:
    raise RuntimeError(CANARY)


FAULTY = Pack(
    name=MODE,
    tools=(
        fixture("raise_it", "Raise it.", _raise, taking(kind="string")),
        fixture("return_it", "Return it.", _return, taking(kind="string")),
        fixture("wait_for_ever", "Wait for ever.", _wait, taking(mark="string")),
        late(fixture("take_too_long", "Take too long.", _overrun), 0.2),
        fixture("report_progress", "Report progress.", _progress),
        fixture("say_too_much", "Say too much.", _long),
    ),
    prompts=(
        Prompt("broken", "Broken", "Cannot be rendered.", fails, (PromptArgument("x", values=completes),)),
        Prompt("halved", "Halved", "Says half a character.", lambda _: [said("a\ud800b")]),
    ),
    resources=(
        Resource("faulty://broken", "broken", "Cannot be read.", "text/plain", fails),
        Resource("faulty://halved", "halved", "Half a character.", "text/plain", lambda: "a\ud800b"),
    ),
    templates=(Template("faulty://{hole}/deep", "deep", "Cannot be read.", "text/plain", fails),),
    menus=(str(Path(__file__).parent / "menus"),),
)


def said(text: str) -> Mapping[str, Any]:
    return {"role": "user", "content": {"type": "text", "text": text}}


if __name__ == "__main__":
    sys.exit(server.serve(FAULTY, sys.argv[1:]))
