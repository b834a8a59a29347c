"""Which hooks would a commit run, and what does a question say of them?"""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from anyio import to_thread

from mcp_server.model.files import Files
from mcp_server.model.results import Refusal
from mcp_server.model.text import to_one_line
from tools.git.program import GitProgram
from tools.git.repository import find_ready_hooks

NOWHERE = "/dev/null"
"""Where there are no hooks, as people say it."""
MOST_READ = 1 << 20


@dataclass(frozen=True)
class Hooks:
    """Those that lie ready."""

    folder: str = ""
    names: tuple[str, ...] = ()
    outside: bool = False
    """The folder lies outside of the workspace, and nobody looked into it."""
    run: bool = True
    """They would run where a call asks for it: what only the person's own configuration names never does."""


async def find_hooks(git: GitProgram) -> Hooks:
    """Wherever the repository's configuration, or else the person's, has them."""
    # Asked with hooks on, or the answer would be ours.
    told = await replace(git, run_hooks=True).test("config", "--get", "core.hooksPath")
    if told.code:
        named = await git.ctx.person.find_hooks_folder(git.git_folder)
        folder, run = named or f"{git.repository.common}/hooks", not named
    else:
        run = True
        named = told.out.decode("utf-8", "surrogateescape").rstrip("\n") or "/"
        folder = named if named.startswith(("/", "~")) else posixpath.normpath(git.repository.to_workspace_path(named))
    if named == NOWHERE:
        return Hooks()
    if named.startswith("~"):
        return Hooks(folder, outside=True, run=run)
    try:
        return Hooks(folder, tuple(await to_thread.run_sync(find_ready_hooks, git.ctx.files, folder)), run=run)
    except Refusal:
        return Hooks(folder, outside=True, run=run)


async def describe_hooks(git: GitProgram, found: Hooks, asked: bool) -> Mapping[str, str]:
    """For a question about a commit that lets them run: which they are, and what is in them just now."""
    if not (asked and found.run):
        return {}
    if found.outside:
        return {"hooks that run": f"those in {to_one_line(found.folder)}; they may change what is committed"}
    if not found.names:
        return {}
    digest = await to_thread.run_sync(_compute_digest, git.ctx.files, found)
    names = ", ".join(map(to_one_line, found.names))
    return {"hooks that run": f"{names}; they may change what is committed", "SHA-256 of these hooks": digest}


def _compute_digest(files: Files, found: Hooks) -> str:
    whole = sha256()
    for name in found.names:
        try:
            data = files.read(f"{found.folder}/{name}", MOST_READ).data
        except Refusal:
            data = b""  # a link out of the workspace, where nothing here can change what it leads to
        whole.update(f"{name}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()
