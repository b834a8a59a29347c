"""Does the server know the files as they are now?"""

from pathlib import Path

import pytest

from mcp_server.model.results import Code, Problem
from tests.tools.lsp.ground import Started, heard, problem

pytestmark = pytest.mark.anyio


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
