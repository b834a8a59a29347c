"""What did a change change, and what came closest to what was not found?"""

from collections.abc import Iterator
from dataclasses import dataclass

from tools.files.lines import format_numbered_lines, make_visible

AROUND = 4
DIFF_LINES = 200
DIFF_CHARS = 20_000
COMPARED = 2_000
"""Comparing takes time with the square of the lines; a larger rewrite is counted and not drawn."""
CONTEXT = 3
SIMILAR_LINES = 2_000
SIMILAR_CHARS = 200


@dataclass(frozen=True, slots=True)
class TextDiff:
    added: int
    removed: int
    diff: str
    """Unified, without end lines; empty where nothing changed."""
    first: int
    last: int
    """The lines of the new text that are new, from 1; `last` before `first` where lines were only taken away."""


def compare_texts(path: str, before: str, after: str) -> TextDiff:
    old, new = _split_lines(before), _split_lines(after)
    head = _count_common_start(old, new)
    tail = _count_common_start(old[head:][::-1], new[head:][::-1])
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    first, last = head + 1, head + len(come)
    if max(len(gone), len(come)) > COMPARED:
        return TextDiff(len(come), len(gone), "[too much changed for a diff]", first, last)
    start = max(0, head - CONTEXT)
    hunks = _build_unified_hunks(
        old[start : len(old) - max(0, tail - CONTEXT)], new[start : len(new) - max(0, tail - CONTEXT)], start
    )
    lines = [line for line in hunks if not line.startswith("@")]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return TextDiff(
        added, removed, _format_bounded_diff([f"--- a/{path}", f"+++ b/{path}", *hunks]) if hunks else "", first, last
    )


def _split_lines(text: str) -> list[str]:
    """With their ends, so that a last line that gets or loses its end counts as changed. An empty text has none."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])


def _count_common_start(one: list[str], other: list[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _build_unified_hunks(old: list[str], new: list[str], start: int) -> list[str]:
    from difflib import SequenceMatcher

    hunks: list[str] = []
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT):
        (_, i, _, j, _), (_, _, k, _, m) = group[0], group[-1]
        hunks.append(f"@@ -{_format_line_range(i, k, start)} +{_format_line_range(j, m, start)} @@")
        for what, a, b, c, d in group:
            if what == "equal":
                hunks.extend(_mark_lines(" ", old[a:b]))
                continue
            hunks.extend(_mark_lines("-", old[a:b]))
            hunks.extend(_mark_lines("+", new[c:d]))
    return hunks


def _mark_lines(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield sign + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _format_line_range(first: int, end: int, start: int) -> str:
    """As patch reads it: of no lines, the line behind which they would stand."""
    return f"{start + first + (end > first)},{end - first}"


def _format_bounded_diff(lines: list[str]) -> str:
    shown, size = 0, 0
    for line in lines[:DIFF_LINES]:
        size += min(len(line), SIMILAR_CHARS * 10) + 1
        if size > DIFF_CHARS:
            break
        shown += 1
    # A carriage return is half of a line end here, not something to warn a terminal of.
    drawn = [make_visible(line.removesuffix("\r")[: SIMILAR_CHARS * 10]) for line in lines[:shown]]
    return "\n".join(drawn) + (f"\n[{len(lines) - shown} more lines of diff]" if shown < len(lines) else "")


def describe_change(path: str, what: str, before: str, after: str) -> str:
    """The whole answer: what happened, the diff, and the place as it is now."""
    path = make_visible(path)
    change = compare_texts(path, before, after)
    head = f"{what} `{path}`: +{change.added} -{change.removed} lines."
    if not change.diff:
        return head
    last = min(max(change.last, change.first), change.first + DIFF_LINES // 4)
    snippet = format_numbered_lines(after, change.first - AROUND, last + AROUND) if after else ""
    return f"{head}\n{change.diff}" + (f"\nIt now reads:\n{snippet}" if snippet else "\nIt is empty now.")


def find_nearest_lines(text: str, wanted: str) -> tuple[int, int] | None:
    """The lines, from 1, that come closest to a text that is not there; None where nothing does."""
    lines = [line.strip() for line in text.split("\n")]
    asked = [line.strip() for line in wanted.strip("\r\n").split("\n")]
    start = _find_by_equal_lines(lines, asked)
    if start is None:
        start = _find_by_similar_line(lines, asked)
    if start is None:
        return None
    first = max(start, 0) + 1
    return first, min(first + len(asked) - 1, len(lines))


def _find_by_equal_lines(lines: list[str], asked: list[str]) -> int | None:
    wanted: dict[str, list[int]] = {}
    for at, line in enumerate(asked):
        if line:
            wanted.setdefault(line, []).append(at)
    votes: dict[int, int] = {}
    for at, line in enumerate(lines):
        for offset in wanted.get(line, ())[:50]:
            votes[at - offset] = votes.get(at - offset, 0) + 1
    return max(votes, key=lambda start: (votes[start], -start)) if votes else None


def _find_by_similar_line(lines: list[str], asked: list[str]) -> int | None:
    from difflib import get_close_matches

    longest = max(asked, key=len)[:SIMILAR_CHARS]
    near = [line[:SIMILAR_CHARS] for line in lines if len(longest) / 2 <= len(line) <= len(longest) * 2]
    found = get_close_matches(longest, dict.fromkeys(near[:SIMILAR_LINES]), 1, 0.6) if longest else []
    if not found:
        return None
    at = next(at for at, line in enumerate(lines) if line[:SIMILAR_CHARS] == found[0])
    return at - asked.index(max(asked, key=len))
