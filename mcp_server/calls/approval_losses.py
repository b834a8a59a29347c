"""How does a question say what would be lost?"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from mcp_server.calls.approval_arguments import format_value, to_field
from mcp_server.guards.git_index import Tracking
from mcp_server.guards.loss_sizes import BY_GIT, IN_FOLDER, UNCOUNTED, UNKNOWN, MeasuredLoss
from mcp_server.guards.path_sizes import PathSize
from mcp_server.guards.redaction import Redactor
from mcp_server.model.text import format_count

TRACKING = {
    Tracking.TRACKED: "tracked by git",
    Tracking.UNTRACKED: "not tracked by git",
    Tracking.OUTSIDE: "in no git repository",
    Tracking.UNKNOWN: "menugate cannot tell whether git tracks it",
}
DOES: Mapping[str, str] = {
    **dict.fromkeys(
        ("deletes", "unlinks", "removes", "deletes in", "deletes some in", "cleans", "cleans all"), "deletes"
    ),
    **dict.fromkeys(("overwrites", "replaces", "relinks", "overwrites in", "discards", "resets"), "overwrites"),
}
ALTERED = ", unless an earlier part of the line changes that"
PLAINLY_QUOTED = re.compile(r'"[^"\\`]*"')
INSIDE = "/…"
"""Stands behind a word for files in what it means."""
STRAYED = ", in a folder that is not known before the line runs"


def format_loss(measured: MeasuredLoss, redactor: Redactor, stated: Collection[str] = ()) -> str:
    """`stated`: files whose size the question gives already."""
    loss, size = measured
    name, does = format_value(size.path, redactor), DOES[loss.does]
    if size.kind == UNKNOWN:
        return f"{does} {_format_unknown(measured, redactor)}"
    if size.kind == UNCOUNTED:
        return f"may {does.removesuffix('s')} {name}, which could not be counted in time"
    after = ALTERED if loss.doubt == "altered" else ""
    if loss.doubt == "folder" or loss.does in IN_FOLDER:
        does = f"may {does.removesuffix('s')}"
    if size.kind == "missing":
        made = f"{does} what an earlier part of the line may make at {name}, where there is nothing now"
        return made if after else f"there is nothing at {name} now"
    if loss.does in BY_GIT:
        return f"{_format_for_git(measured, name)}{after}"
    if size.kind == "folder":
        where = "the workspace" if size.path == "." else f"the folder {name}"
        if loss.does == "deletes some in":
            return f"{does} files that match in {where}, at most {_format_content(size)}{after}"
        files = "files in " if loss.does in IN_FOLDER else ""
        return f"{does} {files}{where}, now {_format_content(size)}{after}"
    if size.kind == "file" and size.path in stated:
        return f"{does} the file {name}{after}"
    if size.kind == "file":
        return f"{does} the file {name}, now {format_count(size.size, 'byte')}, {TRACKING[size.tracking]}{after}"
    return f"{does} {name}, a {size.kind}{after}"


def _format_unknown(measured: MeasuredLoss, redactor: Redactor) -> str:
    path = measured.loss.path
    if not path:
        return "files that the line does not name"
    if measured.loss.doubt == "folder":
        return f"{format_value(path, redactor)}{STRAYED}"
    inside = ", or files in it" if path.endswith(INSIDE) else ""
    path = path.removesuffix(INSIDE)
    plain = path[1:-1] if PLAINLY_QUOTED.fullmatch(path) else path
    return f"what bash makes of {format_value(plain, redactor)}{inside}"


def _format_content(size: PathSize) -> str:
    count = format_count(size.files, "file") if size.whole else f"more than {format_count(size.files, 'file')}"
    own = " and a git worktree of its own" if size.has_repository else ""
    return f"{count}{own}, {_format_tracking(size)}"


def _format_for_git(measured: MeasuredLoss, name: str) -> str:
    does, size = measured.loss.does, measured.size
    may = "may " if measured.loss.doubt == "folder" else ""
    where = "the workspace" if size.path == "." else name
    if not size.whole:
        count = "an unknown number of files"
    elif does == "cleans" or (does == "cleans all" and size.has_repository):
        # Which of them git ignores, or leaves because of a repository of their own, is not looked up.
        count = f"at most {format_count(size.files, 'file')}"
    else:
        count = format_count(size.files, "file")
    if does in ("cleans", "cleans all"):
        return f"{may}{'delete' if may else 'deletes'} files that git does not track in {where}, now {count}"
    discards = f"{may}{'discard' if may else 'discards'} changes that are not committed in {where}"
    return f"{discards}, now in {count}{' and in what is staged' if does == 'resets' else ''}"


def _format_tracking(size: PathSize) -> str:
    if size.tracking is Tracking.UNTRACKED:
        return "none tracked by git"
    if size.tracking is not Tracking.TRACKED:
        return TRACKING[size.tracking]
    return f"{size.tracked:,} tracked by git"


def build_loss_fields(measured: MeasuredLoss, redactor: Redactor) -> dict[str, Any]:
    loss, size = measured
    is_folder, is_known = size.kind == "folder", size.tracking is not Tracking.UNKNOWN and size.kind != "missing"
    return {
        "does": DOES[loss.does],
        "way": loss.does,
        "path": to_field("", size.path, redactor)["value"],
        "kind": size.kind,
        "size": size.size if size.kind == "file" else None,
        "files": size.files if is_folder else None,
        "all_counted": size.whole,
        "certain": not loss.doubt,
        "repository": size.has_repository,
        "tracked": size.tracked if is_known else None,
    }
