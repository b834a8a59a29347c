"""What may this process reach? This file is a program: it confines itself with Landlock, then becomes another program.

    python -I -S -B landlock_exec.py PLAN PROGRAM ARGUMENTS...

PLAN is the number of an open file, written by `landlock.py`. Before PROGRAM starts, everything on the disk that the
plan does not list is denied, and so are signals to processes outside. If that fails, this ends with UNABLE.

Import nothing of menugate here, and of Python only what is loaded anyway: this runs before every command.
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
DIE_WITH_PARENT, SECCOMP, DROP_CAPABILITY, SUBREAPER, NO_NEW_PRIVS = 1, 22, 24, 36, 38
SECCOMP_FILTER = 2
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_DEVICES = 1 << 6 | 1 << 11
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
ALL_RIGHTS = (1 << 16) - 1
FILE_ONLY_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14 | 1 << 15
TCP_RIGHTS = 3
ABSTRACT_SOCKETS, SIGNALS = 1, 2
PATH_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)
KEPT_CAPABILITIES = (0, 1, 2, 3)
"""Root keeps the right to own, read and write the files it can reach. It does not keep CAP_FSETID, which would let a
setuid bit survive a write."""
LAST_CAPABILITY = 63
SIGKILL = 9
RIGHTS_BY_USE = {
    "list": READ_DIR,
    "read": READ_FILE | READ_DIR,
    "run": EXECUTE | READ_FILE | READ_DIR,
    "use": READ_FILE | WRITE_FILE | 1 << 15,
    "write": ALL_RIGHTS & ~MAKE_DEVICES,
}


LIBC = ctypes.CDLL(None, use_errno=True)
"""Loaded once, because every folder adds a rule."""


class Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


class SyscallFilter(ctypes.Structure):
    _fields_ = [("steps", ctypes.c_ushort), ("program", ctypes.c_char_p)]


def call_kernel(number: int, *arguments: object) -> int:
    result = LIBC.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def control(option: int, *arguments: object) -> None:
    padded = [*arguments, 0, 0, 0, 0][:4]
    if LIBC.prctl(option, *padded) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def read_landlock_version() -> int:
    return call_kernel(CREATE_RULESET, None, ctypes.c_size_t(0), 1)


class LandlockRules:
    """A Landlock ruleset: denies everything it handles, except what `allow` adds."""

    def __init__(
        self, files: int = ALL_RIGHTS, net: int = TCP_RIGHTS, scoped: int = ABSTRACT_SOCKETS | SIGNALS
    ) -> None:
        version = read_landlock_version()
        self._handled = files & FILE_RIGHTS.get(version, ALL_RIGHTS)
        rights = Ruleset(self._handled, net if version >= 4 else 0, scoped if version >= 6 else 0)
        size = 24 if version >= 6 else 16 if version >= 4 else 8
        self._rules = call_kernel(CREATE_RULESET, ctypes.byref(rights), ctypes.c_size_t(size), 0)

    def allow(self, file: int, rights: int) -> None:
        mode = os.fstat(file).st_mode
        if stat.S_ISLNK(mode):  # swapped since it was listed
            return
        if not stat.S_ISDIR(mode):
            rights &= FILE_ONLY_RIGHTS
        rights &= self._handled
        if rights:
            rule = PathBeneath(rights, file)
            call_kernel(ADD_RULE, self._rules, PATH_BENEATH, ctypes.byref(rule), 0)

    def enforce(self) -> None:
        control(NO_NEW_PRIVS, 1)
        call_kernel(RESTRICT_SELF, self._rules, 0)
        os.close(self._rules)


def open_below(path: str) -> int:
    """Open the path below the current folder without following a link at any step."""
    folder = os.open(".", PATH_FLAGS)
    for name in path.split("/"):
        child = os.open(name, PATH_FLAGS, dir_fd=folder)
        os.close(folder)
        folder = child
    return folder


def restrict_files(plan: "dict[str, Any]", program: str) -> None:
    # In a network namespace of its own there is nothing to protect.
    rules = LandlockRules(net=0 if "connected" in plan else TCP_RIGHTS)
    for path in plan.get("below", ()):
        try:
            file = open_below(path)
        except OSError:  # gone or swapped since it was listed: not readable later either
            continue
        rules.allow(file, RIGHTS_BY_USE["read"])
        os.close(file)
    for file in plan.get("lent", ()):
        rules.allow(file, READ_FILE)
    for use, paths in {**plan["open"], "run": [program, *plan["open"].get("run", ())]}.items():
        for path in paths:
            try:
                file = os.open(path, os.O_CLOEXEC | getattr(os, "O_PATH", 0))
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue
            rules.allow(file, RIGHTS_BY_USE[use])
            os.close(file)
    rules.enforce()


def apply_limits(limits: dict[int, int]) -> None:
    for kind, limit in limits.items():
        hard = resource.getrlimit(kind)[1]
        lowest = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (lowest, lowest))


def drop_capabilities() -> None:
    """Leave a root child with its own files and nothing beyond."""
    for capability in range(LAST_CAPABILITY):
        if capability not in KEPT_CAPABILITIES:
            try:
                control(DROP_CAPABILITY, capability)
            except OSError:  # this kernel has no more of them
                return


def install_syscall_filter(program: bytes) -> None:
    control(NO_NEW_PRIVS, 1)
    control(SECCOMP, SECCOMP_FILTER, ctypes.byref(SyscallFilter(len(program) // 8, program)))


def is_confined(outside: str) -> bool:
    """Check that the sandbox works: a file outside that was readable is not readable any more."""
    try:
        os.close(os.open(outside, os.O_RDONLY))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def open_proxy_lane(plan: "dict[str, Any]") -> None:
    """Connect the child to the proxy. If no network namespace can be created, it runs without a network."""
    if "lane" not in plan:
        return
    import proxy_lane

    try:
        proxy_lane.hand_over_listener(*plan["lane"], isolate=True)
    except OSError as error:
        sys.stderr.write(f"without a network: {error}\n")
        return
    plan["connected"], plan["filter"] = True, plan["lane_filter"]


def restore_signals() -> None:
    """Stop ignoring signals. Python ignores SIGPIPE and background jobs ignore SIGINT, and a program inherits that: it
    would keep running when its output is closed, or when interrupted."""
    for number in range(1, signal.NSIG):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def become(plan: "dict[str, Any]", command: list[str]) -> None:
    """Become the command. Returns only by raising an error that says why it failed."""
    if "start" in plan:
        os.fchdir(plan["start"])
    elif "folder" in plan:
        os.chdir(plan["folder"])
    apply_limits(plan.get("bounds", {}))
    os.nice(plan.get("nice", 0))
    open_proxy_lane(plan)
    if plan.get("open") is not None:
        if os.geteuid() == 0:
            drop_capabilities()
        restrict_files(plan, command[0])
        if not is_confined(plan["outside"]):
            raise OSError("the sandbox does not hold")
    if "filter" in plan:
        install_syscall_filter(plan["filter"])
    restore_signals()
    if "env" in plan:
        os.execve(command[0], command, plan["env"])  # noqa: S606  # the point of this program
    os.execv(command[0], command)  # noqa: S606


def main(plan_descriptor: str, *command: str) -> None:
    with open(int(plan_descriptor), "rb") as file:  # noqa: PTH123  # a descriptor, not a path
        plan: dict[str, Any] = marshal.load(file)  # noqa: S302  # written by our parent
    try:
        become(plan, list(command))
    except OSError as error:
        sys.stderr.write(f"cannot confine: {error}")
        sys.exit(UNABLE)


if __name__ == "__main__":
    main(*sys.argv[1:])
