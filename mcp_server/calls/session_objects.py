"""What does a session own between its calls? Shells and language servers, kept by name and closed in time.

They live in this process only. A session found again by its handle finds them again as long as the process runs.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from msgspec import Struct

SWEEP_SECONDS = 20.0
"""How often unused objects are closed."""


@dataclass(eq=False)
class SessionObject:
    value: Any
    close: Callable[[], Awaitable[None]]
    idle: float
    used: float


class OwnedObject(Struct, frozen=True):
    """The `SessionObjects` port of one session."""

    registry: "ObjectRegistry"
    session: str

    def get(self, name: str) -> Any | None:
        thing = self.registry.get_objects(self.session).get(name)
        if thing is None:
            return None
        thing.used = self.registry.clock()
        return thing.value

    def names(self) -> Sequence[str]:
        return tuple(self.registry.get_objects(self.session))

    def keep(self, name: str, thing: Any, close: Callable[[], Awaitable[None]], idle: float = 1800.0) -> None:
        self.registry.put(self.session, name, SessionObject(thing, close, idle, self.registry.clock()))

    async def drop(self, name: str) -> None:
        await self.registry.drop(self.session, name)


@dataclass
class ObjectRegistry:
    """The objects of all sessions."""

    report_failure: Callable[[str, BaseException], None]
    """Receives an error from closing an object; the others are still closed."""
    clock: Callable[[], float] = time.monotonic
    _things: dict[str, dict[str, SessionObject]] = field(default_factory=dict[str, dict[str, SessionObject]])
    _closing: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    def build_session_objects(self, session: str) -> OwnedObject:
        return OwnedObject(self, session)

    def get_objects(self, session: str) -> dict[str, SessionObject]:
        return self._things.get(session, {})

    def put(self, session: str, name: str, thing: SessionObject) -> None:
        things = self._things.setdefault(session, {})
        assert name not in things, f"{name} is already in use"
        things[name] = thing

    async def drop(self, session: str, name: str) -> None:
        things = self.get_objects(session)
        thing = things.pop(name, None)
        if not things:
            self._things.pop(session, None)
        if thing is not None:
            await self._close(name, thing)

    def release_session(self, session: str) -> None:
        """Close a session's objects after its connection is gone, while the server keeps running."""
        if session in self._things:
            task = asyncio.get_running_loop().create_task(self._close_session(session))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _close_session(self, session: str) -> None:
        await self._close_all([(session, name) for name in self.get_objects(session)])

    async def sweep(self) -> None:
        """Close the objects that have been unused for longer than they may."""
        now = self.clock()
        idle = [
            (session, name)
            for session, things in self._things.items()
            for name, thing in things.items()
            if now - thing.used > thing.idle
        ]
        await self._close_all(idle)

    async def sweep_until_stopped(self) -> None:
        """Sweep until the server stops."""
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            await self.sweep()

    async def close(self) -> None:
        await self._close_all([(session, name) for session, things in self._things.items() for name in things])

    async def _close_all(self, which: Sequence[tuple[str, str]]) -> None:
        async with anyio.create_task_group() as tasks:
            for session, name in which:
                tasks.start_soon(self.drop, session, name)

    async def _close(self, name: str, thing: SessionObject) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await thing.close()
        except Exception as fault:
            self.report_failure(name, fault)
