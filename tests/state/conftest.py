from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcp_server.state.store import Store
from tests.state.parts import Hands, Place


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
async def hands(anyio_backend: str) -> AsyncIterator[Hands]:
    """Stores opened by a test are closed after it, whatever happened."""
    held = Hands()
    yield held
    await held.close()


@pytest.fixture
async def store(place: Place, hands: Hands) -> Store:
    return await hands.open(place)
