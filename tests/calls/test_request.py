"""Is a call that a tool makes on the way to its answer judged, granted and recorded like any other?"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_server.app import App
from mcp_server.calls.live_sessions import LiveSession
from mcp_server.cli.call import build_call_request
from mcp_server.model.context import Context
from mcp_server.model.posture import PostureChange, Profile, Stage, WorkMode
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.tool_packs import Pack
from mcp_server.model.tools import EVERY_STAGE, Effect, Hints, Tool
from mcp_server.settings import read_settings
from mcp_server.state import posture_changes
from mcp_server.state.engine.rows import LedgerFilter, Row
from mcp_server.state.reader import Reader
from tests.clients.served import environment
from tests.clients.within import house

pytestmark = pytest.mark.anyio


async def _errand(ctx: Context, args: Any) -> Ending:
    ending = await ctx.call_tool(args["tool"], args["arguments"])
    return ending if isinstance(ending, Problem) else Done(f"got: {ending.text}", {"inner": type(ending).__name__})


ERRAND = Tool(
    name="errand",
    title="Errand",
    description="Run an errand: call another tool.",
    arguments={
        "type": "object",
        "properties": {
            "tool": {"type": "string", "description": "Its name"},
            "arguments": {"type": "object", "description": "Its arguments"},
        },
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    },
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    hints=Hints(read_only=False, destructive=False, idempotent=False, open_world=True),
    stages=EVERY_STAGE - {Stage.DELIVERY_CHECK},
    run=_errand,
)
MENU = """name: errands
title: Errands
order: 900
role: You run errands.
goal: Get things done.
offers: One tool.
when: something is to be fetched
remember: Nothing.
tools: [errand]
"""


@asynccontextmanager
async def running(workspace: Path, home: Path, **flags: Any) -> AsyncGenerator[tuple[App, LiveSession]]:
    menus = home / "menus"
    menus.mkdir(exist_ok=True)
    (menus / "errands.yaml").write_text(MENU)
    pack = Pack("errands", (ERRAND,), menus=(str(menus),))
    async with house(workspace, home, pack, **flags) as built:
        live = built.core.sessions.open(built.settings.person)
        await built.core.sessions.move(live, "errands", "a test")
        yield built, live


async def errand(built: App, live: LiveSession, tool: str, /, **arguments: Any) -> Ending:
    call = build_call_request(
        built, live, "errand", {"tool": tool, "arguments": arguments}, lambda _done, _total=0: None
    )
    return await built.pipeline.run(call)


def problem(ending: Ending) -> Problem:
    assert isinstance(ending, Problem), ending
    return ending


def rows(workspace: Path, home: Path, **wanted: Any) -> list[Row]:
    settings = read_settings({"workspace": str(workspace)}, environment(home))
    with Reader.open(settings.url, secrets=settings.secrets) as state:
        return list(state.read_rows(LedgerFilter(**wanted)))


async def test_it_runs_although_its_mode_is_another_and_both_are_on_record(workspace: Path, home: Path) -> None:
    async with running(workspace, home) as (built, live):
        got = await errand(built, live, "grep", pattern="def main")
        assert isinstance(got, Done)
        assert "src/main.py" in got.text
        direct = await built.pipeline.run(
            build_call_request(built, live, "grep", {"pattern": "x"}, lambda _done, _total=0: None)
        )
        assert problem(direct).code is Code.WRONG_MODE, "only on the way to an answer"
        assert live.spending.calls == 2, "both count"
    outer, inner = rows(workspace, home, kinds=("intent",))
    assert (outer.fields["tool"], inner.fields["tool"]) == ("errand", "grep")
    assert inner.fields["within"] == outer.seq
    assert "within" not in outer.fields
    endings = rows(workspace, home, kinds=("outcome",))
    assert [row.fields["intent"] for row in endings] == [inner.seq, outer.seq]


@pytest.mark.parametrize(
    ("tool", "arguments", "stage", "code", "layer"),
    [
        ("no_such_tool", {}, Stage.ACT, Code.UNKNOWN_TOOL, None),
        ("Write", {"file_path": "made.txt", "content": "x"}, Stage.WARMUP, Code.WRONG_STAGE, "stage"),
        ("Write", {"file_path": "made.txt", "content": "x"}, Stage.QA_REVIEW, Code.WRONG_STAGE, "stage"),
        ("bash", {"command": "touch made.txt"}, Stage.QA_REVIEW, Code.WRONG_STAGE, "stage"),
        ("fs_write_file", {"path": "made.txt"}, Stage.ACT, Code.INVALID_ARGUMENTS, "arguments"),
        ("fs_delete", {"path": "notes.md"}, Stage.ACT, Code.PROFILE_TOO_LOW, "profile"),
        ("bash", {"command": "eval frobnicate > made.txt"}, Stage.ACT, Code.APPROVAL_REQUIRED, "confirmation"),
        ("Read", {"file_path": ".env"}, Stage.ACT, Code.APPROVAL_REQUIRED, "confirmation"),
        ("Write", {"file_path": "../made.txt", "content": "x"}, Stage.ACT, Code.PATH_REFUSED, None),
    ],
)
async def test_what_is_refused_comes_back_as_a_value_and_nothing_ran(
    workspace: Path, home: Path, tool: str, arguments: dict[str, Any], stage: Stage, code: Code, layer: str | None
) -> None:
    (workspace / ".env").write_text("KEY=1\n")
    before = sorted(path.name for path in workspace.iterdir())
    async with running(workspace, home) as (built, live):
        live.session = replace(live.session, stage=stage)
        got = problem(await errand(built, live, tool, **arguments))
        assert (got.code, (got.data or {}).get("layer")) == (code, layer)
    assert sorted(path.name for path in workspace.iterdir() if path.name != ".menugate") == before
    assert not (workspace.parent / "made.txt").exists()
    kinds = ("refusal", "question") if layer else ("refusal", "outcome")
    assert any(row.fields.get("code") == code for row in rows(workspace, home, kinds=kinds))


async def test_rules_speak_about_it_too(workspace: Path, home: Path) -> None:
    config = home / "menugate.yaml"
    config.write_text("rules:\n  block: [glob]\n  deny: [grep(src/**)]\n")
    async with running(workspace, home, config=str(config)) as (built, live):
        assert problem(await errand(built, live, "glob", pattern="*")).code is Code.BLOCKED
        assert problem(await errand(built, live, "grep", pattern="x", path="src/main.py")).code is Code.RULE_DENIED
        assert isinstance(await errand(built, live, "grep", pattern="x", path="notes.md"), Done)


async def test_under_the_posture_of_now_and_not_of_before(workspace: Path, home: Path) -> None:
    async with running(workspace, home) as (built, live):
        assert isinstance(await errand(built, live, "Write", file_path="one.txt", content="x"), Done)
        person = built.settings.person
        change = PostureChange("c1", {"work_mode": WorkMode.REVIEW}, reason="the person chose it")
        await built.core.store.write(partial(posture_changes.request_posture_change, principal=person, change=change))
        got = problem(await errand(built, live, "Write", file_path="two.txt", content="x"))
        assert got.code is Code.READ_ONLY_WORK
    assert not (workspace / "two.txt").exists()


@pytest.mark.parametrize("tool", ["menu_enter", "complete", "think", "message_user", "menu_call", "menu_read"])
async def test_nothing_moves_or_speaks_on_a_tools_behalf(workspace: Path, home: Path, tool: str) -> None:
    async with running(workspace, home) as (built, live):
        got = problem(await errand(built, live, tool, mode="swe", tool="Read"))
        assert got.code is Code.NOT_CARRIED
        assert live.session.mode == "errands"


async def test_calls_within_calls_come_to_an_end(workspace: Path, home: Path) -> None:
    deep: dict[str, Any] = {"tool": "grep", "arguments": {"pattern": "first"}}
    async with running(workspace, home) as (built, live):
        assert isinstance(await errand(built, live, "errand", **deep), Done), "one errand may send another"
        deeper = {"tool": "errand", "arguments": deep}
        got = problem(await errand(built, live, "errand", **deeper))
        assert got.code is Code.NOT_GRANTED
        assert live.spending.calls == 3 + 3


async def test_a_spent_budget_holds_for_it(workspace: Path, home: Path) -> None:
    config = home / "menugate.yaml"
    config.write_text("budget:\n  calls: 2\n")
    async with running(workspace, home, config=str(config)) as (built, live):
        assert isinstance(await errand(built, live, "grep", pattern="x"), Done)
        assert problem(await errand(built, live, "grep", pattern="x")).code is Code.BUDGET_SPENT
