"""Is what git staged what our own handles read? Git opens files by name, and a name may have been swapped by then."""

from collections.abc import Mapping, Sequence
from hashlib import sha1, sha256

from anyio import to_thread

from mcp_server.model.results import Code, Problem, Refusal
from tools.git import escape
from tools.git.porcelain import FileChange
from tools.git.program import GitProgram

MAX_FILE_BYTES = 256 << 20
MAX_CONVERTED_FILES = 300
"""Files that git converts on the way, one run of git each."""
SHA256_CHARS = 64


async def check_staged(git: GitProgram, staged: Sequence[FileChange], before: Mapping[bytes, FileChange]) -> None:
    """Unstage what is not what we read from these paths, and raise a `Refusal` if there is any."""
    contents = [
        change for change in staged if change.blob.strip("0") and not change.is_submodule and not change.is_link
    ]
    try:
        for change, data in await to_thread.run_sync(_find_different, git, contents):
            # Line ends, or a filter such as Git LFS: let git convert the bytes that we have read.
            path = change.path.decode("utf-8", "surrogateescape")
            converted = await git.read("hash-object", "--stdin", f"--path={path}", stdin=data)
            if converted.decode().strip() != change.blob:
                raise _build_swapped_refusal(change)
    except Refusal:
        await _unstage(git, staged, before)
        raise


def _find_different(git: GitProgram, contents: Sequence[FileChange]) -> list[tuple[FileChange, bytes]]:
    """Return the files whose bytes are not what was staged, with their bytes."""
    different: list[tuple[FileChange, bytes]] = []
    hides = git.ctx.hides
    for change in contents:
        path = git.repository.to_workspace_path(change.path.decode("utf-8", "surrogateescape"))
        snapshot = git.ctx.files.read(path, MAX_FILE_BYTES)
        if hides is not None and (hides(path) or hides(snapshot.path)):
            message = f"Nothing was staged: a rule of the user keeps `{escape.to_visible_path(change.path)}` from this."
            raise Refusal(Problem(Code.PATH_REFUSED, message, "Name the files to stage one by one, without it."))
        if not snapshot.whole:
            message = f"`{escape.to_visible_path(change.path)}` is too large to check; nothing was staged."
            raise Refusal(Problem(Code.TOO_LARGE, message, "Ask the user to stage it."))
        if snapshot.path != path:
            raise _build_swapped_refusal(change)
        if _compute_blob_name(snapshot.data, change.blob) != change.blob:
            different.append((change, snapshot.data))
    if len(different) > MAX_CONVERTED_FILES:
        message = f"Git converts more than {MAX_CONVERTED_FILES} of these files; nothing was staged."
        raise Refusal(Problem(Code.TOO_LARGE, message, "Stage one folder at a time."))
    return different


def _compute_blob_name(data: bytes, like: str) -> str:
    content = f"blob {len(data)}\0".encode() + data
    if len(like) == SHA256_CHARS:
        return sha256(content).hexdigest()
    return sha1(content, usedforsecurity=False).hexdigest()


async def _unstage(git: GitProgram, staged: Sequence[FileChange], before: Mapping[bytes, FileChange]) -> None:
    """Put the index back as it was at these paths."""
    names = [change.path.decode("utf-8", "surrogateescape") for change in staged]
    await git.change("reset", "--quiet", "--", *names)
    for change in staged:
        old = before.get(change.path)
        if old is not None and old.blob.strip("0"):
            entry = f"{old.new_mode},{old.blob},{old.path.decode('utf-8', 'surrogateescape')}"
            await git.change("update-index", "--add", "--cacheinfo", entry)


def _build_swapped_refusal(change: FileChange) -> Refusal:
    message = f"`{escape.to_visible_path(change.path)}` changed while it was staged; nothing was staged."
    return Refusal(Problem(Code.STALE, message, "Call again."))
