"""What every test may ask for."""

import gc
import os
import pwd
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

gc.disable()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever is started in the background ignores it, and so would every program that is interrupted here.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The runner sets it for its workers, and what is typed in a test would be wrapped at it.
os.environ.pop("COLUMNS", None)


def pytest_collection_finish() -> None:
    """Look for garbage from here on. All that was collected stays, and to look through it took a second each time."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Nothing is left out in silence: whatever did not run is named, with what it lacks on this machine."""
    for report in terminalreporter.stats.get("skipped", []):
        _, _, reason = cast(tuple[str, int, str], report.longrepr)
        terminalreporter.line(f"not run: {report.nodeid}: {reason.removeprefix('Skipped: ')}")


def account_places(temporary: Path) -> dict[str, tuple[int, int]]:
    """What lies where the account that runs these tests may keep its own keys, and when each was changed.

    You may be using menugate while the tests run: what it notes about a folder that is not one of theirs is left out.
    """
    number = os.geteuid()
    try:
        homes = [Path(pwd.getpwuid(number).pw_dir) / ".local" / "state"]
    except KeyError:
        homes = []
    places = [*(one / "menugate" for one in homes), Path(f"/var/lib/menugate/{number}")]
    places += [Path(f"/run/user/{number}/menugate")]
    found: dict[str, tuple[int, int]] = {}
    for place in places:
        for path in (place, *place.rglob("*")):
            if not path.is_file():
                continue
            if path.parent.name != "states" or str(temporary) in path.read_text(errors="replace"):
                found[str(path)] = (path.stat().st_mtime_ns, path.stat().st_size)
    return found


@pytest.fixture(scope="session", autouse=True)
def account_untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test writes where the account that runs them keeps its own keys; what is inherited points elsewhere."""
    temporary = tmp_path_factory.getbasetemp().parent
    before = account_places(temporary)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MENUGATE_STATE_HOME", str(tmp_path_factory.mktemp("account")))
        yield
    assert account_places(temporary) == before, "a test wrote into the state folder of the account that runs it"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home folder."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a little in it."""
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("def main():\n    return 42\n")
    (folder / "notes.md").write_text("# Notes\n\nfirst\n")
    return folder
