"""How are unique names made? Knowing one of them gives no access."""

import os
import secrets
from collections.abc import Callable
from itertools import count


def make_id_generator() -> Callable[[], str]:
    """Unique across processes: a random name of this process and a number."""
    process, numbers = secrets.token_hex(6), count(1)
    return lambda: f"{process}-{next(numbers)}"


def make_short_id() -> str:
    """Short enough for you to type."""
    return secrets.token_hex(3)


def make_process_name() -> str:
    """Name this process in the rows it writes, number first, so that others can check whether it still runs."""
    return f"{os.getpid()}-{secrets.token_hex(6)}"
