"""One of several processes on one workspace. `turns N` moves a shared session N times; `load` works until killed.

Every line it prints is an acknowledgement: what it says was durable before it was said.
"""

import asyncio
import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mcp_server.model.posture import Posture, Profile, WorkMode
from mcp_server.model.sessions import Session
from mcp_server.state.engine.rows import VersionMoved
from mcp_server.state.store import Store
from tests.state.parts import Place, choose_all, intent, outcome, posture_of

MODES = (None, "git", "swe", "web")


class Real:
    def now_ns(self) -> int:
        return time.time_ns()


def say(**what: Any) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


async def opened(folder: Path) -> Store:
    place = Place(folder)
    numbers = itertools.count()
    store = Store.open(place.url, secrets=place.secrets, clock=Real(), new_id=lambda: f"{os.getpid()}.{next(numbers)}")
    await store.wait_until_ready()
    return store


async def move(store: Store, id: str, turn: int) -> int:
    """How often it lost before it won."""
    for lost in itertools.count():
        before = await store.find_session(id) or Session(id, "me")
        found = await store.move_session(
            before, replace(before, mode=MODES[turn % 4], steps=before.steps + 1), f"turn {turn}"
        )
        if isinstance(found, Session):
            say(moved=id, version=found.version)
            return lost
    raise AssertionError


async def choose(store: Store, turn: int) -> None:
    while True:
        before = await posture_of(store, "me") or Posture()
        chosen = replace(before, profile=list(Profile)[turn % 4], work_mode=list(WorkMode)[turn % 6])
        found = await choose_all(store, "me", chosen, f"turn {turn}")
        if not isinstance(found, VersionMoved):
            say(chose=found.epoch)
            return


async def turns(folder: Path, count: int) -> None:
    store = await opened(folder)
    say(ready=True)
    sys.stdin.readline()
    for turn in range(count):
        await move(store, "shared", turn)
    await store.close()


async def load(folder: Path, name: str) -> None:
    store = await opened(folder)

    async def call(number: int) -> None:
        for turn in itertools.count():
            posture = await posture_of(store, "me") or Posture()
            found = await store.record_intent(intent(about=(about := f"{name} {number} {turn}"), posture=posture))
            if not isinstance(found, int):
                continue
            say(intent=found, about=about)
            store.record_outcome(outcome(found))

    async def wander() -> None:
        for turn in itertools.count(int(time.time_ns()) % 1000):
            await move(store, "shared", turn)
            await move(store, f"own {name}", turn + 1)
            await choose(store, turn)

    await asyncio.gather(wander(), *(call(number) for number in range(4)))


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    asyncio.run(turns(folder, int(sys.argv[3])) if sys.argv[1] == "turns" else load(folder, sys.argv[3]))
