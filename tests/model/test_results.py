"""Is every code explained, answered somewhere, and tested?"""

import inspect
import re
from pathlib import Path

import pytest

from mcp_server.config.load import DATA
from mcp_server.model.results import Code

TESTS = Path(__file__).parents[1]


def said_in(*folders: Path, ending: str) -> set[str]:
    """The words in capitals."""
    text = "".join(path.read_text() for folder in folders for path in folder.rglob(f"*{ending}"))
    return set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", text))


def test_a_code_without_a_meaning_cannot_be_written() -> None:
    source = Path(inspect.getfile(Code)).read_text()
    (mute,) = re.findall(r'^    STALE = "STALE"(, ".*")$', source, re.MULTILINE)
    with pytest.raises(TypeError, match="the code `STALE` has no meaning: write"):
        exec(source.replace(mute, ""), {"__name__": Code.__module__})


def test_every_code_means_something_of_its_own() -> None:
    assert len({code.meaning for code in Code}) == len(Code)
    assert [code for code in Code if code != code.name or Code(code.name) is not code] == []


def test_every_code_is_answered_somewhere() -> None:
    answered: set[str] = set()
    for path in (path for top in ("mcp_server", "tools") for path in (DATA / top).rglob("*.py")):
        if path.name != "results.py" or path.parent.name != "model":
            answered.update(re.findall(r"\bCode\.([A-Z_]+)", path.read_text()))
    assert [f"nothing answers `{code}`" for code in Code if code.name not in answered] == []
    unknown = sorted(answered - set(Code.__members__))
    assert [f"`{name}` is answered, and is not in `Code` of mcp_server/model/results.py" for name in unknown] == []


def test_every_code_is_named_in_a_test() -> None:
    named = said_in(TESTS, ending=".py") | said_in(TESTS / "tables", ending=".yaml")
    assert [f"no test names `{code}`" for code in Code if code.name not in named] == []
