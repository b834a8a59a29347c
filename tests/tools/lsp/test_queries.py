"""Is every question asked as it should be, whatever comes back?"""

from typing import Any

import pytest

from mcp_server.model.results import Code, Done
from tests.tools.lsp.ground import Started, heard, patient, problem
from tools.lsp import lsp
from tools.lsp.queries import COMMANDS

pytestmark = pytest.mark.anyio


async def test_its_own_error_is_passed_on_and_it_goes_on(started: Started) -> None:
    async with started(on={"textDocument/rename": [["error", -32602, "cannot rename \x1b[31mthis"]]}) as one:
        ending = await problem(one, "rename_preview", new_name="x")
        assert ending.message == "`ty` says: cannot rename \\x1b[31mthis"
        (pid,) = one.pids
        await one.text("hover_symbol", symbol="greet", line=1)
        assert one.pids == [pid]


async def test_what_gave_way_to_a_change_is_asked_again(started: Started) -> None:
    async with started(on={"textDocument/hover": [["error", -32801, "content modified"]]}) as one:
        assert "content modified" in (await problem(one)).message
    asked: list[Any] = [["error", -32801, "x"], ["heard"]]
    async with started(on={"textDocument/definition": asked[:1], "textDocument/hover": asked[1:]}) as one:
        await problem(one, "goto_definition")
        methods = [message.get("method") for message in await heard(one)]
        assert methods.count("textDocument/definition") == 3


@pytest.mark.parametrize(
    "hostile",
    [
        [],
        {},
        "x",
        7,
        [[]],
        [None],
        {"uri": {}},
        [{"uri": "file:///a", "range": []}],
        {"contents": [[3]]},
        {"changes": []},
    ],
    ids=repr,
)
async def test_results_of_any_shape_are_no_fault_of_ours(started: Started, hostile: Any) -> None:
    methods = ["definition", "references", "hover", "rename", "documentSymbol", "diagnostic"]
    on = {f"textDocument/{method}": [["answer", hostile]] for method in methods}
    async with started(on={**on, "workspace/symbol": [["answer", hostile]]}) as one:
        for command in COMMANDS:
            assert isinstance(await one.call(command, symbol="greet", line=1, new_name="x"), Done)


async def test_problems_that_are_announced_are_waited_for(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsp, "TIMEOUTS", patient(diagnostics=0.3))
    here = {"start": {"line": 4, "character": 0}, "end": {"line": 4, "character": 3}}

    def publish(uri: str, **about: Any) -> list[Any]:
        complaint = {"range": here, "severity": 2, "code": "W1", "message": "odd\n  thing"}
        return ["say", "textDocument/publishDiagnostics", {"uri": uri, "diagnostics": [complaint], **about}]

    async with started(pull=False) as one:
        assert (await problem(one, "file_diagnostics")).code is Code.TIMEOUT
        uri = (one.root / "a.py").as_uri()
    opening = "textDocument/didOpen"
    async with started(pull=False, on={opening: [publish(uri, version=1)]}) as one:
        assert (await one.text("file_diagnostics")).startswith(
            "a.py:5:1\twarning W1: odd thing\n\n[1 problem in 1 file."
        )
        # What was announced is still true while the file is the same, and no longer once it changed.
        assert "odd thing" in await one.text("file_diagnostics")
        (one.root / "a.py").write_text("x = 1\n")
        assert (await problem(one, "file_diagnostics")).code is Code.TIMEOUT
    async with started(pull=False, on={opening: [publish(uri, version=0), publish("file:///other")]}) as one:
        assert "odd" in await one.text("file_diagnostics")


async def test_what_it_cannot_do_is_said(started: Started) -> None:
    on = {"initialize": [["answer", {"capabilities": {"hoverProvider": True}}]]}
    async with started(on=on) as one:
        assert "does not support `rename`" in (await problem(one, "rename_preview", new_name="x")).message
        assert "does not support" in (await problem(one, "document_symbols")).message
