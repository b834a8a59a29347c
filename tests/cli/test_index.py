"""Is the index made, asked and made anew from the command line, by people and by programs?"""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Type


def test_it_is_brought_up_to_date_and_made_anew_when_asked(place: Path, menugate: Type) -> None:
    first = json.loads(menugate("index build", "--json").out)
    assert (first["files"], first["read"]) == (2, 2)
    assert first["bytes"] > 0
    assert json.loads(menugate("index build --anew --json").out)["read"] == 2
    assert "2 in the index" in menugate("index build").out


def test_words_are_found_with_their_lines(place: Path, menugate: Type) -> None:
    said = menugate("index find", "def main")
    assert said.code == 0
    assert "src/main.py:1: def main():" in said.out
    found = json.loads(menugate("index find --json", "return").out)
    assert (found["total"], found["complete"]) == (1, True)
    assert [(line["path"], line["line"]) for line in found["lines"]] == [("src/main.py", 2)]


def test_definitions_are_found_by_name(place: Path, menugate: Type) -> None:
    assert "src/main.py:1: function main" in menugate("index symbols main").out
    (symbol,) = json.loads(menugate("index symbols main --json").out)["symbols"]
    assert (symbol["name"], symbol["kind"], symbol["path"]) == ("main", "function", "src/main.py")


@pytest.mark.parametrize("action", ["find", "symbols"])
def test_what_is_not_there_ends_with_another_code(action: str, place: Path, menugate: Type) -> None:
    said = menugate(f"index {action}", "xyzzy")
    assert said.code == 1
    assert said.out.startswith("0 ")
