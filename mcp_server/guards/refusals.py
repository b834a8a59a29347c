"""What does a tool's caller read when the disk or the jail refuses?"""

import errno
import os

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import escape_surrogates


def build_path_refusal(message: str, way_out: str = "") -> Refusal:
    return Refusal(Problem(Code.PATH_REFUSED, escape_surrogates(message), escape_surrogates(way_out)))


def build_outside_refusal(path: str, root: str) -> Refusal:
    return build_path_refusal(
        f"`{path}` lies outside the workspace.", f"Only what lies in `{root}` can be opened; give a path inside it."
    )


def build_private_refusal(path: str) -> Refusal:
    return build_path_refusal(
        f"`{path}` belongs to menugate's own state, which no tool opens.", "Choose another file or folder."
    )


def build_installation_refusal(path: str) -> Refusal:
    return build_path_refusal(
        f"`{path}` is part of what menugate runs from, or of a folder with that in it, and is only read below the "
        "profile `unrestricted`.",
        "Choose another place. If this one has to change, tell the user: `menugate status` names the folders, and a "
        "menugate that is installed outside the workspace does not hold them.",
    )


def build_file_kind_refusal(path: str, what: str) -> Refusal:
    return build_path_refusal(
        f"`{path}` is {what}; only plain files and folders are opened.", "Choose another file or folder."
    )


def build_hardlink_refusal(path: str, names: int) -> Refusal:
    return build_path_refusal(
        f"`{path}` is one of {names} names (hardlinks) of the same file, and the others may lie outside the workspace.",
        f"Have the person make it a file of its own: `cp {path} {path}.copy && mv {path}.copy {path}`.",
    )


def build_dangling_link_refusal(path: str) -> Refusal:
    return build_path_refusal(
        f"The link leads to `{path}`, which does not exist; nothing is created through a link.",
        f"Call again with `{path}`.",
    )


def build_unconfirmed_refusal(asked: str, real: str, what: str) -> Refusal:
    way_out = "The person has to confirm that first."
    if asked != real:
        way_out = f"Call again with `{real}`, its own path, so that the person is asked."
    return build_path_refusal(
        f"`{asked}`{'' if asked == real else f' is `{real}`, which'} {what} only with the person's yes.", way_out
    )


def build_not_granted_refusal(message: str) -> Refusal:
    return Refusal(Problem(Code.NOT_GRANTED, escape_surrogates(message), "Use a tool that says it does that."))


def build_stale_refusal(path: str, how: str) -> Refusal:
    return Refusal(
        Problem(
            Code.STALE,
            escape_surrogates(f"`{path}` {how} since it was read; nothing was written."),
            "Read it again first.",
        )
    )


def build_entry_count_refusal(path: str, most: int) -> Refusal:
    return Refusal(
        Problem(
            Code.TOO_LARGE,
            escape_surrogates(f"There are more than {most:,} entries in `{path}`."),
            "List a folder further down, or look with `glob`.",
        )
    )


def build_not_folder_refusal(path: str) -> Refusal:
    message = f"`{path}` is no folder: nothing can lie below it."
    return Refusal(Problem(Code.ALREADY_EXISTS, escape_surrogates(message), "Choose another path."))


def build_move_refusal(error: OSError, old: str, new: str) -> Refusal:
    if error.errno == errno.EINVAL:
        return build_path_refusal(f"`{old}` cannot be moved into itself (`{new}`).", "Choose another destination.")
    return build_path_refusal(
        f"`{old}` and `{new}` lie on different disks; nothing was moved.",
        "Write the file anew at the destination, then delete the old one.",
    )


def build_os_refusal(error: OSError, path: str, root: str) -> Refusal:
    """Say in the reader's words what the operating system answered about this path."""
    number, path = error.errno or 0, escape_surrogates(path)
    if number == errno.EXDEV:
        return build_path_refusal(
            f"`{path}` goes through a link that is absolute or leaves the workspace.",
            f"Give the path of the file itself, inside `{root}`.",
        )
    code, message, way_out = ANSWERS.get(number, (Code.TOOL_FAILED, "`{path}`: {reason}.", ""))
    return Refusal(Problem(code, message.format(path=path, reason=os.strerror(number)), way_out.format(path=path)))


NO_ROOM = (
    Code.TOOL_FAILED,
    "There is no room left on the disk for `{path}`; nothing was changed.",
    "Make room, then call again.",
)
NO_RIGHT = (
    Code.PATH_REFUSED,
    "The operating system does not let menugate's user open or change `{path}`.",
    "Have the person check the rights of the file and of its folder.",
)
ANSWERS: dict[int, tuple[Code, str, str]] = {
    errno.ENOENT: (Code.NOT_FOUND, "There is nothing at `{path}`.", "Look with `glob` or `fs_list_directory`."),
    errno.ENOTDIR: (Code.NOT_FOUND, "A part of `{path}` is a file, not a folder.", "Check the path's folders."),
    errno.EISDIR: (
        Code.PATH_REFUSED,
        "`{path}` is a folder, not a file.",
        "Look inside with `glob` or `fs_list_directory`.",
    ),
    errno.EEXIST: (
        Code.ALREADY_EXISTS,
        "There is something at `{path}` already.",
        "Nothing was changed; choose another path.",
    ),
    errno.ENOTEMPTY: (Code.ALREADY_EXISTS, "The folder `{path}` is not empty.", "Take away what is in it first."),
    errno.ELOOP: (
        Code.PATH_REFUSED,
        "`{path}` goes through a link that turns in a circle or was just swapped.",
        "Give the path of the file itself.",
    ),
    errno.ENAMETOOLONG: (Code.PATH_REFUSED, "The path is too long for this disk.", "Give a shorter one."),
    errno.ENXIO: (Code.PATH_REFUSED, "`{path}` is not a plain file.", ""),
    errno.EBUSY: (Code.PATH_REFUSED, "`{path}` is in use by the system (a mount point).", ""),
    errno.EROFS: (Code.PATH_REFUSED, "`{path}` lies on a disk that is mounted for reading only.", ""),
    errno.EACCES: NO_RIGHT,
    errno.EPERM: NO_RIGHT,
    errno.ENOSPC: NO_ROOM,
    errno.EDQUOT: NO_ROOM,
    errno.EFBIG: NO_ROOM,
}
