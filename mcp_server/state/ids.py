"""How is something named so that nothing else has that name? Knowing one of these names gives no access."""

import os
import secrets
from collections.abc import Callable
from itertools import count


def make_id_generator() -> Callable[[], str]:
    """Unique across processes: a random name of this process and a number."""
    process, numbers = secrets.token_hex(6), count(1)
    return lambda: f"{process}-{next(numbers)}"


def make_short_id() -> str:
    """Short enough for the person to type."""
    return secrets.token_hex(3)


def make_process_name() -> str:
    """This process in the rows that it writes: its number comes first, so that others can see whether it still runs."""
    return f"{os.getpid()}-{secrets.token_hex(6)}"
