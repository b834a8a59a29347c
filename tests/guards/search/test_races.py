"""Does a search stay inside while somebody swaps folders and files for links under its hands?"""

import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from mcp_server.guards.search.search import FileSearch
from mcp_server.model.files import Search, SearchResult
from mcp_server.model.results import Refusal
from tests.guards.search.ground import PRIVATE
from tests.sizes import FULL

CANARY = "canary-7f3a"
SECONDS = 3.0 if FULL else 0.3
LEAST = 4
"""Rounds that prove something, however long one takes on a busy machine."""


@pytest.fixture
def ground(root: Path) -> Path:
    """Folders and files that are good half of the time, and lead out, or into our own state, the other half."""
    for place in (root.parent / "outside", root / PRIVATE):
        place.mkdir()
        for number in range(20):
            (place / f"{CANARY}-{number}").write_text(f"{CANARY}\n")
    for number in range(40):
        (root / f"still{number}").mkdir()
        (root / f"still{number}" / "f").write_text("nothing\n" * 200)
    return root


def swaps(root: Path) -> list[tuple[Path, Path, Path]]:
    """What stands there, what takes its place, and where each waits."""
    found: list[tuple[Path, Path, Path]] = []
    for number, target in enumerate([root.parent / "outside", root / PRIVATE] * 3):
        folder, link = root / f"still{number * 6}" / "swap", root.parent / f"link{number}"
        folder.mkdir()
        (folder / "f").write_text("nothing\n")
        link.symlink_to(target)
        found.append((folder, link, root.parent / f"away{number}"))
        file, link = root / f"swapped{number}", root.parent / f"flink{number}"
        file.write_text("nothing\n")
        link.symlink_to(target / f"{CANARY}-0")
        found.append((file, link, root.parent / f"faway{number}"))
    return found


@contextmanager
def flipping(root: Path) -> Generator[None, None, None]:
    stop = threading.Event()
    pairs = swaps(root)

    def flip() -> None:
        while not stop.is_set():
            for here, link, away in pairs:
                with suppress(OSError):
                    os.rename(here, away)
                    os.rename(link, here)
                    os.rename(here, link)
                    os.rename(away, here)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


CALLS: dict[str, Callable[[FileSearch], SearchResult]] = {
    "grep": lambda find: find.grep(Search("canary", want="content", limit=0)),
    "grep below a swapped folder": lambda find: find.grep(Search("canary", path="still0/swap", limit=0)),
    "grep of a swapped file": lambda find: find.grep(Search("canary", path="swapped0", limit=0)),
    "glob": lambda find: find.glob(Search("**/*canary*", limit=0)),
    "glob below a swapped folder": lambda find: find.glob(Search("*", path="still6/swap", limit=0)),
}


@pytest.mark.heavy
def test_nothing_from_outside_is_ever_found(find: FileSearch, ground: Path) -> None:
    end = time.monotonic() + SECONDS
    rounds = 0
    with flipping(ground):
        while rounds < LEAST or time.monotonic() < end:
            for name, call in CALLS.items():
                with suppress(Refusal):
                    found = call(find)
                    assert "canary" not in " ".join(found.lines), name
                    assert found.total == 0 or name.startswith("glob below"), name
            rounds += 1
