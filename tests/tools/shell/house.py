"""A real house around the shell tools, driven by calls as a client makes them."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
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


def bash(at: Pipe, command: str, **more: object) -> str:
    return text(at.call("bash", command=command, **more))


def sleeping(seconds: str) -> list[str]:
    """The processes that sleep for so long; longer than any patience, so that none ends of its own accord."""
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                line = (folder / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
                found += [folder.name] if line == f"sleep {seconds}" else []
    return found
