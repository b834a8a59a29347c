"""What is different about a tool, prompt or resource of a server? One line for each place that changed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from mcp_server.model.upstreams import Definition

MAX_LINES = 40
CONTEXT_CHARS = 30
MAX_VALUE_CHARS = 400
"""A new text is shown at this length: its end may be what matters, so it is cut in the middle."""


def format_difference(before: Definition | None, after: Definition) -> list[str]:
    """Format as `+ place: value`, `- place: value`, or `~ place: ...old... → ...new...`."""
    old, new = dict(_flatten(before or {})), dict(_flatten(after))
    lines = [*_format_changes(old, new)]
    if len(lines) > MAX_LINES:
        return [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES:,} more places"]
    return lines


def _format_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for place in [*new, *(place for place in old if place not in new)]:
        if place not in old:
            yield f"+ {place}: {_format_value(new[place])}"
        elif place not in new:
            yield f"- {place}: {_format_value(old[place])}"
        elif (type(old[place]), old[place]) != (type(new[place]), new[place]):
            yield f"~ {place}: {_format_change(old[place], new[place])}"


def _flatten(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each leaf with its place; an empty list or mapping is a leaf."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        place, current = waiting.pop()
        if isinstance(current, Mapping) and current:
            dot = "." if place else ""
            entries = sorted((str(key), inner) for key, inner in cast(Mapping[Any, Any], current).items())
            waiting += [(f"{place}{dot}{key}", inner) for key, inner in reversed(entries)]
        elif isinstance(current, list | tuple) and current:
            items = list(cast(Sequence[Any], current))
            waiting += [(f"{place}[{at}]", items[at]) for at in range(len(items) - 1, -1, -1)]
        elif place:
            yield place, current


def _format_change(old: Any, new: Any) -> str:
    """Show of two texts only what differs, with a little around it."""
    if not isinstance(old, str) or not isinstance(new, str):
        return f"{_format_value(old)} → {_format_value(new)}"
    shared = min(len(old), len(new))
    start = next((at for at in range(shared) if old[at] != new[at]), shared)
    rest = shared - start
    end = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    first = max(0, start - CONTEXT_CHARS)
    shown = [text[first : len(text) - end + min(end, CONTEXT_CHARS)] for text in (old, new)]
    before, after = ("…" if first else ""), ("…" if end > CONTEXT_CHARS else "")
    return " → ".join(_format_value(f"{before}{text}{after}") for text in shown)


def _format_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    half = MAX_VALUE_CHARS // 2
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:half]} … {text[-half:]}"
