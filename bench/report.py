"""How are the figures shown? One line per case: the ratio, its range, its limit, and whether it was met."""

from collections.abc import Iterable
from dataclasses import dataclass

from bench.cases import Case
from bench.ratios import Limit, Ratio

PREFACE = """# What menugate costs compared with the bare SDK

`make bench` writes this page. It runs two servers with the same tools side by side and calls them in turn: menugate
with its whole gate (menu, decision, pipeline, durable ledger on disk), and a low-level server of the SDK that has none
of this. You can compare the ratio of the two between machines, but the medians apply only to the machine that
measured them. The range contains the ratio in 95 of 100 resamples of the rounds.
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
    return ResultRow(case.name, case.what, cells, case.limit, case.limit.is_kept_by(ratio.value))


def build_decision_row(microseconds: list[float], limit: Limit) -> ResultRow:
    """The SDK has no decision to compare with, so there is only one figure."""
    ordered = sorted(microseconds)
    middle = ordered[len(ordered) // 2]
    cells = (f"{middle:.3g} µs", "", "", f"{ordered[0]:.3g}–{ordered[-1]:.3g} µs")
    return ResultRow("decision", "one decision among 1,000 rules", cells, limit, limit.is_kept_by(middle), " µs")


def build_command_row(sandbox: str, rounds: list[tuple[float, float]], limit: Limit) -> ResultRow:
    """Show what a sandbox adds to a program that does nothing, in milliseconds."""
    added = sorted(shut_in - bare for shut_in, bare in rounds)
    ours, bare = (sorted(one)[len(rounds) // 2] for one in zip(*rounds, strict=True))
    cells = (f"{ours:.3g} ms", f"{bare:.3g} ms", f"+{ours - bare:.3g} ms", f"{added[0]:.3g}–{added[-1]:.3g} ms")
    what = f"a command sandboxed by {sandbox}, compared with one without a sandbox"
    return ResultRow(f"command-{sandbox}", what, cells, limit, limit.is_kept_by(ours - bare), " ms")


def build_glance_row(rounds: list[tuple[float, float]], limit: Limit) -> ResultRow:
    """Show what the line about each call adds, in microseconds of processor time."""
    added = sorted(with_line - without for with_line, without in rounds)
    ours, bare = (sorted(one)[len(rounds) // 2] for one in zip(*rounds, strict=True))
    middle, quarter = added[len(added) // 2], len(added) // 4
    cells = (
        f"{ours:.4g} µs",
        f"{bare:.4g} µs",
        f"+{middle:.3g} µs",
        f"{added[quarter]:.3g}–{added[-quarter - 1]:.3g} µs",
    )
    what = "processor time of a call with its line for you, compared with `glance: off`"
    return ResultRow("glance", what, cells, limit, limit.is_kept_by(middle), " µs")


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
