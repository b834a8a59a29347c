"""Is every wrong or hostile file refused, at its line and in words? The cases are tests/tables/bad_yaml.yaml."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from mcp_server.config.faults import ConfigFaults
from mcp_server.config.load import load_config_files
from tests.config.samples import SHIPPED, mode_text, shipped_tools
from tests.yaml_text import load_yaml

CASES: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables" / "bad_yaml.yaml").read_text())
TOOLS = shipped_tools()


def content(case: dict[str, Any]) -> bytes:
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    return (mode_text(**case["edit"]) if "edit" in case else str(case["text"])).encode()


def placed(case: dict[str, Any], folder: Path) -> tuple[Path, list[Path], Path | None]:
    """The file under test, and what `load` is called with so that it meets the file."""
    menus, more, config = folder / "menus", folder / "more", folder / "menugate.yaml"
    more.mkdir()
    shutil.copytree(SHIPPED, menus)
    match case["as"]:
        case "config":
            return config, [menus], config
        case "mode":
            return more / "mine.yaml", [menus, more], None
        case "stages" | "work_modes" | "hosts":
            return menus / f"{case['as']}.yaml", [menus], None
        case name:
            return more / name, [menus, more], None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "_"))
def test_a_bad_file_is_refused_where_it_is_wrong(case: dict[str, Any], tmp_path: Path) -> None:
    file, folders, config = placed(case, tmp_path)
    file.write_bytes(content(case))
    answer = load_config_files(folders, config, TOOLS)
    assert isinstance(answer, ConfigFaults)
    first = next(iter(answer))
    assert case["says"] in first.message, str(answer)
    assert first.line == case["line"], str(answer)
    assert first.nearest == case.get("nearest", ""), str(answer)
    assert first.file == str(file if case["line"] or config is None else tmp_path / "nowhere")
    assert len(answer) == case.get("faults", 1), str(answer)


def test_the_table_is_as_long_as_it_was() -> None:
    """A case that goes missing is a guard that goes missing."""
    assert len(CASES) >= 100
    assert len({case["name"] for case in CASES}) == len(CASES)
