"""Does what CONTRIBUTING.md says lead to something that works, and is each forgotten step reported by name?

Every recipe of tests/tables/recipes.yaml is followed in a copy of this tree, by script. Then it is followed again with
one step left out at a time.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.test_rooms import HOUSE
from tests.yaml_text import load_yaml

RECIPES: dict[str, list[dict[str, Any]]] = load_yaml((HOUSE / "tests" / "tables" / "recipes.yaml").read_text())
NOT_COPIED = shutil.ignore_patterns(".cache", "recipes.yaml")
"""The recipes name what they add, and would do for its test."""
PAGE = HOUSE / "CONTRIBUTING.md"
COPIED = ("mcp_server", "tools", "menus", "prompts", "docs", "bench", "tests", "pyproject.toml", "ARCHITECTURE.md")


def edited(step: Mapping[str, Any], text: str) -> str:
    """The file as it is once the step is done."""
    if "create" in step:
        assert not text, f"{step['file']} is there already"
        return str(step["create"])
    for edit in step["edits"]:
        if "append" in edit:
            text += edit["append"]
        elif "swap" in edit:
            assert text.count(edit["swap"]) == 1, f"{step['file']}: `{edit['swap']}` is there not just once"
            text = text.replace(edit["swap"], edit["for"])
        else:
            lines = text.splitlines(keepends=True)
            (place,) = [number for number, line in enumerate(lines) if line.startswith(edit["below"])]
            text = "".join([*lines[: place + 1], edit["add"], *lines[place + 1 :]])
    return text


def followed(steps: list[dict[str, Any]]) -> dict[str, str]:
    """The files that these steps leave behind; a file may be in several of them."""
    files: dict[str, str] = {}
    for step in (one for one in steps if "file" in one):
        path = HOUSE / step["file"]
        before = files.get(step["file"], path.read_text() if path.exists() else "")
        files[step["file"]] = edited(step, before)
    return files


def judged(copy: Path, states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    program = str(HOUSE / "tests" / "architecture" / "scratch.py")
    ran = subprocess.run(
        [sys.executable, "-P", program], input=json.dumps(states), capture_output=True, text=True, cwd=copy, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.skipif(not PAGE.exists(), reason="there is no CONTRIBUTING.md")
@pytest.mark.parametrize("thing", RECIPES)
def test_contributing_has_the_same_steps(thing: str) -> None:
    section = PAGE.read_text().partition(f"### Add a {thing}\n")[2].partition("\n#")[0]
    written = [step.replace("`", "") for step in re.findall(r"^\d+\. (.+?)(?:[:,.] |[:.]?$)", section, re.MULTILINE)]
    followed = [step.get("named", step["file"]) for step in RECIPES[thing] if "file" in step and "works" not in step]
    assert written == list(dict.fromkeys(followed))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    for name in COPIED:
        if (HOUSE / name).is_dir():
            shutil.copytree(HOUSE / name, folder / name, ignore=NOT_COPIED)
        else:
            shutil.copy2(HOUSE / name, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("thing", RECIPES)
def test_the_steps_are_enough_and_none_can_be_forgotten(thing: str, copy: Path) -> None:
    steps = [step for step in RECIPES[thing] if "works" not in step]
    proofs = {step["file"]: step["works"] for step in RECIPES[thing] if "works" in step}
    proven = [
        *proofs,
        *(step["file"] for step in steps if step.get("file", "").startswith("tests/") and "create" in step),
    ]
    assert proven, f"no test says that a {thing} works that was added"
    checks = [*dict.fromkeys(step["by"] for step in steps), *proven]
    states: list[dict[str, Any]] = [{"files": {**followed(steps), **proofs}, "checks": checks}]
    for left_out in steps:
        rest = [step for step in steps if step is not left_out]
        states.append({"files": followed(rest), "checks": [left_out["by"]], "generated": "file" in left_out})
    whole, *without = judged(copy, states)
    assert whole["good"], whole["said"]
    for step, verdict in zip(steps, without, strict=True):
        name = step.get("file", "make generate")
        assert not verdict["good"], f"nothing notices that `{name}` was left out of adding a {thing}"
        assert step["forgotten"] in verdict["said"], f"{name}: `{step['forgotten']}` is not said:\n{verdict['said']}"
