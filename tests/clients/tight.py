"""How is a folder served with little room and little patience? As `menugate serve --http` does, within other limits."""

import asyncio
import sys

from mcp_server.cli.serve import serve_over_http
from mcp_server.compose import build_app
from mcp_server.settings import read_settings
from mcp_server.wire.http_access import HttpLimits

TIGHT = HttpLimits(head_seconds=0.3, body_seconds=0.3, unread_seconds=0.3, requests=20, streams=4, sessions=6, sse=2)


async def serve(workspace: str, address: str) -> None:
    house = build_app(read_settings({"workspace": workspace, "http": address}))
    async with house.open_for_use():
        await serve_over_http(house, TIGHT)


if __name__ == "__main__":
    # As the suite's doors say it: --workspace DIR --http HOST:PORT
    given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    asyncio.run(serve(given["--workspace"], given["--http"]))
