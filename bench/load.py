"""How many calls a second does a server answer when many clients call at once? The clients run in a separate process.

Every connection sends its next request as soon as the last one is answered. The requests are the same bytes each time
and the replies are only timed, so that this process needs much less CPU than the server.
"""

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from bench.ratios import percentile
from bench.sockets import parse_length

CONNECT = 10.0


@dataclass
class LoadCount:
    """The answers between the end of the warm-up and the end of the measurement."""

    since: float
    until: float
    waits: list[float] = field(default_factory=list[float])
    refused: int = 0
    lost: int = 0


class LoadConnection(asyncio.Protocol):
    """One connection."""

    def __init__(self, wire: bytes, tally: LoadCount) -> None:
        self.wire, self.tally = wire, tally
        self._received = b""
        self._asked = 0.0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._ask()

    def _ask(self) -> None:
        self._asked = perf_counter()
        self.transport.write(self.wire)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found or len(body) < parse_length(head):
            return
        self._received = b""
        now = perf_counter()
        if not head.startswith(b"HTTP/1.1 200") or b'"isError":true' in body or b'"error":' in body[:60]:
            self.tally.refused += 1
        elif self.tally.since <= now < self.tally.until:
            self.tally.waits.append(now - self._asked)
        if now < self.tally.until:
            self._ask()
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if perf_counter() < self.tally.until:
            self.tally.lost += 1
        if not self.ended.done():
            self.ended.set_result(None)


async def run_load(address: tuple[str, int], wire: bytes, connections: int, seconds: float) -> LoadCount:
    """Send calls over this many connections for this long; the first fifth only warms up the server."""
    loop = asyncio.get_running_loop()
    now = perf_counter()
    count = LoadCount(now + seconds / 5, now + seconds * 6 / 5)
    connections_open: list[LoadConnection] = []
    async with asyncio.timeout(CONNECT):
        for _ in range(connections):
            connections_open.append((await loop.create_connection(lambda: LoadConnection(wire, count), *address))[1])
    await asyncio.wait([connection.ended for connection in connections_open], timeout=seconds * 6 / 5 + CONNECT)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("--http", metavar="HOST:PORT", required=True)
    parser.add_argument("--request", type=Path, required=True, help="a file with the bytes of one HTTP request")
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    host, _, port = arguments.http.rpartition(":")
    wire = arguments.request.read_bytes()
    count = asyncio.run(run_load((host, int(port)), wire, arguments.connections, arguments.seconds))
    figures = {
        "per_second": len(count.waits) / (count.until - count.since),
        "p50": percentile(count.waits, 0.5) if count.waits else None,
        "p99": percentile(count.waits, 0.99) if count.waits else None,
        "refused": count.refused,
        "lost": count.lost,
    }
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
