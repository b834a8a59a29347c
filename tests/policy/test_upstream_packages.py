"""Is the package that a command line fetches recognized, with its version and the names it could be taken for?"""

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.model.upstream_packages import PackageSource
from mcp_server.policy.upstream_packages import KNOWN, PackageRun, find_better_known, find_package
from tests.yaml_text import load_yaml

CASES: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables" / "upstream_packages.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["run"])
def test_table(case: dict[str, Any]) -> None:
    package = find_package(shlex.split(case["run"]))
    if case["package"] is None:
        assert package is None
        return
    assert package is not None
    assert [package.source, package.name, package.version] == [str(part) for part in case["package"]]
    assert package.is_exact is case.get("exact", False)
    assert find_better_known(package) == case.get("like", [])


@pytest.mark.parametrize("source", PackageSource)
def test_no_known_name_is_taken_for_another(source: PackageSource) -> None:
    assert {name: like for name in KNOWN[source] if (like := find_better_known(PackageRun(source, name)))} == {}


@given(
    st.lists(
        st.sampled_from(["npx", "uvx", "run", "docker", "-p", "--from", "--", "=", "@", "a@1.2.3", ""]) | st.text()
    )
)
def test_any_command_line_has_an_answer(words: list[str]) -> None:
    package = find_package(words)
    assert package is None or isinstance(find_better_known(package), list)
