"""Which files of the repository are meant? Each path goes through the jail and comes out below the repository's top."""

import posixpath
from collections.abc import Iterable

from mcp_server.model.files import Files, is_secret
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_one_line
from tools.git.repository import Repository


def locate_paths(files: Files, repository: Repository, paths: Iterable[str]) -> tuple[str, ...]:
    """Paths as somebody wrote them, relative to the folder named as `repo_path` -> as git takes them literally."""
    return tuple(dict.fromkeys(_locate_path(files, repository, path) for path in paths))


def _locate_path(files: Files, repository: Repository, path: str) -> str:
    asked = path if path.startswith(("/", "~/")) else posixpath.join(repository.asked, path)
    try:
        # What is really there: a folder on the way that is a link leads elsewhere.
        inside = files.get_info(asked).path
    except Refusal as refusal:
        if refusal.problem.code is not Code.NOT_FOUND:
            raise
        # It may be gone and still be known to git; where it would be is told by its words.
        inside = _normalize_path(asked, files.root.rstrip("/"))
    found = to_repository_path(inside, repository.top)
    if found is None:
        message = f"`{to_one_line(path)}` lies outside {repository.name}."
        raise Refusal(Problem(Code.PATH_REFUSED, message, "Give a path in the repository, relative to `repo_path`."))
    if ".git" in found.split("/"):
        message = f"`{to_one_line(path)}` is git's own, and no file of the repository."
        raise Refusal(Problem(Code.PATH_REFUSED, message, "Give a path outside `.git`."))
    return found


def _normalize_path(path: str, root: str) -> str:
    clean = posixpath.normpath(path)
    return posixpath.relpath(clean, root) if clean.startswith("/") else clean


def to_repository_path(path: str, top: str) -> str | None:
    """A path of the workspace as one of the repository, None where it lies elsewhere."""
    if top == ".":
        return None if path == ".." or path.startswith("../") else path
    if path == top:
        return "."
    return path[len(top) + 1 :] if path.startswith(f"{top}/") else None


def find_unnamed_secrets(paths: Iterable[str], named: Iterable[str]) -> list[str]:
    """Those that usually hold secrets and were not named themselves, so that nobody was asked about them."""
    spoken = set(named)
    return [path for path in paths if is_secret(path) and path not in spoken]
