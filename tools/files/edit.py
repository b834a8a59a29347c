"""How does `Edit` replace a piece of a file?"""

import re
from hashlib import sha256
from posixpath import normpath
from threading import Lock

from anyio import to_thread
from msgspec import Struct

from mcp_server.model.context import Context
from mcp_server.model.files import DirectoryEntry, Files, Snapshot, Stamp
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from tools.files.definitions import EditArguments
from tools.files.diff import describe_change, find_nearest_lines
from tools.files.lines import BOM, MOST_BYTES, decode_text, describe_non_text, encode_text, format_numbered_lines
from tools.files.read import add_path_suggestions, find_picture_type

# Where in a text is a string, and what does the text become with the string replaced?
#
# Every character must match, case, spaces and indentation included. Only line ends may differ, because models write LF
# whatever the file has; the replacement takes the line ends of what it replaces.

LINE_END = r"(?:\r\n|(?<!\r)\n)"
NUMBERED = re.compile(r"\s*\d+\t")


class TextMatches(Struct, frozen=True):
    starts: tuple[int, ...]
    lines: tuple[int, ...]
    """The line that each one starts on, from 1."""


def _build_match_pattern(old: str) -> str:
    return LINE_END.join(re.escape(line) for line in old.replace("\r\n", "\n").split("\n"))


def find_matches(text: str, old: str) -> TextMatches:
    """Find every match, overlapping ones too: `aaa` has `aa` twice, and we must not guess which one is meant."""
    starts = tuple(match.start() for match in re.finditer(f"(?={_build_match_pattern(old)})", text))
    lines: list[int] = []
    line, counted_to = 1, 0
    for start in starts:
        line += text.count("\n", counted_to, start)
        counted_to = start
        lines.append(line)
    return TextMatches(starts, tuple(lines))


def replace_matches(text: str, old: str, new: str) -> str:
    usual_end = find_usual_line_end(text)
    new = new.replace("\r\n", "\n")

    def build_replacement(match: re.Match[str]) -> str:
        old = match.group()
        return new.replace("\n", "\r\n" if "\r\n" in old else "\n" if "\n" in old else usual_end)

    return re.sub(_build_match_pattern(old), build_replacement, text)


