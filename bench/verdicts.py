"""What did the conformance suite find? One verdict per scenario of a revision, read from the checks it wrote."""

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
    """How one scenario ended."""

    scenario: str
    scored: bool
    word: str
    """`pass`, `warn`, `fail`, or `missing` where the suite wrote nothing."""
    notes: tuple[str, ...] = ()
    why_not: str = ""
    """Why a scenario is not scored."""

    @property
    def failed(self) -> bool:
        return self.scored and self.word in ("fail", "missing")


def scenario_of(folder: str) -> str | None:
    found = FOLDER.fullmatch(folder)
    return found["scenario"] if found else None


def collected(output: Path) -> dict[str, list[Check]]:
    """The checks of every scenario that left a folder."""
    found: dict[str, list[Check]] = {}
    for path in sorted(output.glob("*/checks.json")):
        if scenario := scenario_of(path.parent.name):
            found.setdefault(scenario, []).extend(json.loads(path.read_text()))
    return found


def verdicts(requirements: Mapping[str, Any], checks: Mapping[str, Sequence[Check]]) -> list[ScenarioResult]:
    """Every scenario the revision asks of a server, in its own order, and then those it does not count."""
    told = [_verdict(name, checks.get(name), "") for name in requirements["server"]]
    for entry in requirements.get("not_scored", ()):
        if entry["leg"] == "server":
            told.append(_verdict(entry["scenario"], checks.get(entry["scenario"]), entry["reason"]))
    return told


def _verdict(scenario: str, checks: Sequence[Check] | None, why_not: str) -> ScenarioResult:
    scored = not why_not
    if not checks:
        return ScenarioResult(scenario, scored, "missing", ("the suite wrote no checks for it",), why_not)
    failures = tuple(_note(check) for check in checks if check["status"] == "FAILURE")
    warnings = tuple(_note(check) for check in checks if check["status"] == "WARNING")
    word = "fail" if failures else "warn" if warnings else "pass"
    return ScenarioResult(scenario, scored, word, failures + warnings, why_not)


def _note(check: Check) -> str:
    return f"{check['id']}: {check.get('errorMessage') or check.get('description', '')}"


def table(revision: str, told: Iterable[ScenarioResult]) -> str:
    rows = list(told)
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
