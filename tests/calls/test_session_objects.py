"""Are a session's things kept for it alone, and closed once when nobody uses them any more?"""

from dataclasses import dataclass, field

import pytest

from mcp_server.calls.session_objects import ObjectRegistry
from tests.clients.waiting import async_becomes_true

pytestmark = pytest.mark.anyio


@dataclass
class Things:
    now: float = 0.0
    closed: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.registry = ObjectRegistry(lambda name, _fault: self.faults.append(name), lambda: self.now)

    def keep(self, session: str, name: str, idle: float = 10.0) -> None:
        async def close() -> None:
            self.closed.append(name)
            if name.startswith("bad"):
                raise OSError("it does not close")

        self.registry.build_session_objects(session).keep(name, name.upper(), close, idle)


@pytest.fixture
def things() -> Things:
    return Things()


async def test_a_session_sees_its_own(things: Things) -> None:
    things.keep("one", "shell")
    one, other = (things.registry.build_session_objects(name) for name in ("one", "other"))
    assert (one.get("shell"), one.names()) == ("SHELL", ("shell",))
    assert (other.get("shell"), other.names()) == (None, ())
    await other.drop("shell")
    assert things.closed == []
    await one.drop("shell")
    await one.drop("shell")
    assert things.closed == ["shell"]


async def test_what_nobody_used_is_closed_and_what_was_used_is_not(things: Things) -> None:
    things.keep("one", "used")
    things.keep("one", "unused")
    things.now = 9.0
    assert things.registry.build_session_objects("one").get("used")
    things.now = 11.0
    await things.registry.sweep()
    assert things.closed == ["unused"]
    things.now = 19.5
    await things.registry.sweep()
    assert things.closed == ["unused", "used"]


async def test_one_that_does_not_close_holds_no_other_up(things: Things) -> None:
    for name in ("bad one", "good"):
        things.keep("one", name)
    await things.registry.close()
    assert sorted(things.closed) == ["bad one", "good"]
    assert things.faults == ["bad one"]


async def test_a_session_whose_connection_is_gone_is_let_go(things: Things) -> None:
    things.keep("one", "shell")
    things.keep("two", "kept")
    things.registry.release_session("one")
    things.registry.release_session("nobody")
    assert await async_becomes_true(lambda: things.closed == ["shell"])
    assert things.registry.build_session_objects("two").get("kept") == "KEPT"
