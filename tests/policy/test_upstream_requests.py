"""Is what a command line asks for understood as a whole, or not at all?"""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcp_server.policy.upstream_requests import UnkeptPackage, find_request

TABLE = Path(__file__).parents[1] / "tables" / "upstream_requests.yaml"
ROWS: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["run"])
def test_what_a_command_line_asks_for(row: dict[str, Any]) -> None:
    argv = shlex.split(row["run"])
    if "unkept" in row:
        with pytest.raises(UnkeptPackage) as told:
            find_request(argv)
        assert str(told.value) == row["unkept"]
        return
    found = find_request(argv)
    if row["asks"] is None:
        assert found is None
        return
    assert found is not None
    assert [found.installer, list(found.specs), found.program, list(found.arguments)] == row["asks"]
    assert (found.name, list(found.options)) == (row["name"], row.get("options", []))
    assert found.python == row.get("python", "")


def test_only_what_is_installed_decides_the_folder() -> None:
    one, other, third = (find_request(shlex.split(line)) for line in ("uvx a --x", "uvx a --y", "uvx a@1 --x"))
    assert one and other and third
    assert one.digest == other.digest != third.digest
