"""Who belongs to this child? Everything it started, and what those started, as the kernel lists them."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SHELLS = frozenset(("bash", "sh"))


def family(pid: int, most: int = 100_000) -> list[int]:
    """The process and all below it, oldest first; none where it is gone."""
    found: list[int] = []
    todo = [pid]
    while todo and len(found) < most:
        one = todo.pop()
        if Path(f"/proc/{one}").exists():
            found.append(one)
            todo.extend(_children(one))
    return found


def _children(pid: int) -> Iterator[int]:
    # A process and its threads end while they are looked at.
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                yield from map(int, (task / "children").read_text().split())


def where_the_shell_stands(pid: int) -> str:
    """The folder of the oldest shell of the family: what it started, whatever that calls itself, is younger."""
    shells: list[tuple[int, int]] = []
    for one in family(pid):
        with suppress(OSError, ValueError, IndexError):
            name, _, rest = Path(f"/proc/{one}/stat").read_text("utf-8", "replace").rpartition(")")
            if name.partition("(")[2] in SHELLS:
                shells.append((int(rest.split()[19]), one))
    with suppress(OSError):
        return str(Path(f"/proc/{min(shells)[1]}/cwd").readlink()) if shells else ""
    return ""


def tell(pids: list[int], signal: int) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal)
