"""Is a server started when it is first asked, kept while it is used, and gone without ruins?"""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.model.results import Code
from tests.clients.waiting import async_becomes_true
from tests.tools.lsp.ground import SOURCE, Started, heard, patient, problem
from tools.lsp import lsp

pytestmark = pytest.mark.anyio


async def test_one_server_serves_the_calls_of_a_session_and_another_another(started: Started) -> None:
    async with started() as one:
        async with anyio.create_task_group() as calls:
            for _ in range(5):
                calls.start_soon(partial(one.text, "hover_symbol", symbol="greet", line=1))
        assert len(one.pids) == 1
        one.session = "another"
        await one.text("hover_symbol", symbol="greet", line=1)
        assert len(one.pids) == 2
        await one.keeping.drop("one", "language server ty")
        assert len(one.pids) == 1


async def test_a_server_nobody_asks_any_more_is_told_goodbye(started: Started, tmp_path: Path) -> None:
    async with started() as one:
        await one.text("hover_symbol", symbol="greet", line=1)
        one.keeping.clock = lambda: 10.0**9
        await one.keeping.sweep()
        assert one.pids == []
        one.keeping.clock = anyio.current_time
        await one.text("hover_symbol", symbol="greet", line=1)
        assert len(one.pids) == 1


@pytest.mark.parametrize("method", ["initialize", "textDocument/hover"])
async def test_one_that_never_answers_is_stopped(
    started: Started, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(lsp, "TIMEOUTS", patient(start=0.3, answer=0.3))
    async with started(on={method: [["silent"]]}) as one:
        ending = await problem(one)
        assert (ending.code, one.pids) == (Code.TIMEOUT, [])
        assert "`ty` did not answer in time and was stopped; the next call restarts it." in ending.message


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (
            [["complain", "no memory left"], ["end", 3]],
            "it ended. The next call restarts it. Its last output: no memory",
        ),
        ([["raw", "Content-Length: 1000000000\r\n\r\n"]], "a message of 1,000,000,000 bytes, over the limit"),
        ([["raw", "Content-Length: 3\r\n\r\n{]}"]], "a message that is not JSON"),
        ([["raw", "hello\r\n\r\n"]], "a message without its length"),
        ([["raw", "Content-Length: 9\r\n\r\n"], ["end", 0]], "it ended"),
    ],
)
async def test_one_that_breaks_is_an_error_and_starts_anew(started: Started, steps: list[Any], said: str) -> None:
    async with started(on={"textDocument/definition": steps}) as one:
        ending = await problem(one, "goto_definition")
        assert ending.code is Code.TOOL_FAILED
        assert said in ending.message
        assert one.pids == []
        # The next call finds no ruins.
        assert (await one.text("hover_symbol", symbol="greet", line=1)).startswith("greet\n")


async def test_one_that_dies_between_two_calls_starts_anew(started: Started) -> None:
    async with started() as one:
        await one.text("hover_symbol", symbol="greet", line=1)
        (child,) = one.shop.registry.children
        await child.kill()
        assert (await one.text("hover_symbol", symbol="greet", line=1)).startswith("greet\n")


@pytest.mark.parametrize(
    ("method", "params", "answer"),
    [
        (
            "workspace/applyEdit",
            {"edit": {"changes": {}}},
            {"result": {"applied": False, "failureReason": "This client changes no files."}},
        ),
        ("window/showDocument", {"uri": "file:///etc/passwd", "external": True}, {"result": {"success": False}}),
        ("workspace/configuration", {"items": [{"section": "python.analysis"}, {}]}, {"result": [None, None]}),
        ("client/registerCapability", {"registrations": []}, {"result": None}),
        ("window/showMessageRequest", {"type": 1, "message": "?", "actions": []}, {"result": None}),
        ("workspace/run", {}, {"error": {"code": -32601, "message": "`workspace/run` is not supported."}}),
    ],
)  # fmt: skip
async def test_what_it_asks_of_us_does_not_happen(
    started: Started, method: str, params: Any, answer: dict[str, Any]
) -> None:
    before = SOURCE.encode()
    if method == "workspace/applyEdit":
        start = {"line": 0, "character": 0}
        edit = {"range": {"start": start, "end": start}, "newText": "x"}
        params = {"edit": {"changes": {"file:///a.py": [edit]}}}
    async with started(on={"textDocument/hover": [["ask", method, params], ["heard"]]}) as one:
        replies = [message for message in await heard(one) if "method" not in message]
        assert [{key: reply[key] for key in reply if key in answer} for reply in replies] == [answer]
        assert (one.root / "a.py").read_bytes() == before


async def test_its_settings_are_ours(started: Started) -> None:
    asked = ["ask", "workspace/configuration", {"items": [{"section": "python.analysis"}, {}]}]
    scanned = ["say", "window/logMessage", {"type": 3, "message": "Found 1 source file"}]
    on = {"initialized": [scanned], "textDocument/hover": [asked, ["heard"]]}
    async with started(name="pyright-langserver", on=on) as one:
        ending = await one.text("hover_symbol", symbol="greet", line=1, server="pyright-langserver")
        assert '"result": [{"diagnosticMode": "openFilesOnly"}, null]' in ending


async def test_a_call_that_is_taken_back_is_taken_back_there_too(started: Started) -> None:
    slow: dict[str, Any] = {
        "textDocument/definition": [["complain", "it was asked"], ["silent"]],
        "textDocument/hover": [["heard"]],
    }
    async with started(on=slow) as one:
        async with anyio.create_task_group() as calls:
            calls.start_soon(partial(one.call, "goto_definition", symbol="greet", line=1))
            assert await async_becomes_true(lambda: any(child.last_words for child in one.shop.registry.children))
            calls.cancel_scope.cancel()
        methods = [message.get("method") for message in await heard(one)]
        assert "$/cancelRequest" in methods


async def test_a_call_taken_back_while_it_starts_leaves_nothing_running(started: Started) -> None:
    async with started(on={"initialize": [["silent"]]}) as one:
        with anyio.move_on_after(0.5):
            await one.call("hover_symbol", symbol="greet", line=1)
        assert one.pids == []
