"""How many of the faults that were planted into the rules did the tests notice?"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

ENOUGH = 90.0
"""Percent."""
NOTICED = ("killed", "timeout", "segfault", "suspicious")
"""A test failed, or did not come to an end, or ended with the whole process."""
UNNOTICED = ("survived", "no_tests")


def rate(counts: Mapping[str, int]) -> float:
    """In percent of those that were tried; a fault in code that no test runs was not noticed."""
    noticed, unnoticed = (sum(counts.get(name, 0) for name in names) for names in (NOTICED, UNNOTICED))
    return 100 * noticed / (noticed + unnoticed) if noticed + unnoticed else 0.0


def said(counts: Mapping[str, int]) -> str:
    tried = sum(counts.get(name, 0) for name in (*NOTICED, *UNNOTICED))
    parts = ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in (*NOTICED, *UNNOTICED) if counts.get(name))
    left = counts.get("total", tried) - tried
    rest = f"; {left} not tried" if left > 0 else ""
    return f"{rate(counts):.1f} % of {tried} faults were noticed ({parts}{rest})."


def main() -> int:
    counts = json.loads(Path(sys.argv[1]).read_text())
    print(said(counts))
    return int(rate(counts) < ENOUGH)


if __name__ == "__main__":
    sys.exit(main())
