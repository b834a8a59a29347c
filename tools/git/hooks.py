"""Which hooks would a commit run, and what does its approval say about them?"""

import posixpath
from collections.abc import Mapping
from hashlib import sha256

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.files import Files
from mcp_server.model.results import Refusal
from mcp_server.model.text import to_one_line
from tools.git.program import GitProgram
from tools.git.repository import find_commit_hooks

NO_HOOKS_FOLDER = "/dev/null"
"""What people set `core.hooksPath` to if they want no hooks."""
MAX_HOOK_BYTES = 1 << 20


class Hooks(Struct, frozen=True):
    folder: str = ""
    names: tuple[str, ...] = ()
    outside: bool = False
    """The folder lies outside the workspace, so we do not know its hooks."""
    may_run: bool = True
    """False if only the user's own configuration names them: no call runs those."""


async def find_hooks(git: GitProgram) -> Hooks:
    """Find the hooks that the repository's configuration names, or else the user's own."""
    # With hooks on, since otherwise git answers with the setting that we pass to turn them off.
    setting = await replace(git, run_hooks=True).test("config", "--get", "core.hooksPath")
    if setting.code:
        hooks_path = await git.ctx.person.find_hooks_folder(git.git_folder)
        folder, may_run = hooks_path or f"{git.repository.common}/hooks", not hooks_path
    else:
        hooks_path = folder = setting.out.decode("utf-8", "surrogateescape").rstrip("\n") or "/"
        if not hooks_path.startswith(("/", "~")):
            folder = posixpath.normpath(git.repository.to_workspace_path(hooks_path))
        may_run = True
    if hooks_path == NO_HOOKS_FOLDER:
        return Hooks()
    if hooks_path.startswith("~"):
        return Hooks(folder, outside=True, may_run=may_run)
    try:
        names = tuple(await to_thread.run_sync(find_commit_hooks, git.ctx.files, folder))
    except Refusal:
        return Hooks(folder, outside=True, may_run=may_run)
    return Hooks(folder, names, may_run=may_run)


async def describe_hooks(git: GitProgram, hooks: Hooks, run_hooks: bool) -> Mapping[str, str]:
    """Build what an approval says about the hooks that the commit runs, with a digest of their present content."""
    if not (run_hooks and hooks.may_run):
        return {}
    if hooks.outside:
        return {"hooks that run": f"those in {to_one_line(hooks.folder)}; they may change what is committed"}
    if not hooks.names:
        return {}
    digest = await to_thread.run_sync(_compute_digest, git.ctx.files, hooks)
    names = ", ".join(map(to_one_line, hooks.names))
    return {"hooks that run": f"{names}; they may change what is committed", "SHA-256 of these hooks": digest}


def _compute_digest(files: Files, hooks: Hooks) -> str:
    digest = sha256()
    for name in hooks.names:
        try:
            data = files.read(f"{hooks.folder}/{name}", MAX_HOOK_BYTES).data
        except Refusal:
            data = b""  # a link out of the workspace; no tool can change what is there
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()
