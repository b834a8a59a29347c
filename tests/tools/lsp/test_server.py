"""Does lsp_tool hold, whatever its server does? Against a real program that misbehaves as its script says."""

import json
import os
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_server.guards.processes.commands import CommandHost
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Done, Problem
from tests.clients.served import PATIENCE
from tests.tools.lsp.ground import LspWorkbench, bench, patient, server
from tools.lsp import lsp
from tools.lsp.queries import COMMANDS

SOURCE = "def greet(name):\n    return name\n\n\ngreet(greet)\n"
Started = Callable[..., AbstractAsyncContextManager[LspWorkbench]]
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def started(tmp_path: Path) -> Started:
    @asynccontextmanager
    async def start(name: str = "ty", source: str | bytes = SOURCE, **script: Any) -> AsyncGenerator[LspWorkbench]:
        root = tmp_path / "work"
        root.mkdir(exist_ok=True)
        (root / "a.py").write_bytes(source.encode() if isinstance(source, str) else source)
        async with bench(root, server(tmp_path / "bin", name, script)) as one:
            yield one

    return start


async def problem(one: LspWorkbench, command: str = "hover_symbol", **arguments: Any) -> Problem:
    given: dict[str, Any] = {"symbol": "greet", "line": 1, **arguments}
    ending = await one.call(command, **given)
    assert isinstance(ending, Problem), ending
    return ending


async def test_the_places_of_a_name(started: Started) -> None:
    async with started() as one:
        assert await one.text("goto_references", symbol="greet", line=1) == (
            "a.py:1:5\tdef greet(name):\na.py:5:1\tgreet(greet)\na.py:5:7\tgreet(greet)\n\n"
            "[3 references in 1 file. `ty` answered.]"
        )


async def test_a_page_of_them_and_the_call_that_goes_on(started: Started) -> None:
    async with started() as one:
        text = await one.text("goto_references", symbol="greet", line=1, limit=1, offset=1)
        assert text.startswith("a.py:5:1\tgreet(greet)\n\n[3 references in 1 file; 2-2 are shown.")
        call: Any = json.loads(text[text.index("{") : text.rindex("}") + 1])
        asked = {"command": "goto_references", "path": "a.py", "symbol": "greet", "line": 1, "limit": 1}
        assert call == {**asked, "offset": 2}
        assert "Continue" not in await one.text(**call)
        assert "nothing from 10 on" in await one.text(**call | {"offset": 9})


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", None])
async def test_columns_are_the_readers_whatever_the_server_counts(started: Started, encoding: str | None) -> None:
    source = 'é = "😀😀"; name = 1\r\n"😀"; name\r\nname\r\n'.encode()
    async with started(source=source, encoding=encoding) as one:
        text = await one.text("goto_references", symbol="name", line=2)
        assert text.startswith('a.py:1:11\té = "😀😀"; name = 1\na.py:2:6\t"😀"; name\na.py:3:1\tname\n\n')
        text = await one.text("rename_preview", symbol="name", line=2, new_name="n😀")
        assert 'a.py:2:6\t- "😀"; name\na.py:2:6\t+ "😀"; n😀\n' in text
        assert "Nothing was written" in text
    assert (one.root / "a.py").read_bytes() == source


async def test_it_is_told_that_we_count_in_both_and_keep_nothing_from_it(started: Started) -> None:
    async with started(on={"textDocument/hover": [["heard"]]}, source="\ufeffgreet = 1\n") as one:
        sent = await heard(one)
        (hello,) = [message["params"] for message in sent if message.get("method") == "initialize"]
        assert hello["capabilities"]["general"]["positionEncodings"] == ["utf-8", "utf-16"]
        assert hello["capabilities"]["workspace"]["applyEdit"] is False
        assert hello["rootUri"] == one.root.as_uri()
        (opened,) = [message["params"] for message in sent if message.get("method") == "textDocument/didOpen"]
        assert opened["textDocument"] == {
            "uri": (one.root / "a.py").as_uri(),
            "languageId": "python",
            "version": 1,
            "text": "greet = 1\n",
        }


async def heard(one: LspWorkbench, **arguments: Any) -> list[Any]:
    given: dict[str, Any] = {"symbol": "greet", "line": 1, **arguments}
    text = await one.text("hover_symbol", **given)
    return json.loads(text[: text.rindex("\n\n[")])


