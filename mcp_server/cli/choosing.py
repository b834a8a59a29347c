"""Which rows of the ledger are meant? The filters that `tail` and `export` share."""

import argparse
import re
import time
from datetime import datetime
from typing import TYPE_CHECKING

from mcp_server.cli.output import KINDS
from mcp_server.model.policy import Layer, Verdict
from mcp_server.model.posture import Stage

if TYPE_CHECKING:
    from mcp_server.state.engine.rows import LedgerFilter

FOREVER = 2**63 - 1
"""The last moment that the ledger could hold."""
AGE = re.compile(r"(\d{1,6})\s*(s|m|h|d|w)")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
WORDS = {
    "tool": ("TOOL", "only calls of this tool"),
    "mode": ("MODE", "only calls in this mode"),
    "code": ("CODE", "only what ended with this code, such as WRONG_MODE"),
    "rule": ("RULE", "only what this rule decided, as it is written"),
    "principal": ("WHO", "only calls of this principal"),
    "session": ("ID", "only this session"),
    "run": ("ID", "only this run"),
}
CHOICES = {
    "verdict": (tuple(map(str, Verdict)), "only what was decided so"),
    "layer": (tuple(map(str, Layer)), "only what this layer of the gate decided"),
    "stage": (tuple(map(str, Stage)), "only calls in this stage of a run"),
}
WHEN = "10m, 2h, 3d, or 2026-11-18 12:00"


def add_filters(one: argparse.ArgumentParser) -> None:
    """Every filter given has to hold; the outcome of a call is found by what is known of the call."""
    for name, (metavar, purpose) in WORDS.items():
        one.add_argument(f"--{name}", dest=f"of_{name}", metavar=metavar, help=purpose)
    for name, (choices, purpose) in CHOICES.items():
        one.add_argument(f"--{name}", dest=f"of_{name}", choices=choices, help=purpose)
    one.add_argument("--since", type=moment, metavar="WHEN", help=f"only from then on: {WHEN}")
    one.add_argument("--until", type=moment, metavar="WHEN", help="only before then, written in the same way")
    one.add_argument("--kind", action="append", choices=KINDS, help="only rows of this kind; may be given again")


def whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"`{text[:40]}` is not a whole number")
    return int(text)


def moment(text: str) -> int:
    """A moment in nanoseconds: so long ago, or a date with or without a time."""
    if age := AGE.fullmatch(text.strip()):
        return time.time_ns() - int(age[1]) * SECONDS[age[2]] * 10**9
    try:
        return min(int(datetime.fromisoformat(text).astimezone().timestamp() * 10**9), FOREVER)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"`{text[:40]}` is no time; write {WHEN}") from None


def wanted(arguments: argparse.Namespace, tail: int | None = None) -> "LedgerFilter":
    from mcp_server.state.engine.rows import LedgerFilter

    given = {name: getattr(arguments, f"of_{name}") for name in (*WORDS, *CHOICES)}
    return LedgerFilter(
        **given,
        since_ns=arguments.since,
        until_ns=arguments.until,
        kinds=tuple(arguments.kind or ()),
        tail=tail,
    )
