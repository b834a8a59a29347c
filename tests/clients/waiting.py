"""Wait for what another process or thread is about to do, with a limit that only a hang can reach."""

import time
from collections.abc import Callable

import anyio

from tests.clients.served import PATIENCE

TURN = 0.01


def becomes_true(is_so: Callable[[], object]) -> bool:
    """Whether it ever came true."""
    until = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(TURN)
    return True


def wait_until(is_so: Callable[[], object], what: str = "it never came to that") -> None:
    assert becomes_true(is_so), what


async def async_becomes_true(is_so: Callable[[], object]) -> bool:
    """The same beside what else runs in this loop."""
    with anyio.move_on_after(PATIENCE):
        while not is_so():
            await anyio.sleep(TURN)
        return True
    return False
