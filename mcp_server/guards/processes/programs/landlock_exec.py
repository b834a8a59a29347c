"""What may this process reach? This file is a program: it confines itself with Landlock, then becomes another program.

    python -I -S -B landlock_exec.py PLAN PROGRAM ARGUMENTS...

PLAN is the number of an open file, written by `landlock.py`. Everything on the disk that it does not open is denied
before PROGRAM starts, and so is every process outside. If that cannot be done, this ends with UNABLE.

Import nothing of menugate here, and of Python only what is loaded anyway: this starts with every command.
"""

import ctypes
import marshal
import os
import resource
import stat
import sys

TYPE_CHECKING = False  # names a type without loading its module
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal  # without the enums, which take long to load

UNABLE = 97
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
DIE_WITH_PARENT, SECCOMP, DROP_BOUND, SUBREAPER, NO_NEW_PRIVS = 1, 22, 24, 36, 38
SECCOMP_FILTER = 2
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_DEVICES = 1 << 6 | 1 << 11
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
NEWEST = (1 << 16) - 1
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14 | 1 << 15
BIND_AND_CONNECT = 3
SOCKETS, SIGNALS = 1, 2
LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)
KEPT_RIGHTS = (0, 1, 2, 3)
"""What root keeps: the right to own, read and write files that are open to it at all. Root does not keep CAP_FSETID,
which would let a setuid bit survive a write."""
LAST_RIGHT = 63
KILL = 9
RIGHTS = {
    "list": READ_DIR,
    "read": READ_FILE | READ_DIR,
    "run": EXECUTE | READ_FILE | READ_DIR,
    "use": READ_FILE | WRITE_FILE | 1 << 15,
    "write": NEWEST & ~MAKE_DEVICES,
}


LIBRARY = ctypes.CDLL(None, use_errno=True)
"""Loaded once: every folder adds a rule."""


class Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


class SyscallFilter(ctypes.Structure):
    _fields_ = [("steps", ctypes.c_ushort), ("program", ctypes.c_char_p)]


def call_kernel(number: int, *arguments: object) -> int:
    found = LIBRARY.syscall(number, *arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def control(option: int, *arguments: object) -> None:
    words = [*arguments, 0, 0, 0, 0][:4]
    if LIBRARY.prctl(option, *words) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def read_landlock_version() -> int:
    return call_kernel(CREATE_RULESET, None, ctypes.c_size_t(0), 1)


class LandlockRules:
    """Denies everything it handles, except for the rules added."""

    def __init__(self, files: int = NEWEST, net: int = BIND_AND_CONNECT, scoped: int = SOCKETS | SIGNALS) -> None:
        found = read_landlock_version()
        self._handled = files & FILE_RIGHTS.get(found, NEWEST)
        rights = Ruleset(self._handled, net if found >= 4 else 0, scoped if found >= 6 else 0)
        size = 24 if found >= 6 else 16 if found >= 4 else 8
        self._rules = call_kernel(CREATE_RULESET, ctypes.byref(rights), ctypes.c_size_t(size), 0)

    def open_up(self, file: int, rights: int) -> None:
        found = os.fstat(file).st_mode
        if stat.S_ISLNK(found):  # swapped since it was listed
            return
        if not stat.S_ISDIR(found):
            rights &= ON_FILES
        rights &= self._handled
        if rights:
            rule = PathBeneath(rights, file)
            call_kernel(ADD_RULE, self._rules, PATH_BENEATH, ctypes.byref(rule), 0)

    def close(self) -> None:
        control(NO_NEW_PRIVS, 1)
        call_kernel(RESTRICT_SELF, self._rules, 0)
        os.close(self._rules)


def open_below(path: str) -> int:
    """Open the path below the current folder without following a link at any step."""
    folder = os.open(".", LOOK)
    for name in path.split("/"):
        inner = os.open(name, LOOK, dir_fd=folder)
        os.close(folder)
        folder = inner
    return folder


def raise_walls(plan: "dict[str, Any]", program: str) -> None:
    # In a network namespace of its own there is nobody to protect.
    walls = LandlockRules(net=0 if "connected" in plan else BIND_AND_CONNECT)
    for path in plan.get("below", ()):
        try:
            file = open_below(path)
        except OSError:  # gone or swapped since it was listed: not readable later either
            continue
        walls.open_up(file, RIGHTS["read"])
        os.close(file)
    for file in plan.get("lent", ()):
        walls.open_up(file, READ_FILE)
    for way, paths in {**plan["open"], "run": [program, *plan["open"].get("run", ())]}.items():
        for path in paths:
            try:
                file = os.open(path, os.O_CLOEXEC | getattr(os, "O_PATH", 0))
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue
            walls.open_up(file, RIGHTS[way])
            os.close(file)
    walls.close()


def apply_limits(bounds: dict[int, int]) -> None:
    for kind, most in bounds.items():
        hard = resource.getrlimit(kind)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (bound, bound))


def give_up_rights() -> None:
    """Leave root in a child with its own files and nothing beyond."""
    for right in range(LAST_RIGHT):
        if right not in KEPT_RIGHTS:
            try:
                control(DROP_BOUND, right)
            except OSError:  # there are no more of them
                return


def filter_calls(program: bytes) -> None:
    control(NO_NEW_PRIVS, 1)
    control(SECCOMP, SECCOMP_FILTER, ctypes.byref(SyscallFilter(len(program) // 8, program)))


def is_confined(outside: str) -> bool:
    """Check that the sandbox works: something outside that was readable is not readable any more."""
    try:
        os.close(os.open(outside, os.O_RDONLY))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def open_proxy_lane(plan: "dict[str, Any]") -> None:
    """Open the way to the proxy. If no network namespace can be made, the child gets no network and must do without."""
    if "lane" not in plan:
        return
    import proxy_lane

    try:
        proxy_lane.lay(*plan["lane"], alone=True)
    except OSError as error:
        sys.stderr.write(f"without a network: {error}\n")
        return
    plan["connected"], plan["filter"] = True, plan["lane_filter"]


def restore_signals() -> None:
    """A program normally ends when nobody reads its output, and when interrupted. Python ignores SIGPIPE, background
    jobs ignore SIGINT, and ignored signals are inherited."""
    for number in range(1, signal.NSIG):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def become(plan: "dict[str, Any]", words: list[str]) -> None:
    """Become the command. Returns only by an exception that says why it failed."""
    if "start" in plan:
        os.fchdir(plan["start"])
    elif "folder" in plan:
        os.chdir(plan["folder"])
    apply_limits(plan.get("bounds", {}))
    os.nice(plan.get("nice", 0))
    open_proxy_lane(plan)
    if plan.get("open") is not None:
        if os.geteuid() == 0:
            give_up_rights()
        raise_walls(plan, words[0])
        if not is_confined(plan["outside"]):
            raise OSError("the walls do not stand")
    if "filter" in plan:
        filter_calls(plan["filter"])
    restore_signals()
    if "env" in plan:
        os.execve(words[0], words, plan["env"])  # noqa: S606  # the point of this program
    os.execv(words[0], words)  # noqa: S606


def main(number: str, *words: str) -> None:
    with open(int(number), "rb") as file:  # noqa: PTH123  # a descriptor, not a path
        plan: dict[str, Any] = marshal.load(file)  # noqa: S302  # written by our parent
    try:
        become(plan, list(words))
    except OSError as error:
        sys.stderr.write(f"cannot confine: {error}")
        sys.exit(UNABLE)


if __name__ == "__main__":
    main(*sys.argv[1:])
