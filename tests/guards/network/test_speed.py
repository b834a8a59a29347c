"""Is the way through our guard as fast as the library alone?"""

import time
from statistics import median

import httpx2
import pytest

from mcp_server.guards.network.egress import Egress
from mcp_server.guards.network.http import HttpClient
from mcp_server.model.destinations import parse_destinations
from mcp_server.model.network import Request
from tests.guards.network.site import pages

pytestmark = [pytest.mark.anyio, pytest.mark.heavy]
ROUNDS, FETCHES, FACTOR = 7, 100, 1.5


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_hundred_fetches_take_no_longer_than_allowed() -> None:
    ours, theirs = list[float](), list[float]()
    async with pages() as one:
        one.add("/", b"x" * 10_000)
        url = f"http://127.0.0.1:{one.port}/"
        for _ in range(ROUNDS):
            client = HttpClient(Egress(None, parse_destinations([f"127.0.0.1:{one.port}"])))
            start = time.perf_counter()
            for _ in range(FETCHES):
                assert len((await client.fetch(Request(url))).body) == 10_000
            ours.append(time.perf_counter() - start)
            await client.close()
            async with httpx2.AsyncClient(trust_env=False) as library:
                start = time.perf_counter()
                for _ in range(FETCHES):
                    assert len((await library.get(url)).content) == 10_000
                theirs.append(time.perf_counter() - start)
    print(f"ours {median(ours) * 1000:.1f} ms, the library {median(theirs) * 1000:.1f} ms")
    assert median(ours) <= FACTOR * median(theirs)
