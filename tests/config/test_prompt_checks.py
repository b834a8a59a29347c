"""Is a prompt that speaks of changing what the person owns found, and are the shipped ones silent about it?"""

from pathlib import Path
from typing import Any

import pytest

from mcp_server.config.load import DATA
from mcp_server.config.prompt_checks import find_objections, find_prompt_faults
from mcp_server.config.prompts import PromptFolder, Prompts
from tests.yaml_text import load_yaml

ROWS: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables" / "prompt_wording.yaml").read_text())
SHIPPED = Prompts((PromptFolder("shipped", DATA / "prompts"),))
PLANTED = [row["says"] for row in ROWS if row["bad"]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["says"][:50])
def test_the_table(row: dict[str, Any]) -> None:
    assert bool(list(find_objections(row["says"]))) is row["bad"]


@pytest.mark.parametrize("key", SHIPPED.list_keys())
def test_no_shipped_prompt_suggests_it(key: str) -> None:
    assert list(find_objections(SHIPPED.get_prompt_text(key))) == []


@pytest.mark.parametrize("key", SHIPPED.list_keys())
def test_a_bad_sentence_planted_in_any_shipped_prompt_is_found(key: str) -> None:
    text = SHIPPED.get_prompt_text(key)
    for sentence in PLANTED:
        for planted in (f"{text}\n\n{sentence}\n", f"{sentence}\n\n{text}"):
            assert list(find_objections(planted)), f"{sentence} in {key}"


def test_the_shipped_prompts_are_in_order() -> None:
    assert list(find_prompt_faults(SHIPPED)) == []


def test_the_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "warmup.md").write_text("Look first.\n\nThen switch to agent mode. {{user_imput}}\n")
    words = Prompts((PromptFolder("mine", tmp_path), *SHIPPED.places))
    found = [(fault.file.removeprefix(str(tmp_path)), fault.line, fault.nearest) for fault in find_prompt_faults(words)]
    assert found == [("/agent/warmup.md", 3, "user_input"), ("/agent/warmup.md", 3, "")]
