"""How are the figures shown? One line per case: the ratio, its range, its limit, and whether it was met."""

from collections.abc import Iterable
from dataclasses import dataclass

from bench.cases import Case
from bench.ratios import Difference, Limit, Ratio, subtract

PREFACE = """# What menugate costs compared with the bare SDK

`make bench` writes this page. It runs two servers with the same tools side by side and calls them in turn: menugate
with its whole gate (menu, decision, pipeline, durable ledger on disk), and a low-level server of the SDK that has none
of this. You can compare the ratio of the two between machines, but the medians apply only to the machine that
measured them. The range contains the ratio in 95 of 100 resamples of the rounds, and all of it has to be within the
limit.
"""
HEAD = ("case", "menugate", "bare SDK", "ratio", "range", "limit", "")


@dataclass(frozen=True)
class ResultRow:
    """A case that was measured."""

    name: str
    what: str
    cells: tuple[str, str, str, str]
    limit: Limit
    is_within_limit: bool
    unit: str = ""
    """The unit of the limit, if that is not a ratio."""

    @property
    def verdict(self) -> str:
        return "ok" if self.is_within_limit else "OVER"


def build_case_row(case: Case, ratio: Ratio) -> ResultRow:
    figures = [f"{float(f'{figure * case.scale:.3g}'):g} {case.unit}" for figure in (ratio.ours, ratio.bare)]
    cells = (figures[0], figures[1], f"{ratio.value:.2f}", f"{ratio.low:.2f}–{ratio.high:.2f}")
    return ResultRow(case.name, case.what, cells, case.limit, case.limit.is_kept_by_range(ratio.low, ratio.high))


def build_decision_row(microseconds: list[float], limit: Limit) -> ResultRow:
    """The SDK has no decision to compare with, so there is only one figure."""
    ordered = sorted(microseconds)
    low, middle, high = ordered[0], ordered[len(ordered) // 2], ordered[-1]
    cells = (f"{middle:.3g} µs", "", "", f"{low:.3g}–{high:.3g} µs")
    within = limit.is_kept_by_range(low, high)
    return ResultRow("decision", "one decision among 1,000 rules", cells, limit, within, " µs")


def build_command_row(sandbox: str, rounds: list[tuple[float, float]], limit: Limit) -> ResultRow:
    """Show what a sandbox adds to a program that does nothing, in milliseconds."""
    what = f"a command sandboxed by {sandbox}, compared with one without a sandbox"
    return _build_difference_row(f"command-{sandbox}", what, subtract(rounds), limit, "ms")


def build_glance_row(rounds: list[tuple[float, float]], limit: Limit) -> ResultRow:
    """Show what the line about each call adds, in microseconds of processor time."""
    what = "processor time of a call with its line for you, compared with `glance: off`"
    return _build_difference_row("glance", what, subtract(rounds), limit, "µs")


def _build_difference_row(name: str, what: str, added: Difference, limit: Limit, unit: str) -> ResultRow:
    cells = (
        f"{added.ours:.3g} {unit}",
        f"{added.other:.3g} {unit}",
        f"{added.value:+.3g} {unit}",
        f"{added.low:.3g}–{added.high:.3g} {unit}",
    )
    return ResultRow(name, what, cells, limit, limit.is_kept_by_range(added.low, added.high), f" {unit}")


def format_line(row: ResultRow, judged: bool = True) -> str:
    """Show a case at the terminal when it is done."""
    ours, bare, ratio, spread = row.cells
    figures = f"{ours} against {bare}, ratio {ratio}" if bare else ours
    text = f"{row.name:<17} {figures} ({spread})"
    return f"{row.verdict:<5}{text}, limit {row.limit}" if judged else text


def render_page(rows: Iterable[ResultRow], note: str) -> str:
    table = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    for row in rows:
        table.append(f"| {' | '.join((row.what, *row.cells, f'{row.limit}{row.unit}', row.verdict))} |")
    return "\n".join([PREFACE, *table, "", note, ""]).rstrip("\n") + "\n"
