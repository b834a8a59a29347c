"""How is the posture shown at a terminal? The coloured badge, the terminal's title, and pending changes."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from mcp_server.cli.output import PLAIN_WIDTH, get_width, say, say_prose
from mcp_server.model.posture import AXES
from mcp_server.model.text import escape_for_person
from mcp_server.settings import may_use_colours

if TYPE_CHECKING:
    from mcp_server.model.posture import Posture, PostureChoice

COLOURS: Mapping[str, str] = {
    "chat": "dim",
    "plan": "blue",
    "build": "green",
    "review": "yellow",
    "repair": "red",
    "research": "cyan",
    "manual": "dim",
    "assisted": "yellow",
    "autonomous": "green",
    "restricted": "green",
    "normal": "dim",
    "trusted": "yellow",
    "unrestricted": "red",
}


def show_badge(posture: "Posture") -> None:
    say(*build_badge(posture, get_width(sys.stdout) or PLAIN_WIDTH))


def build_badge(posture: "Posture", columns: int) -> list[str | tuple[str, str]]:
    """The badge in a terminal of that width: words, and words with their colour."""
    from mcp_server.model.posture import format_value
    from mcp_server.policy.badge import CODES, get_badge_values, is_badge_narrow

    short = is_badge_narrow(posture, columns)
    parts: list[str | tuple[str, str]] = []
    for number, value in enumerate(get_badge_values(posture)):
        word = f"[{CODES[value]}]" if short else format_value(value)
        if number and not short:
            parts.append(" | ")
        name = COLOURS.get(format_value(value))
        parts.append((word, name) if name else word)
    return parts


def set_terminal_title(posture: "Posture", project: str) -> None:
    """Set the terminal's title, if there is a terminal."""
    from mcp_server.policy.badge import format_title

    if sys.stdout.isatty() and may_use_colours():
        print(f"\x1b]0;{escape_for_person(format_title(posture, project))}\x07", end="", flush=True)


def show_pending_changes(choice: "PostureChoice | None") -> None:
    from mcp_server.policy.badge import describe_pending_changes

    for change, words in describe_pending_changes(choice):
        how = "to confirm: `menugate steer --confirm" if change.unconfirmed else "to cancel: `menugate steer --cancel"
        say_prose("pending: ", words, (f"  ({how} {change.id}`)", "dim"))


def describe_transition(fields: Mapping[str, Any]) -> str:
    """Describe what a ledger row changed, in a session's place or in the posture."""
    before, after = (cast(dict[str, Any], fields.get(key) or {}) for key in ("from", "to"))
    # The later value lacks a change that was cancelled or took effect.
    keys = [key for key in {**after, **before} if before.get(key) != after.get(key) and key not in ("epoch", "run")]
    steps = [f"{key} {_describe_value(key, before.get(key))} -> {_describe_value(key, after.get(key))}" for key in keys]
    return ", ".join(steps) or _describe_unchanged(fields)


def _describe_unchanged(fields: Mapping[str, Any]) -> str:
    """Describe a row that left everything as it was: a request that was not agreed to, or a value chosen again."""
    if not fields.get("door"):
        return "a new run"
    wanted, event = fields.get("wanted") or "a setting", str(fields.get("event"))
    return f"{wanted}: {'in force already' if event == 'in force' else event}"


def _describe_value(key: str, value: object) -> str:
    """Describe a missing value in words: no mode means ROOT, and an axis without a choice has its usual value."""
    if value is None or value == []:
        return {"mode": "ROOT", "waiting": "nothing"}.get(key, "default" if key in AXES else "none")
    return "; ".join(map(str, cast(list[object], value))) if isinstance(value, list) else str(value)
