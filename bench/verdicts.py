"""What did the conformance suite find? One verdict per scenario of a revision, from the checks it wrote."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
Check = Mapping[str, Any]


@dataclass(frozen=True)
class ScenarioResult:
    """The result of one scenario."""

    scenario: str
    scored: bool
    word: str
    """`pass`, `warn`, `fail`, or `missing` if the suite wrote nothing."""
    notes: tuple[str, ...] = ()
    why_not: str = ""
    """Why a scenario is not scored."""

    @property
    def failed(self) -> bool:
        return self.scored and self.word in ("fail", "missing")


def parse_scenario(folder: str) -> str | None:
    match = FOLDER.fullmatch(folder)
    return match["scenario"] if match else None


def load_checks(output: Path) -> dict[str, list[Check]]:
    """Load the checks of every scenario that left a folder."""
    checks: dict[str, list[Check]] = {}
    for path in sorted(output.glob("*/checks.json")):
        if scenario := parse_scenario(path.parent.name):
            checks.setdefault(scenario, []).extend(json.loads(path.read_text()))
    return checks


def build_results(requirements: Mapping[str, Any], checks: Mapping[str, Sequence[Check]]) -> list[ScenarioResult]:
    """List every scenario that the revision requires of a server, in its order, then those that are not scored."""
    results = [_build_result(name, checks.get(name), "") for name in requirements["server"]]
    for entry in requirements.get("not_scored", ()):
        if entry["leg"] == "server":
            results.append(_build_result(entry["scenario"], checks.get(entry["scenario"]), entry["reason"]))
    return results


def _build_result(scenario: str, checks: Sequence[Check] | None, why_not: str) -> ScenarioResult:
    scored = not why_not
    if not checks:
        return ScenarioResult(scenario, scored, "missing", ("the suite wrote no checks for it",), why_not)
    failures = tuple(_note(check) for check in checks if check["status"] == "FAILURE")
    warnings = tuple(_note(check) for check in checks if check["status"] == "WARNING")
    word = "fail" if failures else "warn" if warnings else "pass"
    return ScenarioResult(scenario, scored, word, failures + warnings, why_not)


def _note(check: Check) -> str:
    return f"{check['id']}: {check.get('errorMessage') or check.get('description', '')}"


def render_table(revision: str, results: Iterable[ScenarioResult]) -> str:
    rows = list(results)
    width = max(len(row.scenario) for row in rows)
    lines = [f"{revision}"]
    for row in rows:
        aside = f"  not scored: {row.why_not}" if row.why_not else ""
        lines.append(f"  {row.scenario:<{width}}  {row.word}{aside}".rstrip())
        if row.scored:
            lines += [f"      {note}" for note in row.notes]
    scored = [row for row in rows if row.scored]
    lines.append(f"  {sum(not row.failed for row in scored)} of {len(scored)} scored scenarios pass.")
    return "\n".join(lines)
