"""How much may a child use, and which system calls does it lose?"""

import os
import platform
import resource
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeAlias

from mcp_server.model.processes import ProcessLimits

# Which system calls does a child lose? A BPF filter program, the same for every sandbox.
#
# Sockets other than network ones reach other programs on this machine through the file system or past every namespace,
# so the filter lists the families that stay. A refused call fails with EPERM, as if a permission were missing.
#
# No child creates a user namespace: in it the child would be root, with access to the kernel's least tested code. No
# child creates a setuid file: in the workspace, everyone outside could run it too. Nor a setgid file if we are root,
# because root may give a file any group; for other users that bit is common on team folders, and every copy of one asks
# for it. Calls whose arguments lie in memory, where a filter cannot look, fail with ENOSYS as on an older kernel;
# programs then use the call's predecessor.

Step: TypeAlias = tuple[int, int, int, int]

SOCKET = {"x86_64": 41, "aarch64": 198}
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# io_uring opens sockets without `socket`; `setns` enters other namespaces; the keyrings and the rest belong to the
# machine, not to a child.
REFUSED = {
    "x86_64": (175, 176, 246, 248, 249, 250, 298, 304, 308, 313, 320, 321, 323, 425, 426, 427),
    "aarch64": (104, 105, 106, 217, 218, 219, 241, 265, 268, 273, 280, 282, 294, 425, 426, 427),
}
UNKNOWN = (435, 437)
"""`clone3` and `openat2`: their arguments lie in memory."""
NEW_USERS = {"x86_64": ((56, 0), (272, 0)), "aarch64": ((220, 0), (97, 0))}
"""`clone` and `unshare`, and which argument holds the namespace flags."""
MODES = {
    "x86_64": ((85, 1), (90, 1), (91, 1), (133, 1), (259, 2), (268, 2), (452, 2)),
    "aarch64": ((33, 2), (52, 1), (53, 2), (452, 2)),
}
"""`creat`, `mknod` and the variants of `chmod`, and which argument is the mode."""
OPENS = {"x86_64": ((2, 1), (257, 2)), "aarch64": ((56, 2),)}
"""`open` and `openat`, and which argument holds the flags. The mode follows them and only counts if a file is
created."""
NEW_USER, MAKES_FILE, SETUID, SETGID = 0x10000000, 0o100 | 0o20000000, 0o4000, 0o2000
INET, INET6, NETLINK = 2, 10, 16
NETWORK = (INET, INET6, NETLINK)
"""Families for a child with a network namespace of its own, even an empty one."""
LOAD, EQUAL, AT_LEAST, ANY_BIT, ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, KIND, FIRST_ARGUMENT, ARGUMENT = 0, 4, 16, 8
ALLOW, REFUSE = (ANSWER, 0, 0, 0x7FFF0000), (ANSWER, 0, 0, 0x00050000 | 1)
NO_SUCH_CALL = (ANSWER, 0, 0, 0x00050000 | 38)
FOREIGN = 0x40000000
"""From here on x86 numbers the calls of another convention (x32), which the lists above do not cover."""


@cache
def build_syscall_filter(
    families: tuple[int, ...], machine: str | None = None, root: bool | None = None
) -> bytes | None:
    """Build the filter that allows only these socket families; None if this machine's call numbers are not known. Built
    once: neither the machine nor our own user changes while we run."""
    machine = machine or platform.machine()
    if machine not in SOCKET:
        return None
    root = os.geteuid() == 0 if root is None else root
    steps = [
        *((LOAD, 0, 0, KIND), (EQUAL, 1, 0, ARCHITECTURE[machine]), REFUSE),
        *((LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, FOREIGN), REFUSE),
        *_build_call_steps(machine, SETUID | SETGID if root else SETUID),
        *_build_socket_steps(SOCKET[machine], families),
        ALLOW,
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _build_call_steps(machine: str, bits: int) -> Iterator[Step]:
    for number in REFUSED[machine]:
        yield from _build_call_answer(number, REFUSE)
    for number in UNKNOWN:
        yield from _build_call_answer(number, NO_SUCH_CALL)
    for number, argument in NEW_USERS[machine]:
        yield from _build_call_answer(number, *_refuse_argument_bits(argument, NEW_USER))
    for number, argument in MODES[machine]:
        yield from _build_call_answer(number, *_refuse_argument_bits(argument, bits))
    for number, argument in OPENS[machine]:
        yield from _build_call_answer(
            number,
            _load_argument(argument),
            (ANY_BIT, 1, 0, MAKES_FILE),
            ALLOW,
            *_refuse_argument_bits(argument + 1, bits),
        )


def _build_socket_steps(number: int, families: tuple[int, ...]) -> Iterator[Step]:
    known = [(EQUAL, len(families) - place, 0, family) for place, family in enumerate(families)]
    yield from _build_call_answer(number, _load_argument(0), *known, REFUSE, ALLOW)


def _build_call_answer(number: int, *answer: Step) -> Iterator[Step]:
    """For this call, steps that end with an answer; for any other, fall through."""
    yield (EQUAL, 0, len(answer), number)
    yield from answer


def _refuse_argument_bits(argument: int, bits: int) -> tuple[Step, ...]:
    return _load_argument(argument), (ANY_BIT, 0, 1, bits), REFUSE, ALLOW


def _load_argument(argument: int) -> Step:
    """Load the lower half of an argument, which comes first in memory; the kernel ignores these bits in the upper
    half."""
    return LOAD, 0, 0, FIRST_ARGUMENT + ARGUMENT * argument


# How much may a child use? Limits that the kernel enforces, set before the child runs its first instruction.

NICENESS = 5
"""A child that computes must not delay the server's answers."""
OPEN_FILES = 4096
OOM_SCORE = 500
"""If memory runs out, the kernel ends a child before it ends the server."""


def build_resource_limits(limits: ProcessLimits, seconds: float) -> dict[int, int]:
    """Return the limits by the kernel's constants. The CPU limit is what all cores could use in `seconds`, so a child
    exceeds it only if the timeout failed."""
    cores = os.cpu_count() or 1
    return {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: int(seconds * cores) + 5,
        resource.RLIMIT_DATA: limits.memory,
        resource.RLIMIT_FSIZE: limits.file,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_NPROC: limits.processes,
    }


def apply_resource_limits(pid: int, limits: dict[int, int]) -> None:
    """Limit a process that is held back until this is done; never beyond our own limits."""
    for kind, limit in limits.items():
        hard = resource.getrlimit(kind)[1]
        lowest = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.prlimit(pid, kind, (lowest, lowest))
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(OOM_SCORE))