async def test_a_warm_server_knows_what_changed(started: Started) -> None:
    async with started(on={"textDocument/hover": [["heard"]]}) as one:
        (one.root / "b.py").write_text("greet = 2\n")
        await heard(one)
        (pid,) = one.pids
        (one.root / "a.py").write_text("x\ngreet\n")
        (one.root / "b.py").unlink()
        (one.root / "c.py").write_text("greet = 3\n")
        sent = await heard(one, line=2)
        assert one.pids == [pid]
        changed = [message["params"] for message in sent if message.get("method") == "textDocument/didChange"]
        assert [one["textDocument"]["version"] for one in changed] == [2]
        assert [one["contentChanges"] for one in changed] == [[{"text": "x\ngreet\n"}]]
        told = [message["params"] for message in sent if message.get("method") == "workspace/didChangeWatchedFiles"]
        changes = {(change["uri"].rpartition("/")[2], change["type"]) for one in told for change in one["changes"]}
        assert {("a.py", 2), ("b.py", 3), ("c.py", 1)} == changes


async def test_what_is_open_is_kept_the_same_while_another_file_is_asked_about(started: Started) -> None:
    async with started() as one:
        (one.root / "b.py").write_text("greet()\n")
        await one.text("goto_references", symbol="greet", line=1)
        (one.root / "a.py").write_text("other = 1\n")
        assert "a.py" not in await one.text("goto_references", "b.py", symbol="greet", line=1)
        (one.root / "a.py").unlink()
        assert "b.py:1:1" in await one.text("goto_references", "b.py", symbol="greet", line=1)


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
        (child,) = one.shop.nursery.children
        await child.kill()
        assert (await one.text("hover_symbol", symbol="greet", line=1)).startswith("greet\n")


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


async def test_places_outside_are_counted_and_not_shown(started: Started, tmp_path: Path) -> None:
    (tmp_path / "work_evil").mkdir()
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "outside.py").write_text("SECRET\n")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    (root / "secrets.yaml").write_text("SECRET\n")
    (root / "blob.py").write_bytes(b"SECRET\0\n")
    here = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
    outside = [
        "file:///etc/passwd",
        f"{root.as_uri()}/../outside.py",
        f"{root.as_uri()}/%2e%2e/outside.py",
        f"{root.as_uri()}_evil/a.py",
        f"file://elsewhere{root}/a.py",
        f"{root.as_uri()}/a.py?x",
        f"{root.as_uri()}/a%00.py",
        root.as_uri(),
        "https://example.org/a.py",
        "vscode-vfs://x/typeshed/os.pyi",
        "//[",
        "",
    ]
    unreadable = ["link.py", "secrets.yaml", "blob.py", "gone.py", ".menugate/state.db"]
    uris = [*outside, *(f"{root.as_uri()}/{name}" for name in unreadable), f"file://localhost{root}/a%2epy"]
    found = [{"uri": uri, "range": here} for uri in uris] + [
        {"uri": 3, "range": here},
        {"uri": uris[-1], "range": {"start": {"line": 99, "character": 0}, "end": {}}},
        {"uri": uris[-1], "range": {"start": {"line": 99, "character": 0}, "end": {"line": 99, "character": 0}}},
        "x",
        None,
    ]
    async with started(on={"textDocument/definition": [["answer", found]]}) as one:
        text = await one.text("goto_definition", symbol="greet", line=1)
    assert "SECRET" not in text
    lines = text.splitlines()
    assert lines[0] == "a.py:1:1\tdef greet(name):"
    assert lines[1] == ""
    assert f"{len(outside)} definitions" in lines[2]
    assert "`passwd`" in lines[2]
    assert f"{len(unreadable) + 1} cannot be shown" in lines[2]


async def test_a_yes_to_one_file_of_secrets_shows_no_other(started: Started, tmp_path: Path) -> None:
    here = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
    uris = [(tmp_path / "work" / name).as_uri() for name in (".ssh/asked.py", ".ssh/other.py", "key.pem")]
    found = [{"uri": uri, "range": here} for uri in uris]
    async with started(on={"textDocument/definition": [["answer", found]]}) as one:
        (one.root / ".ssh").mkdir()
        for name in (".ssh/asked.py", ".ssh/other.py", "key.pem"):
            (one.root / name).write_text("greet = 'SECRET'\n")
        text = await one.text("goto_definition", ".ssh/asked.py", symbol="greet", line=1)
        assert text.count("SECRET") == 1
        assert "2 cannot be shown" in text


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


