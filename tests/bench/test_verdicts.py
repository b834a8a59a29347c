"""Is what the conformance suite wrote read rightly?"""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.node import parse_major
from bench.verdicts import build_results, load_checks, parse_scenario, render_table

REQUIREMENTS: dict[str, Any] = {
    "server": ["ping", "tools-list"],
    "client": ["initialize"],
    "not_scored": [
        {"scenario": "tasks-lifecycle", "leg": "server", "reason": "extension"},
        {"scenario": "auth/dpop", "leg": "client", "reason": "extension"},
    ],
}


def check(status: str, name: str = "x", message: str = "") -> dict[str, str]:
    return {"id": name, "status": status, "errorMessage": message}


@pytest.mark.parametrize(
    ("folder", "scenario"),
    [
        ("server-ping-2026-01-02T11-52-40-259Z", "ping"),
        ("server-server-stateless-2026-01-02T11-52-40-259Z", "server-stateless"),
        ("server-json-schema-2020-12-2026-01-02T11-52-40-259Z", "json-schema-2020-12"),
        ("client-ping-2026-01-02T11-52-40-259Z", None),
        ("server-ping", None),
    ],
)
def test_a_folder_tells_its_scenario(folder: str, scenario: str | None) -> None:
    assert parse_scenario(folder) == scenario


@pytest.mark.parametrize(
    ("statuses", "word", "failed"),
    [
        (["SUCCESS", "INFO", "SKIPPED"], "pass", False),
        (["SUCCESS", "WARNING"], "warn", False),
        (["SUCCESS", "FAILURE", "SUCCESS"], "fail", True),
        (["WARNING", "FAILURE"], "fail", True),
        ([], "missing", True),
    ],
)
def test_the_worst_check_of_a_scenario_decides(statuses: list[str], word: str, failed: bool) -> None:
    told = build_results(REQUIREMENTS, {"ping": [check(status) for status in statuses]})
    assert (told[0].word, told[0].failed) == (word, failed)


def test_a_scored_scenario_that_left_nothing_is_a_failure_and_an_unscored_failure_is_none() -> None:
    told = build_results(REQUIREMENTS, {"ping": [check("SUCCESS")], "tasks-lifecycle": [check("FAILURE")]})
    assert [(one.scenario, one.word, one.failed) for one in told] == [
        ("ping", "pass", False),
        ("tools-list", "missing", True),
        ("tasks-lifecycle", "fail", False),
    ]


def test_what_the_suite_wrote_is_found_by_scenario(tmp_path: Path) -> None:
    for folder, checks in (
        ("server-ping-2026-01-02T11-52-40-259Z", [check("SUCCESS")]),
        ("server-tools-list-2026-01-02T11-52-41-000Z", [check("FAILURE", "order", "changes"), check("SUCCESS")]),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "checks.json").write_text(json.dumps(checks))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "checks.json").write_text("[]")
    found = load_checks(tmp_path)
    assert sorted(found) == ["ping", "tools-list"]
    shown = render_table("2026-07-28", build_results(REQUIREMENTS, found))
    assert "order: changes" in shown
    assert "1 of 2 scored scenarios pass." in shown


@pytest.mark.parametrize(
    ("told", "number"), [("v24.19.0\n", 24), ("v22.0.0", 22), ("v20.20.2", 20), ("nope", 0), ("", 0)]
)
def test_the_version_of_node_is_understood(told: str, number: int) -> None:
    assert parse_major(told) == number
