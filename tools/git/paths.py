"""Which files of the repository does a path mean? The jail resolves it, and git gets it relative to the top folder."""

import posixpath
from collections.abc import Iterable

from mcp_server.model.files import Files, is_secret
from mcp_server.model.results import Code, Refusal
from mcp_server.model.text import to_one_line
from tools.git.repository import Repository


def locate_paths(files: Files, repository: Repository, paths: Iterable[str]) -> tuple[str, ...]:
    """Convert paths as the caller wrote them, relative to `repo_path`, to literal pathspecs."""
    return tuple(dict.fromkeys(_locate_path(files, repository, path) for path in paths))


def _locate_path(files: Files, repository: Repository, path: str) -> str:
    joined = path if path.startswith(("/", "~/")) else posixpath.join(repository.start, path)
    try:
        # Resolves links among the folders on the way.
        workspace_path = files.get_info(joined).path
    except Refusal as refusal:
        if refusal.problem.code is not Code.NOT_FOUND:
            raise
        # Git may know a file that was deleted; the path as written is all that we know.
        workspace_path = _normalize_path(joined, files.root.rstrip("/"))
    repository_path = _to_repository_path(workspace_path, repository.top)
    if repository_path is None:
        message = f"`{to_one_line(path)}` lies outside {repository.name}."
        raise Refusal.because(Code.PATH_REFUSED, message, "Pass a path in the repository, relative to `repo_path`.")
    if ".git" in repository_path.split("/"):
        message = f"`{to_one_line(path)}` belongs to git itself; it is not a file of the repository."
        raise Refusal.because(Code.PATH_REFUSED, message, "Pass a path outside `.git`.")
    return repository_path


def _normalize_path(path: str, root: str) -> str:
    clean = posixpath.normpath(path)
    return posixpath.relpath(clean, root) if clean.startswith("/") else clean


def _to_repository_path(path: str, top: str) -> str | None:
    """Convert a path relative to the workspace to one relative to the repository; None if it lies outside."""
    if top == ".":
        return None if path == ".." or path.startswith("../") else path
    if path == top:
        return "."
    return path[len(top) + 1 :] if path.startswith(f"{top}/") else None


def find_unnamed_secrets(paths: Iterable[str], approved: Iterable[str]) -> list[str]:
    """Return the files that usually hold secrets and that the call does not name, so that the user was not asked."""
    approved = set(approved)
    return [path for path in paths if is_secret(path) and path not in approved]