async def test_it_says_so_while_the_project_is_still_looked_through(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lsp, "TIMEOUTS", patient(indexing=0.1))
    begin = ["say", "$/progress", {"token": 1, "value": {"kind": "begin", "title": "indexing"}}]
    async with started(on={"initialized": [begin]}) as one:
        assert "still indexing" in await one.text("goto_references", symbol="greet", line=1)
    async with started(name="pyright-langserver") as one:
        known = await one.text("goto_references", symbol="greet", line=1, server="pyright-langserver")
        assert "still indexing" in known
    end = ["say", "$/progress", {"token": 1, "value": {"kind": "end"}}]
    async with started(on={"initialized": [begin, end]}) as one:
        assert "indexing" not in await one.text("goto_references", symbol="greet", line=1)


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


async def test_a_call_that_is_taken_back_is_taken_back_there_too(started: Started) -> None:
    slow: dict[str, Any] = {
        "textDocument/definition": [["say", "$/progress", {}], ["silent"]],
        "textDocument/hover": [["heard"]],
    }
    async with started(on=slow) as one:
        with anyio.move_on_after(0.5):
            await one.call("goto_definition", symbol="greet", line=1)
        methods = [message.get("method") for message in await heard(one)]
        assert "$/cancelRequest" in methods


async def test_a_call_taken_back_while_it_starts_leaves_nothing_running(started: Started) -> None:
    async with started(on={"initialize": [["silent"]]}) as one:
        with anyio.move_on_after(0.5):
            await one.call("hover_symbol", symbol="greet", line=1)
        assert one.pids == []


async def test_where_a_symbol_is_meant_to_be(started: Started) -> None:
    tree = [
        {"name": "A", "kind": 5, "range": span(0), "selectionRange": span(0), "children": [symbol("run", 6, 0)]},
        {"name": "B", "kind": 5, "range": span(4), "selectionRange": span(4), "children": [symbol("run", 6, 4)]},
    ]
    async with started(on={"textDocument/documentSymbol": [["answer", tree]]}) as one:
        ambiguous = await problem(one, symbol="run", line=None)
        assert ambiguous.code is Code.AMBIGUOUS_MATCH
        assert "on lines 1 (`A/run`), 5 (`B/run`)" in ambiguous.message
        for spelling in ("B/run", "B.run", "B::run"):
            assert (await one.text("hover_symbol", symbol=spelling)).startswith("greet\n")
        missing = await problem(one, symbol="name", line=None)
        assert missing.code is Code.NO_MATCH
        assert "declares no `name`. It is on line 1, 2." in missing.message
        assert (await one.text("document_symbols")).startswith("a.py:1:1\tclass A\n")
        assert "a.py:5:1\tmethod B/run\n" in await one.text("document_symbols")


def span(line: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 5}}


def symbol(name: str, kind: int, line: int) -> dict[str, Any]:
    return {"name": name, "kind": kind, "range": span(line), "selectionRange": span(line)}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({"symbol": "name", "line": 5}, Code.NO_MATCH, "which reads `greet(greet)`. It is on line 2, 1."),
        ({"symbol": "nope", "line": 5}, Code.NO_MATCH, "The file does not contain it."),
        ({"symbol": "greet", "line": 6}, Code.INVALID_ARGUMENTS, "`a.py` has only 5 lines, no line 6."),
    ],
)  # fmt: skip
async def test_what_cannot_be_pointed_at(started: Started, arguments: dict[str, Any], code: Code, said: str) -> None:
    async with started() as one:
        ending = await problem(one, "goto_definition", **arguments)
        assert ending.code is code
        assert said in ending.message


async def test_what_it_cannot_do_is_said(started: Started) -> None:
    on = {"initialize": [["answer", {"capabilities": {"hoverProvider": True}}]]}
    async with started(on=on) as one:
        assert "does not support `rename`" in (await problem(one, "rename_preview", new_name="x")).message
        assert "does not support" in (await problem(one, "document_symbols")).message


async def test_files_that_are_none_for_it(started: Started, tmp_path: Path) -> None:
    async with started() as one:
        for path, code in (
            ("gone.py", Code.NOT_FOUND),
            ("../a.py", Code.PATH_REFUSED),
            ("/etc/a.py", Code.PATH_REFUSED),
            ("notes.txt", Code.INVALID_ARGUMENTS),
            ("a", Code.INVALID_ARGUMENTS),
        ):
            ending = await one.call("document_symbols", path)
            assert isinstance(ending, Problem)
            assert ending.code is code
        (one.root / "a.py").write_bytes(b"\xff = 1\n")
        assert (await problem(one, "document_symbols")).code is Code.NOT_TEXT
        (one.root / "folder.py").mkdir()
        assert isinstance(await one.call("document_symbols", "folder.py"), Problem)


