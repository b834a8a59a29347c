"""What may a searching process read? This file is a program: it shuts itself in with Landlock and becomes another one.

    python -I -S -B confine.py START SECONDS LENT SYSTEM COUNT PROGRAM ARGUMENTS...

START is an open folder to stand in, LENT the numbers of further open files, SYSTEM what the program's own loader
needs, and the last COUNT arguments are the paths below START that may be read. Everything else on the disk, all
writing, all TCP, and every other program is denied before PROGRAM starts. Ends with UNABLE where that cannot be done.
"""

import ctypes
import os
import resource
import stat
import sys

UNABLE = 97
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
NO_NEW_PRIVS = 38
EXECUTE, READ_FILE, READ_DIR = 1 << 0, 1 << 2, 1 << 3
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
NEWEST = (1 << 16) - 1
BIND_AND_CONNECT = 3
SOCKETS_AND_SIGNALS = 3
LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)
MEMORY = 4 << 30
OUTSIDE = "/proc/self/status"


class Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def kernel(number: int, *arguments: object) -> int:
    found = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


class Walls:
    """What is handled is denied, but for the rules that are added."""

    def __init__(self) -> None:
        version = kernel(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
        rights = Ruleset(
            FILE_RIGHTS.get(version, NEWEST),
            BIND_AND_CONNECT if version >= 4 else 0,
            SOCKETS_AND_SIGNALS if version >= 6 else 0,
        )
        size = 24 if version >= 6 else 16 if version >= 4 else 8
        self._rules = kernel(CREATE_RULESET, ctypes.byref(rights), ctypes.c_size_t(size), 0)

    def open_up(self, file: int, rights: int) -> None:
        found = os.fstat(file).st_mode
        if stat.S_ISLNK(found):  # swapped since it was listed
            return
        if not stat.S_ISDIR(found):
            rights &= ~READ_DIR
        rule = Beneath(rights, file)
        kernel(ADD_RULE, self._rules, PATH_BENEATH, ctypes.byref(rule), 0)

    def close(self) -> None:
        if ctypes.CDLL(None, use_errno=True).prctl(NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError("no_new_privs")
        kernel(RESTRICT_SELF, self._rules, 0)
        os.close(self._rules)


def below(path: str) -> int:
    """The path below here, open, without following a link at any step."""
    folder = os.open(".", LOOK)
    for name in path.split("/"):
        inner = os.open(name, LOOK, dir_fd=folder)
        os.close(folder)
        folder = inner
    return folder


def confine(start: int, lent: list[int], system: list[str], program: str, paths: list[str]) -> None:
    os.fchdir(start)
    walls = Walls()
    for path in paths:
        try:
            file = below(path)
        except OSError:  # gone or swapped since it was listed: it will not be readable either
            continue
        walls.open_up(file, READ_FILE | READ_DIR)
        os.close(file)
    for file in lent:
        walls.open_up(file, READ_FILE)
    for path in (program, *system):
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_PATH", 0))
        except FileNotFoundError:
            continue
        walls.open_up(file, EXECUTE | READ_FILE | READ_DIR)
        os.close(file)
    walls.close()


def limit(seconds: int) -> None:
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, MEMORY),
    ):
        resource.setrlimit(what, (most, most))


def holds() -> bool:
    """The walls are seen to stand: something outside that anybody may read cannot be read any more."""
    try:
        os.close(os.open(OUTSIDE, os.O_RDONLY))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def main(words: list[str]) -> None:
    start, seconds, lent, system, count, program, *arguments = words
    paths = [path.removeprefix("./") or "." for path in arguments[len(arguments) - int(count) :]]
    try:
        limit(int(seconds))
        confine(int(start), [int(one) for one in lent.split(",") if one], system.split(":"), program, paths)
        if holds():
            os.execv(program, [program, *arguments])  # noqa: S606  # the point of this program
        sys.stderr.write("the walls do not stand")
    except OSError as error:
        sys.stderr.write(f"cannot confine: {error}")
    sys.exit(UNABLE)


if __name__ == "__main__":
    main(sys.argv[1:])
