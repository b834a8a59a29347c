"""What does a model read when the disk or the jail refuses its call?"""

import errno
import os
import stat
from collections.abc import Callable

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import escape_for_model


def build_path_refusal(message: str, way_out: str = "") -> Refusal:
    return Refusal(
        Problem(Code.PATH_REFUSED, escape_for_model(message, one_line=True), escape_for_model(way_out, one_line=True))
    )


def build_outside_refusal(path: str, root: str) -> Refusal:
    return build_path_refusal(
        f"`{path}` is outside the workspace.", f"Tools only open paths inside `{root}`; give one of those."
    )


def build_private_refusal(path: str) -> Refusal:
    return build_path_refusal(
        f"`{path}` belongs to menugate's own state, which no tool may open.", "Choose another file or folder."
    )


def build_installation_refusal(path: str) -> Refusal:
    return build_path_refusal(
        f"`{path}` belongs to what menugate runs from, or holds a part of it, so only the profile `unrestricted` may "
        "change it.",
        "Choose another path. If this one must change, tell the user: `menugate status` lists these folders, and "
        "installing menugate outside the workspace frees them.",
    )


def build_file_kind_refusal(path: str, kind: str) -> Refusal:
    return build_path_refusal(
        f"`{path}` is {kind}; tools only open plain files and folders.", "Choose another file or folder."
    )


KINDS: tuple[tuple[str, Callable[[int], bool]], ...] = (
    ("a folder", stat.S_ISDIR),
    ("a link", stat.S_ISLNK),
    ("a FIFO", stat.S_ISFIFO),
    ("a socket", stat.S_ISSOCK),
    ("a device", stat.S_ISCHR),
    ("a device", stat.S_ISBLK),
)


def describe_file_kind(mode: int) -> str:
    """Name the kind of file, in the reader's words."""
    return next((word for word, test in KINDS if test(mode)), "a plain file")


def build_hardlink_refusal(path: str, names: int) -> Refusal:
    return build_path_refusal(
        f"`{path}` is one of {names} hardlinks to the same file, and the others may lie outside the workspace.",
        f"Ask the user to replace it with a copy: `cp {path} {path}.copy && mv {path}.copy {path}`.",
    )


def build_dangling_link_refusal(path: str) -> Refusal:
    return build_path_refusal(
        f"The link points to `{path}`, which does not exist; tools cannot create files through a link.",
        f"Call again with `{path}`.",
    )


def build_unconfirmed_refusal(path: str, real: str, verb: str) -> Refusal:
    """`verb`: what needs the approval, such as `can be changed`."""
    way_out = "The user must approve that first."
    if path != real:
        way_out = f"Call again with its real path, `{real}`, so that the user is asked."
    return build_path_refusal(
        f"`{path}`{'' if path == real else f' is `{real}`, which'} {verb} only with the user's approval.", way_out
    )


def build_not_granted_refusal(message: str) -> Refusal:
    return Refusal(
        Problem(
            Code.NOT_GRANTED,
            escape_for_model(message, one_line=True),
            "Use a tool whose description says that it does this.",
        )
    )


def build_stale_refusal(path: str, change: str) -> Refusal:
    """`change`: what happened to the file, such as `changed`."""
    message = escape_for_model(f"`{path}` {change} since it was read; nothing was written.", one_line=True)
    return Refusal(Problem(Code.STALE, message, "Read it again, then repeat the call."))


def build_moved_refusal(path: str, change: str) -> Refusal:
    """`change`: what is no longer as the user was shown it."""
    message = escape_for_model(f"`{path}` {change}; nothing was done.", one_line=True)
    return Refusal(Problem(Code.STALE, message, "Call again; the user will be asked about it as it is now."))


def build_ruled_out_refusal(path: str, real: str) -> Refusal:
    return build_path_refusal(
        f"`{path}` now leads to `{real}`, which one of the user's rules forbids for this call; nothing was done.",
        f"Call again with its real path, `{real}`, to see the rule.",
    )


def build_entry_count_refusal(path: str, limit: int) -> Refusal:
    message = escape_for_model(f"`{path}` has more than {limit:,} entries.", one_line=True)
    return Refusal(Problem(Code.TOO_LARGE, message, "List a subfolder, or narrow it with `glob`."))


def build_not_folder_refusal(path: str) -> Refusal:
    message = f"`{path}` is not a folder, so nothing can be created below it."
    return Refusal(Problem(Code.ALREADY_EXISTS, escape_for_model(message, one_line=True), "Choose another path."))


def build_move_refusal(error: OSError, old: str, new: str) -> Refusal:
    if error.errno == errno.EINVAL:
        return build_path_refusal(f"`{old}` cannot be moved into itself (`{new}`).", "Choose another destination.")
    return build_path_refusal(
        f"`{old}` and `{new}` are on different disks; nothing was moved.",
        "Write the file at the destination, then delete the old one.",
    )


def build_os_refusal(error: OSError, path: str, root: str) -> Refusal:
    """Turn what the operating system answered about this path into a refusal that a model can act on."""
    number, path = error.errno or 0, escape_for_model(path, one_line=True)
    if number == errno.EXDEV:
        return build_path_refusal(
            f"`{path}` goes through a link that is absolute or leads out of the workspace.",
            f"Give the path of the file itself, inside `{root}`.",
        )
    code, message, way_out = PROBLEMS_BY_ERRNO.get(number, (Code.TOOL_FAILED, "`{path}`: {reason}.", ""))
    return Refusal(Problem(code, message.format(path=path, reason=os.strerror(number)), way_out.format(path=path)))


DISK_FULL = (Code.TOOL_FAILED, "The disk is full; `{path}` was not changed.", "Free some space, then call again.")
NO_PERMISSION = (
    Code.PATH_REFUSED,
    "The operating system does not let menugate's user open or change `{path}`.",
    "Ask the user to check the permissions of the file and its folder.",
)
PROBLEMS_BY_ERRNO: dict[int, tuple[Code, str, str]] = {
    errno.ENOENT: (Code.NOT_FOUND, "There is nothing at `{path}`.", "Look with `glob` or `fs_list_directory`."),
    errno.ENOTDIR: (Code.NOT_FOUND, "Part of `{path}` is a file, not a folder.", "Check the path's folders."),
    errno.EISDIR: (
        Code.PATH_REFUSED,
        "`{path}` is a folder, not a file.",
        "Look inside with `glob` or `fs_list_directory`.",
    ),
    errno.EEXIST: (Code.ALREADY_EXISTS, "`{path}` already exists; nothing was changed.", "Choose another path."),
    errno.ENOTEMPTY: (Code.ALREADY_EXISTS, "The folder `{path}` is not empty.", "Delete what is in it first."),
    errno.ELOOP: (
        Code.PATH_REFUSED,
        "`{path}` goes through a link that loops or was just replaced.",
        "Give the path of the file itself.",
    ),
    errno.ENAMETOOLONG: (Code.PATH_REFUSED, "The path is too long for this disk.", "Give a shorter one."),
    errno.ENXIO: (Code.PATH_REFUSED, "`{path}` is not a plain file.", ""),
    errno.EBUSY: (Code.PATH_REFUSED, "The system is using `{path}` (a mount point).", ""),
    errno.EROFS: (Code.PATH_REFUSED, "`{path}` is on a read-only disk.", ""),
    errno.EACCES: NO_PERMISSION,
    errno.EPERM: NO_PERMISSION,
    errno.ENOSPC: DISK_FULL,
    errno.EDQUOT: DISK_FULL,
    errno.EFBIG: DISK_FULL,
}
