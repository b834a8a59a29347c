"""Is an answer a page of lines, with the call that goes on and columns as a reader counts them?"""

import json
from typing import Any

import pytest

from tests.tools.lsp.ground import Started, patient
from tools.lsp import lsp

pytestmark = pytest.mark.anyio


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
        assert "none from 10 on" in await one.text(**call | {"offset": 9})


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