@pytest.mark.parametrize("profile", [Profile.RESTRICTED, Profile.TRUSTED, Profile.UNRESTRICTED])
async def test_the_program_is_shut_in(started: Started, tmp_path: Path, profile: Profile) -> None:
    """What it tries is seen in what it says about it: nothing written, nobody reached."""
    async with started() as one:
        one.profile = profile
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        trying = (tmp_path / "bin" / "ty").read_text().replace(
            "def main() -> None:\n",
            "def main() -> None:\n"
            "    import socket\n"
            f"    for path in ({str(one.root / 'canary')!r}, {str(tmp_path / 'canary')!r}):\n"
            "        try:\n"
            "            open(path, 'w').close()\n"
            "        except OSError:\n"
            "            continue\n"
            "    try:\n"
            f"        socket.create_connection(('127.0.0.1', {port}), 1)\n"
            "    except OSError as error:\n"
            "        print('no network', file=sys.stderr, flush=True)\n",
        )  # fmt: skip
        (tmp_path / "bin" / "ty").write_text(trying)
        assert (await one.text("hover_symbol", symbol="greet", line=1)).startswith("greet\n")
        assert not (one.root / "canary").exists()
        assert not (tmp_path / "canary").exists()
        (child,) = one.shop.nursery.children
        with anyio.fail_after(PATIENCE):
            # Its errors come on a pipe of their own, which is read beside its answers.
            while not child.last_words:
                await anyio.lowlevel.checkpoint()
        assert child.last_words == "no network"
        listening.close()


class TestWhichServer:
    """The best of those that are installed, and none that may run the project's code unless the call was judged so."""

    async def test_none_is_installed(self, tmp_path: Path) -> None:
        (tmp_path / "a.go").write_text("package a\n")
        async with bench(tmp_path, elsewhere=False) as one:
            one.profile = Profile.TRUSTED
            ending = await one.call("document_symbols", "a.go")
            assert isinstance(ending, Problem)
            assert "No language server for Go is installed" in ending.message
            assert "`gopls` (go install golang.org/x/tools/gopls@latest)" in ending.way_out

    async def test_one_that_may_run_code_is_not_started_unasked(self, started: Started) -> None:
        async with started(name="jedi-language-server") as one:
            one.shop = alone(one)
            ending = await problem(one)
            assert ending.code is Code.NOT_GRANTED
            assert "may run code of the project" in ending.message
            assert '"server": "jedi-language-server"' in ending.way_out
            assert "pip install ty" in ending.way_out
            named = await problem(one, server="jedi-language-server")
            assert named.code is Code.PROFILE_TOO_LOW
            one.profile = Profile.TRUSTED
            text = await one.text("hover_symbol", symbol="greet", line=1, server="jedi-language-server")
            assert "`jedi-language-server` answered, and it reports syntax errors only." in text

    async def test_languages_whose_servers_all_may_are_for_trusted_projects(self, started: Started) -> None:
        async with started(name="gopls") as one:
            (one.root / "a.go").write_text("package greet\n")
            refused = await one.call("hover_symbol", "a.go", symbol="greet", line=1)
            assert isinstance(refused, Problem)
            assert refused.code is Code.PROFILE_TOO_LOW
            one.profile = Profile.TRUSTED
            assert "`gopls` answered" in await one.text("hover_symbol", "a.go", symbol="greet", line=1)

    async def test_one_of_another_language_is_not_asked(self, started: Started) -> None:
        async with started() as one:
            one.profile = Profile.TRUSTED
            ending = await problem(one, server="gopls")
            assert "`gopls` is not a server for Python." in ending.message

    async def test_one_that_lies_in_the_workspace_is_nobodys(self, started: Started, tmp_path: Path) -> None:
        async with started() as one:
            (tmp_path / "bin").rename(one.root / "bin")
            async with bench(one.root, one.root / "bin", elsewhere=False) as other:
                ending = await problem(other)
                assert "No language server for Python is installed" in ending.message


def alone(one: LspWorkbench) -> CommandHost:
    """The same workshop, where no better server is found than the test's own."""
    folders = [Path(folder) for folder in one.shop.ground.search_path.split(os.pathsep)]
    better = ("ty", "pyright-langserver")
    kept = [str(folder) for folder in folders if not any((folder / name).exists() for name in better)]
    return replace(one.shop, ground=replace(one.shop.ground, search_path=os.pathsep.join(kept)))
