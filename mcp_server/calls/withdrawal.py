"""When is a question to the client withdrawn? As soon as it is answered elsewhere."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio

from mcp_server.model.results import Refusal
from mcp_server.state.store import Store


@asynccontextmanager
async def withdraw_when_answered(
    store: Store, is_answered: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[anyio.CancelScope]:
    """Cancel what is waited for in here as soon as the state says that it was answered."""
    scope, changed = anyio.CancelScope(), asyncio.Event()
    forget = store.on_change(changed.set)

    async def watch() -> None:
        while True:
            changed.clear()
            with suppress(Refusal):
                if await is_answered():
                    scope.cancel()
                    return
            await changed.wait()

    watching = asyncio.get_running_loop().create_task(watch())
    try:
        with scope:
            yield scope
    finally:
        watching.cancel()
        forget()
