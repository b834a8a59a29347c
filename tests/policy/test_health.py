"""Is what was found summed up in one verdict, with what the person types for what only they can change?"""

import pytest

from mcp_server.policy.health import Grade, HealthFinding, format_verdict, list_faults

GOOD = HealthFinding("paths", "openat2")
NOTE = HealthFinding("search", "plain Python", Grade.NOTE)
FAULT = HealthFinding("state", "is damaged", Grade.FAULT, "put it aside")
TYPED = ("menugate mode build", "menugate profile normal")
NARROWED = HealthFinding("posture", "is narrowed", Grade.NOTE, commands=TYPED)


def test_only_faults_are_faults() -> None:
    assert list_faults([GOOD, NOTE, FAULT, NARROWED]) == [FAULT]


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        ([], "Everything is in order."),
        ([GOOD, NOTE], "Everything is in order."),
        ([GOOD, FAULT], "Found 1 fault."),
        ([FAULT, FAULT], "Found 2 faults."),
    ],
)
def test_the_verdict_counts_the_faults(findings: list[HealthFinding], verdict: str) -> None:
    assert format_verdict(findings) == verdict


def test_what_is_to_be_typed_stands_below_line_by_line() -> None:
    first, *commands = format_verdict([NARROWED]).splitlines()
    assert first.startswith("Everything is in order, but the posture is narrowed.")
    assert commands == list(TYPED)
    assert format_verdict([FAULT, NARROWED]).startswith("Found 1 fault. ")
