"""What may this process do at all? The servers that it starts may do just as much, so only its like share them.

A menugate in a container or a sandbox that sees the same keys must not reach a server outside it, and the other way
round.
"""

import os
from pathlib import Path

SELF = Path("/proc/self")
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
FIELDS = ("NoNewPrivs:", "Seccomp:", "Seccomp_filters:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "Umask:")


def describe_confinement() -> list[str]:
    root = Path("/").stat()
    account = (os.getuid(), os.geteuid(), os.getgid(), os.getegid(), sorted(os.getgroups()))
    found = [str(account), f"{root.st_dev} {root.st_ino}", *map(_read_namespace, NAMESPACES)]
    status = _read(SELF / "status").splitlines()
    found += [line for line in status if line.startswith(FIELDS)]
    return [*found, _read(SELF / "attr" / "current")]


def _read_namespace(name: str) -> str:
    try:
        return str((SELF / "ns" / name).readlink())
    except OSError:
        return ""


def _read(path: Path) -> str:
    """Empty where the system has no such file."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
