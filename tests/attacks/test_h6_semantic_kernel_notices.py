"""Does anything work for Semantic Kernel, which calls itself `mcp` as many libraries do?

It takes in a notice where it reads its stream: it lists again, and waits for an answer that it cannot read. And what a
tool calls `arguments` it fills with everything that it was given to call the tool with, itself included.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import MODERN
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import served
from tests.clients.typed import typed

CHANGED = {f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")}


def said(answer: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])


def fine(answer: Mapping[str, Any]) -> str:
    assert not answer.get("isError"), said(answer)
    return said(answer)


def refused(answer: Mapping[str, Any], code: str = "INVALID_ARGUMENTS") -> str:
    assert answer["isError"], said(answer)
    assert code in said(answer)
    return said(answer)


def told(one: Pipe, tool: str, **arguments: Any) -> list[str]:
    """The notices before an answer that is none of an error's."""
    answer, before = one.until(one.send("tools/call", {"name": tool, "arguments": arguments}))
    fine(answer["result"])
    return [str(note.get("method")) for note in before]


def test_no_change_of_a_list_is_told_unasked(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("mcp")
        seen = one.names()
        heard = told(one, "menu_enter", mode="swe")
        assert one.names() != seen, "the list did change"
        # What the person changes at a terminal is announced within half a second, to who wants to hear of it.
        assert typed(workspace, home, "mode", "plan").code == 0
        while "Write" in one.names():
            heard += told(one, "menu_list")
        heard += told(one, "menu_enter", mode="data") + told(one, "menu_exit") + told(one, "menu_list")
        assert not CHANGED & {*heard}


def test_nor_on_the_streams_of_the_older_http(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="mcp") as one:
        unasked = one.listening()
        number, answer = one.send("tools/call", {"name": "menu_enter", "arguments": {"mode": "swe"}})
        _, before = answer.until(number)
        assert before == []
        assert unasked.quiet()


def test_who_takes_notices_in_still_gets_them(workspace: Path, home: Path) -> None:
    for name in ("opencode", "some-client"):
        with pipe(workspace, home) as one:
            one.hello(name)
            one.names()
            assert CHANGED & {*told(one, "menu_enter", mode="swe")}, name
    config = home / "menugate.yaml"
    config.write_text("hosts:\n  - client: mcp\n    listing: carried\n    relists: false\n")
    with pipe(workspace, home, "--config", str(config)) as one:
        one.hello("mcp")
        one.names()
        assert CHANGED & {*told(one, "menu_enter", mode="swe")}, "the operator's row says otherwise"


def kernel(tool: str, **given: Any) -> dict[str, Any]:
    """What it sends where a model calls a carrier with that: its own parameters, and everything as `arguments`."""
    whole = {"tool": tool, **given}
    return {key: whole[key] for key in ("tool", "mode", "menu") if key in whole} | {"arguments": whole}


@pytest.mark.parametrize("era", ["legacy", MODERN])
def test_the_carriers_understand_what_it_makes_of_their_arguments(era: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("mcp", era)
        handle = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        read = {"file_path": "notes.md"}
        for where in ({"menu": handle}, {"mode": "swe"}, {}):
            assert "first" in fine(one.call("menu_read", **kernel("Read", arguments=read, **where)))
            # A model that leaves the braces out: what stands beside is in there too.
            assert "first" in fine(one.call("menu_read", **kernel("Read", **read, **where)))
        assert "first" in fine(one.call("menu_call", **kernel("Read", arguments={**read, "menu": handle})))
        fine(one.call("menu_read", **kernel("TodoRead")))
        edit = {**read, "old_string": "first", "new_string": "second"}
        fine(one.call("menu_call", **kernel("Edit", arguments=edit, menu=handle)))
        assert "second" in (workspace / "notes.md").read_text()
    told_so = typed(workspace, home, "explain", "menu_read", '{"tool": "Read", "arguments": {"tool": "Read"}}')
    assert "`file_path` is missing" in told_so.out


def test_a_copy_of_the_call_is_taken_out_of_itself_once_and_carries_nothing_else(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("mcp")
        fine(one.call("menu_enter", mode="swe"))
        write = {"file_path": "planted.txt", "content": "x"}
        other = {"tool": "Write", "arguments": write}
        refused(one.call("menu_read", tool="Read", arguments=other))
        refused(one.call("menu_call", tool="Read", arguments=other))
        refused(one.call("menu_read", tool="Read", arguments={"tool": "Read", "arguments": other}))
        twice = {"tool": "Read", "arguments": {"tool": "Read", "arguments": {"file_path": "notes.md"}}}
        refused(one.call("menu_read", tool="Read", arguments=twice))
        refused(one.call("menu_read", **kernel("Write", arguments=write)), "NOT_READ_ONLY")
        refused(one.call("menu_call", **kernel("menu_enter", arguments={"mode": "git"})), "NOT_CARRIED")
        assert not (workspace / "planted.txt").exists()
