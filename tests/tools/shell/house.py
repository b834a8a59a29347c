"""A real house around the shell tools, driven by calls as a client makes them."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.clients.pipe import Pipe, pipe


@contextmanager
def served(workspace: Path, home: Path, *flags: str) -> Generator[Pipe, None, None]:
    """A server over stdio, in the mode swe."""
    with pipe(workspace, home, *flags) as client:
        client.hello()
        client.call("menu_enter", mode="swe")
        yield client


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])
