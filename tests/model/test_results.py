"""Is every code explained, answered somewhere, and tested?"""

import re
from pathlib import Path

from mcp_server.config.load import DATA
from mcp_server.model.results import MEANINGS, Code

TESTS = Path(__file__).parents[1]


def said_in(*folders: Path, ending: str) -> set[str]:
    """The words in capitals."""
    text = "".join(path.read_text() for folder in folders for path in folder.rglob(f"*{ending}"))
    return set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", text))


def test_every_code_has_a_meaning() -> None:
    where = "MEANINGS of mcp_server/model/results.py"
    assert [f"`{code}` has no meaning in {where}" for code in Code if not MEANINGS.get(code)] == []


def test_every_code_is_answered_somewhere() -> None:
    answered: set[str] = set()
    for path in (path for top in ("mcp_server", "tools") for path in (DATA / top).rglob("*.py")):
        if path.name != "results.py" or path.parent.name != "model":
            answered.update(re.findall(r"\bCode\.([A-Z_]+)", path.read_text()))
    assert [f"nothing answers `{code}`" for code in Code if code.name not in answered] == []


def test_every_code_is_named_in_a_test() -> None:
    named = said_in(TESTS, ending=".py") | said_in(TESTS / "tables", ending=".yaml")
    assert [f"no test names `{code}`" for code in Code if code.name not in named] == []
