"""What did an edit change, and which lines come closest to a text that is not there?"""

from collections.abc import Iterator

from msgspec import Struct

from mcp_server.model.text import escape_for_model, escape_name
from tools.files.lines import format_numbered_lines

SNIPPET_CONTEXT = 4
DIFF_LINES = 200
DIFF_CHARS = 20_000
MAX_COMPARED_LINES = 2_000
"""Comparing takes quadratic time, so a larger rewrite gets no diff."""
CONTEXT = 3
SIMILAR_LINES = 2_000
SIMILAR_CHARS = 200


class TextDiff(Struct, frozen=True):
    added: int
    removed: int
    diff: str
    """Unified; empty if nothing changed."""
    first: int
    last: int
    """The new lines of the new text, from 1; `last` is before `first` if lines were only removed."""


def compare_texts(path: str, before: str, after: str) -> TextDiff:
    old, new = _split_lines(before), _split_lines(after)
    head = _count_common_start(old, new)
    tail = _count_common_start(old[head:][::-1], new[head:][::-1])
    removed, added = len(old) - tail - head, len(new) - tail - head
    first, last = head + 1, head + added
    if max(removed, added) > MAX_COMPARED_LINES:
        return TextDiff(added, removed, "[too much changed for a diff]", first, last)
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
    """Split into lines with their ends, so that a last line that gains or loses its end counts as changed."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])


def _count_common_start(one: list[str], other: list[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _build_unified_hunks(old: list[str], new: list[str], start: int) -> list[str]:
    from difflib import SequenceMatcher

    hunks: list[str] = []
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT):
        (_, i, _, j, _), (_, _, k, _, m) = group[0], group[-1]
        hunks.append(f"@@ -{_format_line_range(i, k, start)} +{_format_line_range(j, m, start)} @@")
        for tag, a, b, c, d in group:
            if tag == "equal":
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
    """Format a range as `patch` reads it: an empty one starts at the line before it."""
    return f"{start + first + (end > first)},{end - first}"


def _format_bounded_diff(lines: list[str]) -> str:
    shown, size = 0, 0
    for line in lines[:DIFF_LINES]:
        size += min(len(line), SIMILAR_CHARS * 10) + 1
        if size > DIFF_CHARS:
            break
        shown += 1
    # Without its carriage return, which would be escaped although it is only half of a line end.
    visible = [escape_for_model(line.removesuffix("\r")[: SIMILAR_CHARS * 10]) for line in lines[:shown]]
    return "\n".join(visible) + (f"\n[{len(lines) - shown} more lines of diff]" if shown < len(lines) else "")


def describe_change(path: str, verb: str, before: str, after: str) -> str:
    """Describe what happened, with a diff and the changed lines as they are now."""
    path = escape_name(path)
    change = compare_texts(path, before, after)
    head = f"{verb} `{path}`: +{change.added} -{change.removed} lines."
    if not change.diff:
        return head
    last = min(max(change.last, change.first), change.first + DIFF_LINES // 4)
    snippet = format_numbered_lines(after, change.first - SNIPPET_CONTEXT, last + SNIPPET_CONTEXT) if after else ""
    return f"{head}\n{change.diff}" + (f"\nIt now reads:\n{snippet}" if snippet else "\nIt is empty now.")


def find_nearest_lines(text: str, target: str) -> tuple[int, int] | None:
    """Find the lines, from 1, that come closest to a text that is not there; None if nothing does."""
    lines = [line.strip() for line in text.split("\n")]
    target_lines = [line.strip() for line in target.strip("\r\n").split("\n")]
    start = _find_by_equal_lines(lines, target_lines)
    if start is None:
        start = _find_by_similar_line(lines, target_lines)
    if start is None:
        return None
    first = max(start, 0) + 1
    return first, min(first + len(target_lines) - 1, len(lines))


def _find_by_equal_lines(lines: list[str], target_lines: list[str]) -> int | None:
    """Let every line that equals one of the target vote for where the target would start."""
    offsets: dict[str, list[int]] = {}
    for offset, line in enumerate(target_lines):
        if line:
            offsets.setdefault(line, []).append(offset)
    votes: dict[int, int] = {}
    for index, line in enumerate(lines):
        for offset in offsets.get(line, ())[:50]:
            votes[index - offset] = votes.get(index - offset, 0) + 1
    return max(votes, key=lambda start: (votes[start], -start)) if votes else None


def _find_by_similar_line(lines: list[str], target_lines: list[str]) -> int | None:
    """Find the line most similar to the longest one of the target."""
    from difflib import get_close_matches

    longest = max(target_lines, key=len)
    key = longest[:SIMILAR_CHARS]
    candidates = [line[:SIMILAR_CHARS] for line in lines if len(key) / 2 <= len(line) <= len(key) * 2]
    matches = get_close_matches(key, dict.fromkeys(candidates[:SIMILAR_LINES]), 1, 0.6) if key else []
    if not matches:
        return None
    index = next(index for index, line in enumerate(lines) if line[:SIMILAR_CHARS] == matches[0])
    return index - target_lines.index(longest)
