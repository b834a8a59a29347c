"""What does the house cost beside the bare SDK, and is that within its limits? Run by `make bench`."""

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence

from bench import commands, report, sides
from bench.cases import CASES, Case
from bench.pipes import ServerFault
from bench.processes import leave_nothing_running
from bench.ratios import Limit

RESULTS = sides.HOUSE / "bench" / "results.md"
DECISION, DECISION_LIMIT = "decision", Limit(50)
COMMAND, COMMAND_LIMIT = "command", Limit(15)
EXAMPLES = """examples:
  python -m bench                     everything, some minutes, written to bench/results.md
  python -m bench --quick             a look, not written
  python -m bench --only list,call    the cases whose names begin like this
  python -m bench --noise             two bare servers: what this machine makes of no difference
"""


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="NAMES", help="cases, by the beginning of their names")
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds; nothing is written")
    parser.add_argument("--noise", action="store_true", help="measure a bare server against another")
    parser.add_argument("--date", default="", help="the date to write beside the results")
    return parser


def chosen(names: Sequence[str], wishes: Sequence[str]) -> list[str]:
    """The names that begin like one of the wishes; every name where nothing was wished for."""
    unknown = [wish for wish in wishes if not any(name.startswith(wish) for name in names)]
    if unknown:
        raise SystemExit(f"No case is called `{'`, `'.join(unknown)}`. There are: {', '.join(names)}.")
    return [name for name in names if not wishes or any(name.startswith(wish) for wish in wishes)]


def measured(names: Sequence[str], pair: tuple[sides.Side, sides.Side], quick: bool) -> Iterator[report.ResultRow]:
    for case in CASES:
        if case.name in names:
            yield report.of_case(case, _measured(case, pair, quick))
    if DECISION in names:
        decision = importlib.import_module("bench.decision")  # it loads every rule machine; the others need none
        policy = decision.spread()
        yield report.of_decision([decision.microseconds(policy) for _ in range(5)], DECISION_LIMIT)
    if COMMAND in names:
        for sandbox in commands.sandboxes():
            rounds = commands.milliseconds(sandbox, 10 if quick else 50)
            yield report.of_command(sandbox.name, rounds, COMMAND_LIMIT)


def _measured(case: Case, pair: tuple[sides.Side, sides.Side], quick: bool) -> "report.Ratio":
    try:
        return case.measure(pair, quick)
    except (ServerFault, RuntimeError) as trouble:
        raise SystemExit(f"`{case.name}` could not be measured: {trouble}") from trouble


def main() -> int:
    leave_nothing_running()
    parser = options()
    asked = parser.parse_args()
    known = [case.name for case in CASES] + ([] if asked.noise else [DECISION, COMMAND])
    names = chosen(known, [wish for wish in asked.only.split(",") if wish])
    pair = (sides.TWIN if asked.noise else sides.OURS, sides.BARE)
    sides.clear()
    rows: list[report.ResultRow] = []
    for row in measured(names, pair, asked.quick):
        print(report.line(row, judged=not asked.noise), flush=True)
        rows.append(row)
    if asked.noise:
        return 0
    if names == known and not asked.quick:
        RESULTS.write_text(report.page(rows, f"Measured on {asked.date}." if asked.date else ""))
        print(f"Written to {RESULTS.relative_to(sides.HOUSE)}.")
    over = [row.name for row in rows if not row.kept]
    if over:
        print(f"Over their limits: {', '.join(over)}.", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
