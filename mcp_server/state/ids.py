"""How are unique names made? Knowing one of them gives no access."""

import os
import secrets
from collections.abc import Callable
from itertools import count

from mcp_server.state.processes import get_own_pid, read_start_time


def make_id_generator() -> Callable[[], str]:
    """Unique across processes: a random name of this process and a number."""
    process, numbers = secrets.token_hex(6), count(1)
    return lambda: f"{process}-{next(numbers)}"


def make_short_id() -> str:
    """Short enough for you to type."""
    return secrets.token_hex(3)


def make_process_name(id: str = "") -> str:
    """Name this process in the rows it writes, number first and start time last, so that others can check whether it
    still runs."""
    pid = os.getpid()
    # In a namespace without a /proc of its own, /proc has another process under this number.
    born = read_start_time(pid).replace(" ", "_") if pid == get_own_pid() else ""
    return f"{pid}-{id or secrets.token_hex(6)}{f'@{born}' if born else ''}"
