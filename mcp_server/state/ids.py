"""How is something named so that nothing else has that name? Knowing one of these names gives no access."""

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
