"""How is a piece of a file replaced?"""

import re
from dataclasses import dataclass
from hashlib import sha256

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import DirectoryEntry, Files, Snapshot, Stamp
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from tools.files.definitions import EditArguments
from tools.files.diff import describe_change, find_nearest_lines
from tools.files.lines import BOM, MOST_BYTES, decode_text, describe_non_text, encode_text, format_numbered_lines
from tools.files.read import add_path_suggestions, find_picture_type

# Did somebody write `// ... rest of the code` instead of the code?

LEADING = re.compile(r"^(?://+|#+|/\*+|\{/\*|<!--|--|;+|%+|\*+|[(\[<]|\s)+")
TRAILING = re.compile(r"(?:\*/\}?|-->|[)\]>]|\s)+$")
ELLIPSIS = re.compile(r"\.{3,}|…")
COMMENTS = ("//", "#", "/*", "{/*", "<!--", "--", ";", "%", "*")
SENTENCE = re.compile(r"[\w\s,']+")
WORD = re.compile(r"[^\W\d_]+")
MARKERS = "rest remaining remainder existing unchanged omitted previous same unmodified brevity"
# A line of nothing but these words, an ellipsis and comment signs is no sentence anybody means for a reader.
FILLING = """
of the code file files content contents implementation implementations other others as before above below here goes go
methods method functions function imports import class classes logic for is are remains remain stays stay keep kept
lines line and tests test parts part section sections this that everything else all your original config configuration
text body document definitions definition to be in it
"""
LONGEST = 120


def find_omissions(content: str, known: str) -> list[int]:
    """The lines, from 1, that stand for something left out and are not in the known text already."""
    before = {line.strip() for line in known.split("\n")}
    return [
        number
        for number, line in enumerate(content.split("\n"), 1)
        if len(line) <= LONGEST and _is_placeholder_line(line.strip()) and line.strip() not in before
    ]


def _is_placeholder_line(line: str) -> bool:
    core = TRAILING.sub("", LEADING.sub("", line))
    words = [word.casefold() for word in WORD.findall(core)]
    markers = set(MARKERS.split()).intersection(words)
    if not markers or not markers.union(FILLING.split()).issuperset(words):
        return False
    if not line.startswith(COMMENTS) and (len(words) < 2 or not SENTENCE.fullmatch(ELLIPSIS.sub("", core))):
        return False  # `[...rest]` and `...this.existing,` are code
    return bool(ELLIPSIS.search(core)) or (core != line and len(markers) > 1)


# Where in a text is this string, and what does the text become when it is replaced there?
#
# Exactly that string: no case, space or indentation is forgiven. Only a line end is a line end, CRLF or LF, because
# models write LF whatever the file has; what is put in takes the line ends of what it replaces.

LINE_END = r"(?:\r\n|(?<!\r)\n)"
NUMBERED = re.compile(r"\s*\d+\t")


@dataclass(frozen=True, slots=True)
class TextMatches:
    starts: tuple[int, ...]
    lines: tuple[int, ...]
    """The line each one starts in, from 1."""


def build_match_pattern(wanted: str) -> str:
    return LINE_END.join(re.escape(line) for line in wanted.replace("\r\n", "\n").split("\n"))


def find_matches(text: str, wanted: str) -> TextMatches:
    """Every place, overlapping ones too: `aa` is in `aaa` twice, and which one was meant is not for us to guess."""
    starts = tuple(match.start() for match in re.finditer(f"(?={build_match_pattern(wanted)})", text))
    lines: list[int] = []
    line, at = 1, 0
    for start in starts:
        line += text.count("\n", at, start)
        at = start
        lines.append(line)
    return TextMatches(starts, tuple(lines))


def replace_matches(text: str, wanted: str, by: str) -> str:
    usual = find_usual_line_end(text)
    plain = by.replace("\r\n", "\n")

    def put(match: re.Match[str]) -> str:
        found = match.group()
        end = "\r\n" if "\r\n" in found else "\n" if "\n" in found else usual
        return plain.replace("\n", end)

    return re.sub(build_match_pattern(wanted), put, text)


