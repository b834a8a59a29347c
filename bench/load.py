"""How many calls a second does a server answer when many ask at once? The asking side, in a process of its own.

Every connection sends its next request the moment its last was answered. The requests are the same bytes each time and
the replies are only measured, so that this process needs a small part of the processor the server needs.
"""

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from bench.ratios import percentile
from bench.sockets import length

CONNECT = 10.0


@dataclass
class LoadCount:
    """What was answered between the end of the warm-up and the end of the time."""

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
        if not found or len(body) < length(head):
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


async def storm(address: tuple[str, int], wire: bytes, connections: int, seconds: float) -> LoadCount:
    """Let `connections` ask for `seconds`; the first fifth only warms the server up."""
    loop = asyncio.get_running_loop()
    now = perf_counter()
    tally = LoadCount(now + seconds / 5, now + seconds * 6 / 5)
    askers: list[LoadConnection] = []
    async with asyncio.timeout(CONNECT):
        for _ in range(connections):
            askers.append((await loop.create_connection(lambda: LoadConnection(wire, tally), *address))[1])
    await asyncio.wait([asker.ended for asker in askers], timeout=seconds * 6 / 5 + CONNECT)
    return tally


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    options.add_argument("--http", metavar="HOST:PORT", required=True)
    options.add_argument("--request", type=Path, required=True, help="a file with the bytes of one HTTP request")
    options.add_argument("--connections", type=int, default=100)
    options.add_argument("--seconds", type=float, default=2.0)
    chosen = options.parse_args()
    host, _, port = chosen.http.rpartition(":")
    wire = chosen.request.read_bytes()
    tally = asyncio.run(storm((host, int(port)), wire, chosen.connections, chosen.seconds))
    told = {
        "per_second": len(tally.waits) / (tally.until - tally.since),
        "p50": percentile(tally.waits, 0.5) if tally.waits else None,
        "p99": percentile(tally.waits, 0.99) if tally.waits else None,
        "refused": tally.refused,
        "lost": tally.lost,
    }
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
