"""Does the very next call know what you typed at a terminal, also over a new connection and in a new process?"""

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS
from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed

ID = re.compile(r"(?:approve|messages reply) ([a-z0-9-]{8,})")
THINK: dict[str, Any] = {"tool": "think", "arguments": {"content": "so far"}}


def carried(tool: str, mode: str, **arguments: str) -> dict[str, Any]:
    return {"tool": "menu_call", "arguments": {"tool": tool, "mode": mode, "arguments": arguments}}


ASK: dict[str, Any] = {"tool": "message_user", "arguments": {"message": "Which one?", "block_on_user": True}}
READ = carried("Read", "swe", file_path="notes.md")
WRITE = carried("Write", "swe", file_path="new.md", content="x")
DELETE = carried("fs_delete", "data", path="notes.md")
RUN = carried("bash", "swe", command="rm -r src")


@dataclass(frozen=True)
class Door:
    typed: tuple[str, ...]
    """The words of the command; {id} is what the first call was given."""
    call: dict[str, Any]
    after: str
    """Words of its answer after the command was typed; none of them were in it before."""
    first: dict[str, Any] | None = None
    """The call before, if it is another one."""
    flags: tuple[str, ...] = ("--profile", "trusted")
    earlier: tuple[tuple[str, ...], ...] = ()
    answer: str | None = None


DOORS = {
    "a reply": Door(("messages", "reply", "{id}", "The second."), THINK, "{id}: The second.", ASK),
    "an approval": Door(("approve", "{id}"), DELETE, "Deleted"),
    "a refusal": Door(("deny", "{id}", "--reason", "keep it"), DELETE, "keep it"),
    "a profile": Door(("profile", "trusted"), DELETE, "APPROVAL_REQUIRED", flags=()),
    "a work mode": Door(("mode", "plan"), WRITE, "READ_ONLY_WORK", READ),
    "what any setting goes by": Door(("steer", "ai-mode", "chat"), WRITE, "READ_ONLY_WORK", READ),
    "a pause": Door(("pause",), READ, "RUN_PAUSED"),
    "going on": Door(("next",), READ, "first", earlier=(("pause",),)),
    "a stop": Door(("stop",), READ, "RUN_PAUSED"),
}


@contextmanager
def connection(workspace: Path, home: Path, era: str, flags: tuple[str, ...]) -> Generator[Pipe]:
    with pipe(workspace, home, *flags) as one:
        one.hello("some-client", era)
        yield one


def say(one: Pipe, call: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in one.call(call["tool"], **call["arguments"])["content"])


def one_after_another(workspace: Path, home: Path, era: str, flags: tuple[str, ...]) -> Iterator[Pipe]:
    """A new server for every call; the one before has ended."""
    while True:
        with connection(workspace, home, era, flags) as one:
            yield one
            assert one.bye() == 0


def while_the_last_ends(workspace: Path, home: Path, era: str, flags: tuple[str, ...]) -> Iterator[Pipe]:
    """A new server for every call, while the one before still ends what its call left running."""
    stubborn = carried("bash", "swe", command="trap '' TERM; while :; do read -t 1 x; done", run_in_background="true")
    stubborn["arguments"]["arguments"]["run_in_background"] = True
    with ExitStack() as stack:
        while True:
            one = stack.enter_context(connection(workspace, home, era, flags))
            say(one, stubborn)
            yield one
            assert one.process.stdin is not None
            one.process.stdin.close()


def the_same(workspace: Path, home: Path, era: str, flags: tuple[str, ...]) -> Iterator[Pipe]:
    with connection(workspace, home, era, flags) as one:
        while True:
            yield one


@pytest.mark.parametrize("servers", [one_after_another, while_the_last_ends, the_same])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("name", DOORS)
def test_the_next_call_knows_what_was_typed(
    workspace: Path,
    home: Path,
    name: str,
    era: str,
    servers: Callable[[Path, Path, str, tuple[str, ...]], Iterator[Pipe]],
) -> None:
    door = DOORS[name]
    for words in door.earlier:
        assert typed(workspace, home, *words).code == 0
    each = servers(workspace, home, era, door.flags)
    before = say(next(each), door.first or door.call)
    found = ID.search(before)
    id = found[1] if found else ""
    after = door.after.format(id=id)
    assert after not in before
    if servers is the_same:
        one = next(each)  # nothing was typed yet, so the server has nothing to look for
        say(one, THINK)
    else:
        one = next(each) if servers is while_the_last_ends else None
    told = typed(workspace, home, *(word.format(id=id) for word in door.typed), answer=door.answer)
    assert told.code == 0, told.err
    assert after in say(one or next(each), door.call)
    each.close()  # type: ignore[attr-defined]
