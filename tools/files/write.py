"""How does `Write` replace the content of a whole file?"""

import re

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import Files, Snapshot
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from tools.files.definitions import WriteArguments
from tools.files.diff import describe_change
from tools.files.edit import (
    create_file,
    find_edit_problem,
    find_encoding_problem,
    find_usual_line_end,
    lock_file,
    overwrite_file,
)
from tools.files.lines import BOM, MOST_BYTES, decode_text, describe_non_text, encode_text

# Models sometimes write `// ... rest of the code` instead of the code; these find such a line.
LEADING = re.compile(r"^(?://+|#+|/\*+|\{/\*|<!--|--|;+|%+|\*+|[(\[<]|\s)+")
TRAILING = re.compile(r"(?:\*/\}?|-->|[)\]>]|\s)+$")
ELLIPSIS = re.compile(r"\.{3,}|…")
COMMENTS = ("//", "#", "/*", "{/*", "<!--", "--", ";", "%", "*")
SENTENCE = re.compile(r"[\w\s,']+")
WORD = re.compile(r"[^\W\d_]+")
MARKERS = "rest remaining remainder existing unchanged omitted previous same unmodified brevity"
# A line of nothing but these words, an ellipsis and comment signs says nothing to a reader of the code.
FILLER_WORDS = """
of the code file files content contents implementation implementations other others as before above below here goes go
methods method functions function imports import class classes logic for is are remains remain stays stay keep kept
lines line and tests test parts part section sections this that everything else all your original config configuration
text body document definitions definition to be in it
"""
MAX_PLACEHOLDER_CHARS = 120


async def write(ctx: Context, args: WriteArguments) -> Ending:
    return await to_thread.run_sync(_write_alone, ctx.files, args)


def _write_alone(files: Files, args: WriteArguments) -> Ending:
    with lock_file(args["file_path"]):
        return _write(files, args)


def _write(files: Files, args: WriteArguments) -> Ending:
    path, content = args["file_path"], args["content"]
    if problem := find_encoding_problem(content):
        return problem
    try:
        snapshot = files.read(path, MOST_BYTES)
    except Refusal as refusal:
        if refusal.problem.code is not Code.NOT_FOUND:
            return refusal.problem
        return _find_omission_problem(content, "") or create_file(files, path, encode_text(content))
    if problem := find_edit_problem(files, snapshot, text=False):
        return problem
    return _replace_content(files, snapshot, content)


def _replace_content(files: Files, snapshot: Snapshot, content: str) -> Ending:
    before = "" if describe_non_text(snapshot.data) else decode_text(snapshot.data)
    if problem := _find_omission_problem(content, before):
        return problem
    preserved: list[str] = []
    if "\n" in content and "\r" not in content and find_usual_line_end(before) == "\r\n":
        content = content.replace("\n", "\r\n")
        preserved.append("its CRLF line ends")
    if before.startswith(BOM) and not content.startswith(BOM):
        content = BOM + content
        preserved.append("its byte order mark")
    data = encode_text(content)
    if data == snapshot.data:
        return Done(f"`{snapshot.path}` already has exactly this content; nothing was written.")
    overwrite_file(files, snapshot, data)
    answer = describe_change(snapshot.path, "Updated", before.removeprefix(BOM), content.removeprefix(BOM))
    return Done(answer + (f"\n[The file kept {' and '.join(preserved)}.]" if preserved else ""))


def _find_omission_problem(content: str, before: str) -> Problem | None:
    lines = _find_omissions(content, before)
    if not lines:
        return None
    return Problem(
        Code.INVALID_ARGUMENTS,
        f"Line {', '.join(map(str, lines[:5]))} of `content` stands for text that was left out; nothing was written.",
        "Write the whole content, or use `Edit` to change a part, or to add that line as it is.",
    )


def _find_omissions(content: str, before: str) -> list[int]:
    """Find the lines, from 1, that stand for omitted text and were not in the file before."""
    old_lines = {line.strip() for line in before.split("\n")}
    return [
        number
        for number, line in enumerate(content.split("\n"), 1)
        if len(line) <= MAX_PLACEHOLDER_CHARS and _is_placeholder_line(line.strip()) and line.strip() not in old_lines
    ]


def _is_placeholder_line(line: str) -> bool:
    core = TRAILING.sub("", LEADING.sub("", line))
    words = [word.casefold() for word in WORD.findall(core)]
    markers = set(MARKERS.split()).intersection(words)
    if not markers or not markers.union(FILLER_WORDS.split()).issuperset(words):
        return False
    if not line.startswith(COMMENTS) and (len(words) < 2 or not SENTENCE.fullmatch(ELLIPSIS.sub("", core))):
        return False  # `[...rest]` and `...this.existing,` are code
    return bool(ELLIPSIS.search(core)) or (core != line and len(markers) > 1)
