"""Does a server send as much of its log as those callers want that want the most?"""

from typing import Any

import pytest
from mcp_types import LOG_LEVEL_META_KEY

from mcp_server.upstreams.handshake import Agreement
from mcp_server.upstreams.log_levels import LogLevels, drop_level, find_lowest_level

pytestmark = pytest.mark.anyio


class Peer:
    def __init__(self) -> None:
        self.told: list[str] = []

    async def ask(self, method: str, params: dict[str, Any], headers: object) -> dict[str, Any]:
        self.told.append(params["level"])
        return {}


def meta(level: str | None) -> dict[str, Any]:
    return {LOG_LEVEL_META_KEY: level} if level else {}


@pytest.mark.parametrize(
    ("wanted", "lowest"),
    [((), None), ((None, "error"), "error"), (("error", "debug", "info"), "debug"), (("loud",), None)],
)
def test_the_lowest_level_counts(wanted: tuple[str | None, ...], lowest: str | None) -> None:
    assert find_lowest_level(map(meta, wanted)) == lowest


async def test_an_older_server_is_told_what_became_different() -> None:
    peer: Any = Peer()
    levels, agreement = LogLevels(), Agreement("2025-11-25", {"logging": {}})
    for wanted in (["info"], [None], ["error"], ["error"], ["error", "debug"], ["info"]):
        await levels.adjust(peer, agreement, map(meta, wanted))
    assert peer.told == ["error", "debug", "info"]


@pytest.mark.parametrize("agreement", [Agreement("2026-07-28", {"logging": {}}), Agreement("2025-11-25")])
async def test_no_other_server_is_told(agreement: Agreement) -> None:
    peer: Any = Peer()
    await LogLevels().adjust(peer, agreement, [meta("error")])
    assert not peer.told


def test_an_older_server_does_not_see_the_level() -> None:
    assert drop_level({"name": "a", "_meta": meta("error")}) == {"name": "a"}
    assert drop_level({"name": "a", "_meta": {"x/y": 1, **meta("error")}}) == {"name": "a", "_meta": {"x/y": 1}}
