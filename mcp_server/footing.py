"""What does a process stand on before there is a house? Folders, a clock, and names."""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count

from mcp_server.law import Unbuildable
from mcp_server.settings import Settings


class Wall:
    """The clock on the wall, which only this module looks at."""

    def now_ns(self) -> int:
        return time.time_ns()


def prepare_folders(settings: Settings) -> None:
    if settings.state.is_symlink():
        # It may have come with the workspace, and lead to where a tool reads and writes.
        raise Unbuildable(
            f"{settings.state} is a link, and menugate keeps its state in a folder that is really there; take it away."
        )
    for folder in (settings.state, settings.secrets):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as wrong:
            raise Unbuildable(f"{folder} cannot be made ({wrong.strerror}); menugate keeps its state there.") from wrong
    ignore = settings.state / ".gitignore"
    # A courtesy to the person's repository, which must not keep a server from reading what lies there.
    with suppress(OSError):
        if not ignore.exists():
            ignore.write_text("*\n")


def numbered() -> Callable[[], str]:
    """Names that no other process gives: what this one is called, and a number. Nobody is let in by knowing one."""
    process, numbers = secrets.token_hex(6), count(1)
    return lambda: f"{process}-{next(numbers)}"


def new_handle() -> str:
    return "menu_" + secrets.token_urlsafe(16)
