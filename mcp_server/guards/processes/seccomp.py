"""Which system calls does a child lose? A filter program in the kernel's own words, the same for every sandbox.

A socket that is no address of the network reaches other programs of this machine through the file system or past every
namespace, so the families are named that stay. What is refused says so with EPERM, as if a right were missing.
"""

import platform
import struct

SOCKET = {"x86_64": 41, "aarch64": 198}
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# io_uring opens sockets without `socket`; the keyrings and the rest belong to the machine, not to a child.
REFUSED = {
    "x86_64": (175, 176, 246, 248, 249, 250, 298, 304, 313, 320, 321, 323, 425, 426, 427),
    "aarch64": (104, 105, 106, 217, 218, 219, 241, 265, 273, 280, 282, 294, 425, 426, 427),
}
INET, INET6, NETLINK = 2, 10, 16
NETWORK = (INET, INET6, NETLINK)
"""Families for a child that has a network of its own, be it empty."""
LOAD, EQUAL, AT_LEAST, ANSWER = 0x20, 0x15, 0x35, 0x06
NUMBER, KIND, FIRST_ARGUMENT = 0, 4, 16
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1
FOREIGN = 0x40000000
"""From here on x86 numbers calls of another convention, which the list above does not know."""


def program(families: tuple[int, ...], machine: str | None = None) -> bytes | None:
    """The filter that leaves these families of sockets; None where this machine's calls are not known."""
    machine = machine or platform.machine()
    if machine not in SOCKET:
        return None
    refused = REFUSED[machine]
    # Jumps are counted from the step after them; the last two steps are the answers.
    refusal = 7 + len(refused) + len(families)
    steps = [(LOAD, 0, 0, KIND), (EQUAL, 1, 0, ARCHITECTURE[machine]), (ANSWER, 0, 0, REFUSE), (LOAD, 0, 0, NUMBER)]
    steps.append((AT_LEAST, refusal - 5, 0, FOREIGN))
    steps += [(EQUAL, refusal - 1 - place, 0, number) for place, number in enumerate(refused, 5)]
    steps.append((EQUAL, 0, refusal - len(steps), SOCKET[machine]))
    steps.append((LOAD, 0, 0, FIRST_ARGUMENT))
    steps += [(EQUAL, refusal - place, 0, family) for place, family in enumerate(families, len(steps))]
    steps += [(ANSWER, 0, 0, REFUSE), (ANSWER, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)
