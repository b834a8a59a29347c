"""How much may a child use, and which system calls does it lose?"""

import os
import platform
import resource
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from mcp_server.model.processes import ProcessLimits

# Which system calls does a child lose? A filter program in the kernel's own words, the same for every sandbox.
#
# A socket that is no address of the network reaches other programs of this machine through the file system or past
# every namespace, so the families are named that stay. What is refused says so with EPERM, as if a right were
# missing.
#
# Nobody makes a world of users of his own, in which he would be root and the kernel's least tried doors stand open.
# And no file is made that gives whoever runs it the rights of its owner: in the workspace it would be there for
# everybody outside as well. Of its group neither, where root makes it, which may give a file any group; for others
# that bit is what folders of a team have, and every copy of one asks for it. What has its arguments in memory, where
# a filter cannot look, is answered as if the kernel were older (ENOSYS), and programs take the call that came before
# it.

Step: TypeAlias = tuple[int, int, int, int]

SOCKET = {"x86_64": 41, "aarch64": 198}
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# io_uring opens sockets without `socket`; `setns` enters other worlds; the keyrings and the rest belong to the machine,
# not to a child.
REFUSED = {
    "x86_64": (175, 176, 246, 248, 249, 250, 298, 304, 308, 313, 320, 321, 323, 425, 426, 427),
    "aarch64": (104, 105, 106, 217, 218, 219, 241, 265, 268, 273, 280, 282, 294, 425, 426, 427),
}
UNKNOWN = (435, 437)
"""`clone3` and `openat2`: what they are to do lies in memory."""
NEW_USERS = {"x86_64": ((56, 0), (272, 0)), "aarch64": ((220, 0), (97, 0))}
"""`clone` and `unshare`, and which argument says what is to be new."""
MODES = {
    "x86_64": ((85, 1), (90, 1), (91, 1), (133, 1), (259, 2), (268, 2), (452, 2)),
    "aarch64": ((33, 2), (52, 1), (53, 2), (452, 2)),
}
"""`creat`, `mknod` and the ways to `chmod`, and which argument is the mode."""
OPENS = {"x86_64": ((2, 1), (257, 2)), "aarch64": ((56, 2),)}
"""`open`, and which argument its flags are. The mode comes behind them, and counts where a file is made."""
NEW_USER, MAKES_FILE, SETUID, SETGID = 0x10000000, 0o100 | 0o20000000, 0o4000, 0o2000
INET, INET6, NETLINK = 2, 10, 16
NETWORK = (INET, INET6, NETLINK)
"""Families for a child that has a network of its own, be it empty."""
LOAD, EQUAL, AT_LEAST, ANY_BIT, ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, KIND, FIRST_ARGUMENT, ARGUMENT = 0, 4, 16, 8
ALLOW, REFUSE = (ANSWER, 0, 0, 0x7FFF0000), (ANSWER, 0, 0, 0x00050000 | 1)
NO_SUCH_CALL = (ANSWER, 0, 0, 0x00050000 | 38)
FOREIGN = 0x40000000
"""From here on x86 numbers calls of another convention, which the lists above do not know."""


def build_syscall_filter(
    families: tuple[int, ...], machine: str | None = None, root: bool | None = None
) -> bytes | None:
    """The filter that leaves these families of sockets; None where this machine's calls are not known."""
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
    """For this call, steps that end with an answer; for every other nothing."""
    yield (EQUAL, 0, len(answer), number)
    yield from answer


def _refuse_argument_bits(argument: int, bits: int) -> tuple[Step, ...]:
    return _load_argument(argument), (ANY_BIT, 0, 1, bits), REFUSE, ALLOW


def _load_argument(argument: int) -> Step:
    """The lower half of it, which comes first in memory; in the upper half the kernel sees none of these bits."""
    return LOAD, 0, 0, FIRST_ARGUMENT + ARGUMENT * argument


# How much may a child use? Bounds that the kernel keeps, set before it runs its first instruction.

NICENESS = 5
"""Whoever waits for an answer of ours comes before whoever computes."""
OPEN_FILES = 4096
LESS_DEAR = 500
"""Where memory runs out, the kernel ends a child before it ends the server."""


def build_resource_limits(limits: ProcessLimits, seconds: float) -> dict[int, int]:
    """By the kernel's numbers; computing for longer than all cores could in that time is a bug of the clock."""
    cores = os.cpu_count() or 1
    return {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: int(seconds * cores) + 5,
        resource.RLIMIT_DATA: limits.memory,
        resource.RLIMIT_FSIZE: limits.file,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_NPROC: limits.processes,
    }


def apply_resource_limits(pid: int, found: dict[int, int]) -> None:
    """On a process that is held back until this is done; never looser than what holds for us."""
    for kind, most in found.items():
        hard = resource.getrlimit(kind)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(pid, kind, (bound, bound))
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(LESS_DEAR))