def find_usual_line_end(text: str) -> str:
    """Return the line end that most lines have."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"


def _has_line_numbers(old: str) -> bool:
    """True if it looks copied from `Read`, line numbers and all."""
    return all(NUMBERED.match(line) for line in old.rstrip("\n").split("\n"))


MAX_NAMED_LINES = 20
EXACT_MATCH_HINT = "Every space and line must match; leave out the line number and tab that `Read` shows."


LOCKS = tuple(Lock() for _ in range(64))


def lock_file(path: str) -> Lock:
    """Return the lock under which this server changes the file, so that calls made at once follow one another: each
    would otherwise see the changes of the others as those of a stranger."""
    return LOCKS[hash(normpath(path)) % len(LOCKS)]


async def edit(ctx: Context, args: EditArguments) -> Ending:
    return await to_thread.run_sync(_edit_alone, ctx.files, args)


def _edit_alone(files: Files, args: EditArguments) -> Ending:
    with lock_file(args["file_path"]):
        return _edit(files, args)


def _edit(files: Files, args: EditArguments) -> Ending:
    path, old, new = args["file_path"], args["old_string"], args["new_string"]
    if old == new:
        return Problem(Code.INVALID_ARGUMENTS, "`old_string` and `new_string` are the same: nothing would change.")
    if problem := find_encoding_problem(old, new):
        return problem
    try:
        snapshot = files.read(path, MOST_BYTES)
    except Refusal as refusal:
        if refusal.problem.code is Code.NOT_FOUND and not old:
            return create_file(files, path, encode_text(new))
        return add_path_suggestions(files, path, refusal.problem)
    if problem := find_edit_problem(files, snapshot):
        return problem
    text = decode_text(snapshot.data)
    bom = BOM if text.startswith(BOM) else ""
    after = _apply_edit(snapshot.path, text.removeprefix(BOM), args)
    if isinstance(after, Problem):
        return after
    overwrite_file(files, snapshot, encode_text(bom + after))
    return Done(describe_change(snapshot.path, "Edited", text.removeprefix(BOM), after))


def _apply_edit(path: str, text: str, args: EditArguments) -> str | Problem:
    old, new = args["old_string"].removeprefix(BOM), args["new_string"].removeprefix(BOM)
    if not old:
        if not text:
            return new
        return Problem(
            Code.ALREADY_EXISTS,
            f"`{path}` exists and is not empty; an empty `old_string` only creates a file.",
            "Pass the text to replace, or use `Write` to replace the whole file.",
        )
    matches = find_matches(text, old)
    if not matches.starts:
        return _build_no_match_problem(path, text, old)
    if len(matches.starts) > 1 and not args.get("replace_all"):
        return _build_ambiguous_problem(path, matches)
    if len(text) + len(matches.starts) * (len(new) - len(old)) > MOST_BYTES:
        return Problem(Code.TOO_LARGE, f"`{path}` would grow beyond {MOST_BYTES:,} bytes; nothing was changed.")
    return replace_matches(text, old, new)


def _build_no_match_problem(path: str, text: str, old: str) -> Problem:
    message = f"String to replace not found in `{path}`; nothing was changed."
    if _has_line_numbers(old):
        return Problem(Code.NO_MATCH, message, "`old_string` has the line numbers of `Read`; leave them out.")
    nearest = find_nearest_lines(text, old)
    if nearest is None:
        return Problem(Code.NO_MATCH, message, f"Nothing in the file comes close. {EXACT_MATCH_HINT}")
    snippet = format_numbered_lines(text, *nearest)
    return Problem(Code.NO_MATCH, f"{message} The closest lines:\n{snippet}", EXACT_MATCH_HINT)


def _build_ambiguous_problem(path: str, matches: TextMatches) -> Problem:
    lines = [str(line) for line in dict.fromkeys(matches.lines)]
    more = f" and {len(lines) - MAX_NAMED_LINES} more" if len(lines) > MAX_NAMED_LINES else ""
    return Problem(
        Code.AMBIGUOUS_MATCH,
        f"Found {len(matches.starts)} matches of the string to replace in `{path}`, at line "
        f"{', '.join(lines[:MAX_NAMED_LINES])}{more}; nothing changed.",
        "Pass more of the text around the one you mean, or set `replace_all` to replace every one.",
    )


def find_encoding_problem(*texts: str) -> Problem | None:
    """Refuse a lone surrogate, which no file can hold."""
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError:
        return Problem(
            Code.INVALID_ARGUMENTS, "The text contains half a character (a lone surrogate).", "Leave it out."
        )
    return None


def find_edit_problem(files: Files, snapshot: Snapshot, text: bool = True) -> Problem | None:
    """Say why this file may not be edited now: too large, not text, not read, or changed since."""
    path = snapshot.path
    if not snapshot.whole:
        return Problem(Code.TOO_LARGE, f"`{path}` has {snapshot.stamp.size:,} bytes; the limit is {MOST_BYTES:,}.")
    content_type = describe_non_text(snapshot.data)
    if text and content_type:
        return Problem(Code.NOT_TEXT, f"`{path}` is {content_type}; nothing was changed.")
    stamp_when_read = files.recall(path)
    if stamp_when_read is None and content_type and not find_picture_type(snapshot.data):
        message = f"`{path}` is {content_type}, which `Read` does not show; nothing was written."
        return Problem(Code.NOT_READ, message, "`fs_write_file` replaces it without reading it first.")
    if stamp_when_read is None and snapshot.data:
        return Problem(
            Code.NOT_READ, f"This session has not read `{path}` yet.", f'Call Read(file_path="{path}") first.'
        )
    if stamp_when_read is not None and not stamp_when_read.is_same_as(snapshot.stamp):
        return Problem(
            Code.STALE,
            f"`{path}` changed since this session read it; nothing was written.",
            f'Call Read(file_path="{path}") again, then repeat the change.',
        )
    return None


def create_file(files: Files, path: str, data: bytes) -> Ending:
    entry = files.write(path, data, None)
    _remember_content(files, entry, data)
    return Done(describe_change(entry.path, "Created", "", decode_text(data).removeprefix(BOM)))


def overwrite_file(files: Files, snapshot: Snapshot, data: bytes) -> None:
    """Replace the file, and remember the new content, so that the next edit needs no new `Read`."""
    _remember_content(files, files.write(snapshot.path, data, snapshot.stamp), data)


def _remember_content(files: Files, entry: DirectoryEntry, data: bytes) -> None:
    files.remember(entry.path, Stamp(len(data), entry.mtime_ns, sha256(data).hexdigest()))
