"""What lies at the path that is deleted or moved? A yes is about that, and not about what goes by its name later."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import DirectoryEntry, Files, is_secret
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import make_visible
from mcp_server.model.tools import Arguments

PIECE = 1 << 20
MOST_HASHED = 256 << 20
"""Bytes looked at. Of what is behind them, size and time have to do."""
MOST_SHOWN = 20_000
"""Characters. What is longer is shown by its beginning, and is there to be read."""
BEGINNING = 2_000
MOST_LISTED = 200
DEEPEST = 64


async def read_deletion_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    return await to_thread.run_sync(describe_deleted, ctx.files, args["path"])


def build_approval_check(
    ctx: Context, facts: Callable[[Files, str, str], Mapping[str, str]], path: str
) -> Callable[[str], None] | None:
    """Tells of what lies at another path by now whether it is what the person said yes to. None where nobody asked."""
    shown = ctx.stands
    if shown is None:
        return None
    name = ctx.files.get_info(path).path

    def look(there: str) -> None:
        if dict(facts(ctx.files, there, name)) != dict(shown):
            message = f"`{make_visible(name)}` changed after the user was asked; it is where it was."
            raise Refusal(Problem(Code.STALE, message, "Make the call again: the user is asked anew."))

    return look


def describe_deleted(files: Files, path: str, _name: str = "") -> Mapping[str, str]:
    return {"what is there": _describe_entry(files, files.get_info(path))}


async def read_move_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    return await to_thread.run_sync(describe_moved, ctx.files, args["source"])


def describe_moved(files: Files, path: str, name: str = "") -> Mapping[str, str]:
    """Told by its own name, where it goes by another one for now."""
    entry = files.get_info(path)
    name = name or entry.path
    facts = {"what is moved": _describe_entry(files, entry)}
    if entry.kind == "directory":
        entries = files.list_folder(path, DEEPEST)
        names = [
            f"{name}{one.path.removeprefix(entry.path)} ({one.kind}, {one.size:,} bytes)"
            for one in entries[:MOST_LISTED]
        ]
        more = len(entries) - MOST_LISTED
        listed = [*names, *([f"... and {more:,} more"] if more > 0 else [])]
        return facts | ({"its content": "\n".join(repr(one)[1:-1] for one in listed)} if listed else {})
    # What holds a secret is not put before a client.
    if entry.kind != "file" or is_secret(name):
        return facts
    return {**facts, **_describe_content(files, entry)}


def _describe_content(files: Files, entry: DirectoryEntry) -> Mapping[str, str]:
    found = files.read(entry.path, 4 * MOST_SHOWN)
    try:
        text = found.data.decode()
    except UnicodeDecodeError:
        return {"its content": "not text"} if found.whole else {"its content": "too long to show here"}
    if found.whole and len(text) <= MOST_SHOWN:
        return {"its content": text}
    return {f"its content, of which this is the beginning ({BEGINNING:,} characters)": text[:BEGINNING]}


def _describe_entry(files: Files, entry: DirectoryEntry) -> str:
    """In few words, and so that nothing else fits them."""
    if entry.kind == "directory":
        entries = files.list_folder(entry.path, DEEPEST)
        number = "1 entry" if len(entries) == 1 else f"{len(entries):,} entries"
        return (
            f"a folder, {number}, SHA-256 {_compute_digest(files, entries, entry.path)}"
            if entries
            else "an empty folder"
        )
    if entry.kind == "file":
        return f"a file, {entry.size:,} bytes, SHA-256 {_compute_digest(files, [entry])}"
    return f"a {entry.kind}, last changed at {entry.mtime_ns} ns"


def _compute_digest(files: Files, entries: Sequence[DirectoryEntry], top: str = "") -> str:
    """Of one file its own, as anybody may compute it; of several, of all that is known of them."""
    whole, left = sha256(), MOST_HASHED
    alone = len(entries) == 1 and entries[0].kind == "file"
    for entry in entries:
        if not alone:
            whole.update(repr((entry.path.removeprefix(top), entry.kind, entry.size, entry.mode)).encode())
        if entry.kind == "file" and entry.size <= left:
            left -= entry.size
            try:
                for piece in _read_pieces(files, entry):
                    whole.update(piece)
                continue
            except Refusal:
                # Such as a file with another name elsewhere, which is not opened.
                pass
        whole.update(str(entry.mtime_ns).encode())
    return whole.hexdigest()


def _read_pieces(files: Files, entry: DirectoryEntry) -> Iterator[bytes]:
    for start in range(0, entry.size + 1, PIECE):
        yield files.read(entry.path, PIECE, start).data