def find_usual_line_end(text: str) -> str:
    """The one most lines have."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"


def has_line_numbers(wanted: str) -> bool:
    """Was it copied out of what `Read` shows, line numbers and all?"""
    return all(NUMBERED.match(line) for line in wanted.rstrip("\n").split("\n"))


MOST_NAMED = 20
"""How many places are named one by one where a string is in a file too often."""
EXACTLY = (
    "It has to be there exactly, with every space and line; the number and the tab that `Read` shows do not belong."
)


async def edit(ctx: Context, args: EditArguments) -> Ending:
    return await to_thread.run_sync(_edit, ctx.files, args)


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
        return (
            new
            if not text
            else Problem(
                Code.ALREADY_EXISTS,
                f"`{path}` exists and is not empty; an empty `old_string` only creates a file.",
                "Give the text to replace, or use `Write` to replace the whole file.",
            )
        )
    found = find_matches(text, old)
    if not found.starts:
        return _build_no_match_problem(path, text, old)
    if len(found.starts) > 1 and not args.get("replace_all"):
        return _build_ambiguous_problem(path, found)
    if len(text) + len(found.starts) * (len(new) - len(old)) > MOST_BYTES:
        return Problem(Code.TOO_LARGE, f"`{path}` would grow beyond {MOST_BYTES:,} bytes; nothing was changed.")
    return replace_matches(text, old, new)


def _build_no_match_problem(path: str, text: str, old: str) -> Problem:
    message = f"String to replace not found in `{path}`; nothing was changed."
    if has_line_numbers(old):
        return Problem(Code.NO_MATCH, message, "`old_string` carries the line numbers of `Read`; leave them out.")
    near = find_nearest_lines(text, old)
    if near is None:
        return Problem(Code.NO_MATCH, message, f"Nothing in the file comes close. {EXACTLY}")
    return Problem(Code.NO_MATCH, f"{message} What comes closest:\n{format_numbered_lines(text, *near)}", EXACTLY)


def _build_ambiguous_problem(path: str, found: TextMatches) -> Problem:
    lines = [str(line) for line in dict.fromkeys(found.lines)]
    places = ", ".join(lines[:MOST_NAMED]) + (f" and {len(lines) - MOST_NAMED} more" if len(lines) > MOST_NAMED else "")
    return Problem(
        Code.AMBIGUOUS_MATCH,
        f"Found {len(found.starts)} matches of the string to replace in `{path}`, at line {places}; nothing changed.",
        "Give more of the text around the one you mean, or set `replace_all` to replace every one.",
    )


def find_encoding_problem(*texts: str) -> Problem | None:
    """Half a character cannot be written to any file."""
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError:
        return Problem(Code.INVALID_ARGUMENTS, "The text holds half a character (a lone surrogate).", "Leave it out.")
    return None


def find_edit_problem(files: Files, snapshot: Snapshot, text: bool = True) -> Problem | None:
    """Why this file is not changed now: too large, not text, not read, or no longer what was read."""
    path = snapshot.path
    if not snapshot.whole:
        return Problem(Code.TOO_LARGE, f"`{path}` has {snapshot.stamp.size:,} bytes; up to {MOST_BYTES:,} are edited.")
    if text and (what := describe_non_text(snapshot.data)):
        return Problem(Code.NOT_TEXT, f"`{path}` is {what}; nothing was changed.")
    seen = files.recall(path)
    if seen is None and (what := describe_non_text(snapshot.data)) and not find_picture_type(snapshot.data):
        message = f"`{path}` is {what}, which `Read` does not show; nothing was written."
        return Problem(Code.NOT_READ, message, "`fs_write_file` replaces it whole, without having seen it.")
    if seen is None and snapshot.data:
        return Problem(
            Code.NOT_READ, f"`{path}` was not read in this session yet.", f'Call Read(file_path="{path}") first.'
        )
    if seen is not None and not seen.is_same_as(snapshot.stamp):
        return Problem(
            Code.STALE,
            f"`{path}` changed since it was read in this session; nothing was written.",
            f'Call Read(file_path="{path}") again, then repeat the change.',
        )
    return None


def create_file(files: Files, path: str, data: bytes) -> Ending:
    entry = files.write(path, data, None)
    _remember_content(files, entry, data)
    return Done(describe_change(entry.path, "Created", "", decode_text(data).removeprefix(BOM)))


def overwrite_file(files: Files, snapshot: Snapshot, data: bytes) -> None:
    """In place of what was read, and known to the session: the next change needs no new look."""
    _remember_content(files, files.write(snapshot.path, data, snapshot.stamp), data)


def _remember_content(files: Files, entry: DirectoryEntry, data: bytes) -> None:
    files.remember(entry.path, Stamp(len(data), entry.mtime_ns, sha256(data).hexdigest()))
