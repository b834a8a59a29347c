"""Is the share of noticed faults counted as it is meant?"""

import json
from pathlib import Path

import pytest

from bench import mutants


@pytest.mark.parametrize(
    ("counts", "percent", "says"),
    [
        (
            {"killed": 9, "survived": 1, "total": 10},
            90.0,
            "The tests caught 90.0 % of 10 faults (9 killed, 1 survived).",
        ),
        ({"killed": 8, "timeout": 1, "no_tests": 1, "total": 12}, 90.0, "1 timeout, 1 no tests; 2 not tried)"),
        ({"killed": 1, "no_tests": 3, "total": 4}, 25.0, "25.0 % of 4"),
        ({"total": 4}, 0.0, "0.0 % of 0"),
    ],
)
def test_a_fault_in_code_that_no_test_runs_counts_as_unnoticed(
    counts: dict[str, int], percent: float, says: str
) -> None:
    assert mutants.compute_rate(counts) == percent
    assert says in mutants.describe_counts(counts)


@pytest.mark.parametrize(("survived", "code"), [(10, 0), (11, 1)])
def test_too_few_is_a_failure(
    survived: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "stats.json"
    page.write_text(json.dumps({"killed": 100 - survived, "survived": survived, "total": 100}))
    monkeypatch.setattr("sys.argv", ["mutants", str(page)])
    assert mutants.main() == code
    assert "% of 100 faults" in capsys.readouterr().out
