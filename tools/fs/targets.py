"""What is deleted or moved? An approval covers what is at the path when the user is asked, not what is there later."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import DirectoryEntry, Files, is_secret
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import escape_name, format_count
from mcp_server.model.tools import Arguments

CHUNK_BYTES = 1 << 20
MAX_HASHED_BYTES = 256 << 20
"""Files beyond that are identified by size and time."""
MAX_SHOWN_CHARS = 20_000
SHOWN_IF_LONGER = 2_000
MAX_LISTED_ENTRIES = 200
MAX_DEPTH = 64


async def read_deletion_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    return await to_thread.run_sync(describe_deleted, ctx.files, args["path"])


def build_approval_check(
    ctx: Context, describe: Callable[[Files, str, str], Mapping[str, str]], path: str
) -> Callable[[str], None] | None:
    """Build a check that the entry, which the guard first moves to another path, is what the user approved.

    None if the user was not asked.
    """
    approved = ctx.stands
    if approved is None:
        return None
    name = ctx.files.get_info(path).path

    def check(temporary_path: str) -> None:
        if dict(describe(ctx.files, temporary_path, name)) != dict(approved):
            message = f"`{escape_name(name)}` changed after the user was asked; it is still where it was."
            raise Refusal(Problem(Code.STALE, message, "Call again; the user will be asked again."))

    return check


def describe_deleted(files: Files, path: str, _name: str = "") -> Mapping[str, str]:
    return {"now at this path": _describe_entry(files, files.get_info(path))}


async def read_move_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    return await to_thread.run_sync(describe_moved, ctx.files, args["source"])


def describe_moved(files: Files, path: str, name: str = "") -> Mapping[str, str]:
    """Build what the approval says; `name` is the entry's own path, if it is at another one for now."""
    entry = files.get_info(path)
    name = name or entry.path
    facts = {"moves": _describe_entry(files, entry)}
    if entry.kind == "directory":
        members = files.list_folder(path, MAX_DEPTH)
        lines = [
            f"{name}{member.path.removeprefix(entry.path)} ({member.kind}, {format_count(member.size, 'byte')})"
            for member in members[:MAX_LISTED_ENTRIES]
        ]
        if len(members) > MAX_LISTED_ENTRIES:
            lines.append(f"... and {len(members) - MAX_LISTED_ENTRIES:,} more")
        return facts | ({"its content": "\n".join(repr(line)[1:-1] for line in lines)} if lines else {})
    # The question goes to the client, which must not see secrets.
    if entry.kind != "file" or is_secret(name):
        return facts
    return {**facts, **_describe_content(files, entry)}


def _describe_content(files: Files, entry: DirectoryEntry) -> Mapping[str, str]:
    snapshot = files.read(entry.path, 4 * MAX_SHOWN_CHARS)
    try:
        text = snapshot.data.decode()
    except UnicodeDecodeError:
        return {"its content": "not text" if snapshot.whole else "too long to show here"}
    if snapshot.whole and len(text) <= MAX_SHOWN_CHARS:
        return {"its content": text}
    return {f"the first {SHOWN_IF_LONGER:,} characters of its content": text[:SHOWN_IF_LONGER]}


def _describe_entry(files: Files, entry: DirectoryEntry) -> str:
    """Identify the entry in few words: any change to it changes them."""
    if entry.kind == "directory":
        entries = files.list_folder(entry.path, MAX_DEPTH)
        if not entries:
            return "an empty folder"
        count = "1 entry" if len(entries) == 1 else f"{len(entries):,} entries"
        return f"a folder, {count}, SHA-256 {_compute_digest(files, entries, entry.path)}"
    if entry.kind == "file":
        return f"a file, {format_count(entry.size, 'byte')}, SHA-256 {_compute_digest(files, [entry])}"
    return f"a {entry.kind}, last changed at {entry.mtime_ns} ns"


def _compute_digest(files: Files, entries: Sequence[DirectoryEntry], top: str = "") -> str:
    """Return the digest of a single file as `sha256sum` has it, or of everything we know about several entries."""
    digest, bytes_left = sha256(), MAX_HASHED_BYTES
    single_file = len(entries) == 1 and entries[0].kind == "file"
    for entry in entries:
        if not single_file:
            digest.update(repr((entry.path.removeprefix(top), entry.kind, entry.size, entry.mode)).encode())
        if entry.kind == "file" and entry.size <= bytes_left:
            bytes_left -= entry.size
            try:
                for chunk in _read_chunks(files, entry):
                    digest.update(chunk)
                continue
            except Refusal:
                pass  # the guard does not open it, for instance because it has a second name elsewhere
        digest.update(str(entry.mtime_ns).encode())
    return digest.hexdigest()


def _read_chunks(files: Files, entry: DirectoryEntry) -> Iterator[bytes]:
    for start in range(0, entry.size + 1, CHUNK_BYTES):
        yield files.read(entry.path, CHUNK_BYTES, start).data
