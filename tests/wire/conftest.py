"""One server per transport and era for all the tables: what one row breaks, the next one finds broken."""

import hashlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.clients import ERAS
from tests.clients.line import Speaker
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import Served, served

GUEST = "guest-token-of-thirty-two-characters"


@dataclass(frozen=True)
class WireWorkspace:
    """A workspace, a home, and a configuration that lets one more person in."""

    work: Path
    home: Path
    config: Path


@pytest.fixture(scope="package")
def ground(tmp_path_factory: pytest.TempPathFactory) -> WireWorkspace:
    folder = tmp_path_factory.mktemp("bad")
    made = WireWorkspace(folder / "work", folder / "home", folder / "menugate.yaml")
    made.work.mkdir()
    made.home.mkdir()
    (made.work / "notes.md").write_text("# Notes\n\nfirst\n")
    token = hashlib.sha256(GUEST.encode()).hexdigest()
    made.config.write_text(f"tokens:\n  - {{principal: guest, sha256: {token}}}\n")
    return made


@pytest.fixture(scope="package")
def expired(ground: WireWorkspace) -> str:
    """A handle that nobody used for two days."""
    with pipe(ground.work, ground.home) as one:
        one.hello("somebody")
        handle = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
    database = sqlite3.connect(ground.work / ".menugate" / "state.db")
    with database:
        database.execute("UPDATE sessions SET used = used - 48 * 3600 * 1000000000")
    database.close()
    return str(handle)


@pytest.fixture(scope="package")
def house(ground: WireWorkspace, expired: str) -> Iterator[Served]:
    with served(ground.work, ground.home, "--config", str(ground.config)) as one:
        yield one


@pytest.fixture(scope="package")
def handles(house: Served, expired: str) -> dict[str, str]:
    """The menu handles that must open nothing."""
    guest = Speaker(house, token=GUEST).hello()
    foreign = guest.call("menu_enter", mode="swe")["structuredContent"]["menu"]
    return {
        "forged": "menu_AAAAAAAAAAAAAAAAAAAAAA",
        "foreign": foreign,
        "expired": expired,
        "malformed": "'; DROP TABLE sessions; --",
    }


@pytest.fixture(scope="package", params=ERAS)
def line(request: pytest.FixtureRequest, ground: WireWorkspace) -> Iterator[Pipe]:
    """One server over stdio for all of it; what it says on stderr is looked at in the end."""
    with pipe(ground.work, ground.home) as one:
        one.hello("somebody", request.param)
        yield one
        assert one.call("think", content="at the end")["isError"] is False
        one.process.terminate()
        assert one.process.stderr is not None
        assert b"Traceback" not in one.process.stderr.read()


@pytest.fixture(scope="package", params=ERAS)
def speaker(request: pytest.FixtureRequest, house: Served) -> Speaker:
    return Speaker(house, request.param).hello()
