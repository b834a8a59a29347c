"""Who belongs to this child? Everything it started, and what those started, as the kernel lists them."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


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


def tell(pids: list[int], signal: int) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal)
