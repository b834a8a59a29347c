"""Is a host known by the name it gives, with the evidence for what is said of it?"""

import pytest

from mcp_server.model.menus import Hosts, Listing
from tests.config.samples import opened


def test_every_host_row_has_its_evidence() -> None:
    assert [row.client for row in opened().hosts.rows if not row.evidence] == []


@pytest.mark.parametrize(
    ("client", "listing"),
    [
        ("gemini-cli-mcp-client", Listing.MASKED),
        ("gemini-cli-mcp-client-menugate", Listing.MASKED),
        ("opencode", Listing.MASKED),
        ("Kilo", Listing.MASKED),
        ("kilo-code", Listing.MASKED),
        ("copilot-cli", Listing.MASKED),
        ("claude-code", Listing.CARRIED),
        ("codex-mcp-client", Listing.CARRIED),
        ("mcp", Listing.CARRIED),
        ("mcp-remote", None),
        ("opencode2", None),
        ("", None),
        (None, None),
    ],
)
def test_a_host_is_known_by_the_name_it_gives(client: str | None, listing: Listing | None) -> None:
    row = opened().hosts.find_host(client)
    assert (row.listing if row else None) == listing


def test_the_whole_name_wins_and_then_the_longer_beginning() -> None:
    first = opened().hosts.rows[0]
    rows = [
        type(first)(client, Listing.FLAT, relists=False, evidence=client) for client in ("ab*", "abc*", "abcd", "abc*")
    ]
    hosts = Hosts(tuple(rows))
    assert [hosts.find_host(name) for name in ("abx", "abcx", "ABCD", "a")] == [rows[0], rows[1], rows[2], None]
