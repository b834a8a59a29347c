"""How many of the faults planted in the policy did the tests catch?"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

ENOUGH = 90.0
"""Percent."""
NOTICED = ("killed", "timeout", "segfault", "suspicious")
"""Caught: a test failed, did not end, or crashed the process."""
UNNOTICED = ("survived", "no_tests")


def compute_rate(counts: Mapping[str, int]) -> float:
    """Compute the percentage of tried faults that were caught; a fault in code that no test runs counts as missed."""
    noticed, unnoticed = (sum(counts.get(name, 0) for name in names) for names in (NOTICED, UNNOTICED))
    return 100 * noticed / (noticed + unnoticed) if noticed + unnoticed else 0.0


def describe_counts(counts: Mapping[str, int]) -> str:
    tried = sum(counts.get(name, 0) for name in (*NOTICED, *UNNOTICED))
    parts = ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in (*NOTICED, *UNNOTICED) if counts.get(name))
    untried = counts.get("total", tried) - tried
    rest = f"; {untried} not tried" if untried > 0 else ""
    return f"The tests caught {compute_rate(counts):.1f} % of {tried} faults ({parts}{rest})."


def main() -> int:
    counts = json.loads(Path(sys.argv[1]).read_text())
    print(describe_counts(counts))
    return int(compute_rate(counts) < ENOUGH)


if __name__ == "__main__":
    sys.exit(main())
