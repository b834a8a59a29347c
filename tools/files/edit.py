"""How is a piece of a file replaced?"""

import re
from dataclasses import dataclass
from hashlib import sha256

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import DirectoryEntry, Files, Snapshot, Stamp
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from tools.files.definitions import EditArguments
from tools.files.diff import nearest, told
from tools.files.lines import BOM, MOST_BYTES, decoded, encoded, not_text, numbered
from tools.files.read import picture, with_neighbours

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


def omissions(content: str, known: str) -> list[int]:
    """The lines, from 1, that stand for something left out and are not in the known text already."""
    before = {line.strip() for line in known.split("\n")}
    return [
        number
        for number, line in enumerate(content.split("\n"), 1)
        if len(line) <= LONGEST and _stands_for_something(line.strip()) and line.strip() not in before
    ]


def _stands_for_something(line: str) -> bool:
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


def pattern_of(wanted: str) -> str:
    return LINE_END.join(re.escape(line) for line in wanted.replace("\r\n", "\n").split("\n"))


def matches(text: str, wanted: str) -> TextMatches:
    """Every place, overlapping ones too: `aa` is in `aaa` twice, and which one was meant is not for us to guess."""
    starts = tuple(match.start() for match in re.finditer(f"(?={pattern_of(wanted)})", text))
    lines: list[int] = []
    line, at = 1, 0
    for start in starts:
        line += text.count("\n", at, start)
        at = start
        lines.append(line)
    return TextMatches(starts, tuple(lines))


def replaced(text: str, wanted: str, by: str) -> str:
    usual = line_end(text)
    plain = by.replace("\r\n", "\n")

    def put(match: re.Match[str]) -> str:
        found = match.group()
        end = "\r\n" if "\r\n" in found else "\n" if "\n" in found else usual
        return plain.replace("\n", end)

    return re.sub(pattern_of(wanted), put, text)


def line_end(text: str) -> str:
    """The one most lines have."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"


def carries_numbers(wanted: str) -> bool:
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
    if problem := halves(old, new):
        return problem
    try:
        snapshot = files.read(path, MOST_BYTES)
    except Refusal as refusal:
        if refusal.problem.code is Code.NOT_FOUND and not old:
            return create(files, path, encoded(new))
        return with_neighbours(files, path, refusal.problem)
    if problem := unfit(files, snapshot):
        return problem
    text = decoded(snapshot.data)
    bom = BOM if text.startswith(BOM) else ""
    after = _changed(snapshot.path, text.removeprefix(BOM), args)
    if isinstance(after, Problem):
        return after
    store(files, snapshot, encoded(bom + after))
    return Done(told(snapshot.path, "Edited", text.removeprefix(BOM), after))


def _changed(path: str, text: str, args: EditArguments) -> str | Problem:
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
    found = matches(text, old)
    if not found.starts:
        return _missing(path, text, old)
    if len(found.starts) > 1 and not args.get("replace_all"):
        return _several(path, found)
    if len(text) + len(found.starts) * (len(new) - len(old)) > MOST_BYTES:
        return Problem(Code.TOO_LARGE, f"`{path}` would grow beyond {MOST_BYTES:,} bytes; nothing was changed.")
    return replaced(text, old, new)


def _missing(path: str, text: str, old: str) -> Problem:
    message = f"String to replace not found in `{path}`; nothing was changed."
    if carries_numbers(old):
        return Problem(Code.NO_MATCH, message, "`old_string` carries the line numbers of `Read`; leave them out.")
    near = nearest(text, old)
    if near is None:
        return Problem(Code.NO_MATCH, message, f"Nothing in the file comes close. {EXACTLY}")
    return Problem(Code.NO_MATCH, f"{message} What comes closest:\n{numbered(text, *near)}", EXACTLY)


def _several(path: str, found: TextMatches) -> Problem:
    lines = [str(line) for line in dict.fromkeys(found.lines)]
    places = ", ".join(lines[:MOST_NAMED]) + (f" and {len(lines) - MOST_NAMED} more" if len(lines) > MOST_NAMED else "")
    return Problem(
        Code.AMBIGUOUS_MATCH,
        f"Found {len(found.starts)} matches of the string to replace in `{path}`, at line {places}; nothing changed.",
        "Give more of the text around the one you mean, or set `replace_all` to replace every one.",
    )


def halves(*texts: str) -> Problem | None:
    """Half a character cannot be written to any file."""
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError:
        return Problem(Code.INVALID_ARGUMENTS, "The text holds half a character (a lone surrogate).", "Leave it out.")
    return None


def unfit(files: Files, snapshot: Snapshot, text: bool = True) -> Problem | None:
    """Why this file is not changed now: too large, not text, not read, or no longer what was read."""
    path = snapshot.path
    if not snapshot.whole:
        return Problem(Code.TOO_LARGE, f"`{path}` has {snapshot.stamp.size:,} bytes; up to {MOST_BYTES:,} are edited.")
    if text and (what := not_text(snapshot.data)):
        return Problem(Code.NOT_TEXT, f"`{path}` is {what}; nothing was changed.")
    seen = files.recall(path)
    if seen is None and (what := not_text(snapshot.data)) and not picture(snapshot.data):
        message = f"`{path}` is {what}, which `Read` does not show; nothing was written."
        return Problem(Code.NOT_READ, message, "`fs_write_file` replaces it whole, without having seen it.")
    if seen is None and snapshot.data:
        return Problem(
            Code.NOT_READ, f"`{path}` was not read in this session yet.", f'Call Read(file_path="{path}") first.'
        )
    if seen is not None and not seen.fits(snapshot.stamp):
        return Problem(
            Code.STALE,
            f"`{path}` changed since it was read in this session; nothing was written.",
            f'Call Read(file_path="{path}") again, then repeat the change.',
        )
    return None


def create(files: Files, path: str, data: bytes) -> Ending:
    entry = files.write(path, data, None)
    _remember(files, entry, data)
    return Done(told(entry.path, "Created", "", decoded(data).removeprefix(BOM)))


def store(files: Files, snapshot: Snapshot, data: bytes) -> None:
    """In place of what was read, and known to the session: the next change needs no new look."""
    _remember(files, files.write(snapshot.path, data, snapshot.stamp), data)


def _remember(files: Files, entry: DirectoryEntry, data: bytes) -> None:
    files.remember(entry.path, Stamp(len(data), entry.mtime_ns, sha256(data).hexdigest()))
