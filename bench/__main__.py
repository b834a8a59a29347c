"""What does menugate cost next to the bare SDK, and is that within the limits? Run by `make bench`."""

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence

from bench import commands, glances, report, sides
from bench.cases import CASES, Case
from bench.pipes import ServerFault
from bench.processes import leave_nothing_running
from bench.ratios import Limit

RESULTS = sides.ROOT / "bench" / "results.md"
DECISION, DECISION_LIMIT = "decision", Limit(50)
COMMAND, COMMAND_LIMIT = "command", Limit(15)
GLANCE, GLANCE_LIMIT, GLANCE_CALLS = "glance", Limit(30), 20_000
EXAMPLES = """examples:
  python -m bench                     everything, some minutes, written to bench/results.md
  python -m bench --quick             a quick look; nothing is written
  python -m bench --only list,call    the cases whose names begin with these
  python -m bench --noise             two bare servers: how much this machine's noise alone amounts to
"""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="NAMES", help="only cases whose names begin with one of these")
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds; nothing is written")
    parser.add_argument("--noise", action="store_true", help="measure one bare server against another")
    parser.add_argument("--date", default="", help="the date to write below the results")
    return parser


def choose_names(names: Sequence[str], prefixes: Sequence[str]) -> list[str]:
    """The names that begin with one of these prefixes; every name if there are no prefixes."""
    unknown = [prefix for prefix in prefixes if not any(name.startswith(prefix) for name in names)]
    if unknown:
        raise SystemExit(f"There is no case `{'`, `'.join(unknown)}`; the cases are {', '.join(names)}.")
    return [name for name in names if not prefixes or any(name.startswith(prefix) for prefix in prefixes)]


def measure_cases(names: Sequence[str], pair: tuple[sides.Side, sides.Side], quick: bool) -> Iterator[report.ResultRow]:
    for case in CASES:
        if case.name in names:
            yield report.build_case_row(case, _measure_case(case, pair, quick))
    if DECISION in names:
        decision = importlib.import_module("bench.decision")  # it loads every rule machine; the others need none
        policy = decision.build_spread_policy()
        yield report.build_decision_row([decision.measure_microseconds(policy) for _ in range(5)], DECISION_LIMIT)
    if COMMAND in names:
        for sandbox in commands.list_sandboxes():
            rounds = commands.measure_milliseconds(sandbox, 10 if quick else 50)
            yield report.build_command_row(sandbox.name, rounds, COMMAND_LIMIT)
    if GLANCE in names and glances.is_available():
        rounds = glances.measure_rounds(GLANCE_CALLS // 5 if quick else GLANCE_CALLS)
        yield report.build_glance_row(rounds, GLANCE_LIMIT)


def _measure_case(case: Case, pair: tuple[sides.Side, sides.Side], quick: bool) -> "report.Ratio":
    try:
        return case.measure(pair, quick)
    except (ServerFault, RuntimeError) as trouble:
        raise SystemExit(f"`{case.name}` could not be measured: {trouble}") from trouble


def main() -> int:
    leave_nothing_running()
    parser = build_parser()
    arguments = parser.parse_args()
    every_name = [case.name for case in CASES] + ([] if arguments.noise else [DECISION, COMMAND, GLANCE])
    names = choose_names(every_name, [prefix for prefix in arguments.only.split(",") if prefix])
    pair = (sides.TWIN if arguments.noise else sides.OURS, sides.BARE)
    sides.clear()
    rows: list[report.ResultRow] = []
    for row in measure_cases(names, pair, arguments.quick):
        print(report.format_line(row, judged=not arguments.noise), flush=True)
        rows.append(row)
    if arguments.noise:
        return 0
    if names == every_name and not arguments.quick:
        RESULTS.write_text(report.render_page(rows, f"Measured on {arguments.date}." if arguments.date else ""))
        print(f"Written to {RESULTS.relative_to(sides.ROOT)}.")
    failures = [row.name for row in rows if not row.is_within_limit]
    if failures:
        print(f"Over their limits: {', '.join(failures)}.", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
