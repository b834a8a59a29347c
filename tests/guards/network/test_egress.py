"""Is nobody reached who must not be, whatever a name leads to and however it is spelt?"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.guards.network.addresses import NOT_PUBLIC, describe_if_not_public, is_always_closed
from mcp_server.guards.network.egress import DestinationClosed, DestinationUnreached, Egress, Streams
from mcp_server.model.destinations import (
    USUAL,
    Destinations,
    normalize_host_name,
    parse_address,
    parse_destination,
    parse_destinations,
)
from tests.yaml_text import load_yaml

TABLES = Path(__file__).parents[2] / "tables"
ADDRESSES: dict[str, list[str]] = load_yaml((TABLES / "addresses.yaml").read_text())
ENTRIES: list[dict[str, Any]] = load_yaml((TABLES / "destinations.yaml").read_text())
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class World:
    """Names lead where it says, one answer after the other; whoever is dialled is only noted down."""

    names: dict[str, list[Sequence[str]]]
    asked: list[str] = field(default_factory=list[str])
    hits: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    dead: tuple[str, ...] = ()

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.names[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def dial(self, address: str, port: int) -> Streams:
        if address in self.dead:
            raise ConnectionRefusedError(111, "Connection refused")
        self.hits.append((address, port))
        return asyncio.StreamReader(), None  # type: ignore[return-value]  # nobody writes to it

    def door(self, names: Destinations | None = None, opened: Sequence[str] = ()) -> Egress:
        return Egress(names, parse_destinations(opened), self.resolve, self.dial)


@pytest.mark.parametrize("address", [*ADDRESSES["refused"], *ADDRESSES["never"]])
async def test_a_name_that_leads_inside_reaches_nobody(address: str) -> None:
    world = World({"evil.example": [[address]], "mixed.example": [["1.1.1.1", address]]})
    for host in ("evil.example", "mixed.example", address):
        with pytest.raises(DestinationClosed):
            await world.door().connect(host, 80)
    assert world.hits == []


@pytest.mark.parametrize("address", ADDRESSES["public"])
async def test_the_public_network_is_reached(address: str) -> None:
    world = World({"good.example": [[address]]})
    await world.door().connect("good.example", 443)
    assert world.hits == [(address, 443)]


@pytest.mark.parametrize("address", ADDRESSES["never"])
async def test_nothing_opens_where_clouds_keep_keys(address: str) -> None:
    plain = address.partition("%")[0]
    world = World({"evil.example": [[address]]})
    everything = ["*", "0.0.0.0/0", "::/0", f"[{plain}]" if ":" in plain else plain]
    for host in ("evil.example", plain):
        with pytest.raises(DestinationClosed):
            await world.door(opened=everything).connect(host, 80)
    assert world.hits == []
    assert is_always_closed(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "fd12::1"])
async def test_the_operator_opens_an_address_by_writing_it_down(address: str) -> None:
    entry = f"[{address}]:8080" if ":" in address else f"{address}:8080"
    world = World({"inner.example": [[address]]})
    await world.door(opened=[entry]).connect("inner.example", 8080)
    assert world.hits == [(address, 8080)]
    with pytest.raises(DestinationClosed):
        await world.door(opened=[entry]).connect("inner.example", 80)


async def test_a_name_on_the_list_opens_no_address() -> None:
    world = World({"inner.example": [["10.1.2.3"]]})
    with pytest.raises(DestinationClosed, match="private network"):
        await world.door(parse_destinations(["inner.example"]), ["inner.example"]).connect("inner.example", 80)
    assert world.hits == []


async def test_an_answer_that_flips_is_asked_for_once() -> None:
    """What was checked is what is connected to: between the two nobody asks again."""
    world = World({"flip.example": [["1.1.1.1"], ["127.0.0.1"]]})
    await world.door().connect("flip.example", 80)
    assert (world.asked, world.hits) == (["flip.example"], [("1.1.1.1", 80)])
    with pytest.raises(DestinationClosed):
        await world.door().connect("flip.example", 80)
    assert world.hits == [("1.1.1.1", 80)]


async def test_a_name_that_is_not_listed_is_not_even_asked_about() -> None:
    world = World({"secret-in-a-name.evil.example": [["1.1.1.1"]]})
    with pytest.raises(DestinationClosed) as refused:
        await world.door(parse_destinations(["good.example"])).connect("secret-in-a-name.evil.example", 443)
    assert "`network: allow:` in menugate.yaml" in refused.value.way_out
    assert (world.asked, world.hits) == ([], [])


@pytest.mark.parametrize("spelling", ADDRESSES["no_names"])
async def test_what_looks_like_a_name_and_is_none(spelling: str) -> None:
    world = World({})
    with pytest.raises(DestinationClosed):
        await world.door().connect(spelling, 80)
    assert (world.asked, world.hits) == ([], [])


async def test_one_address_after_the_other_is_tried() -> None:
    world = World({"two.example": [["1.1.1.1", "1.0.0.1"]]}, dead=("1.1.1.1",))
    await world.door().connect("two.example", 80)
    assert world.hits == [("1.0.0.1", 80)]
    world.dead = ("1.1.1.1", "1.0.0.1")
    with pytest.raises(DestinationUnreached, match="connection refused"):
        await world.door().connect("two.example", 80)


async def test_a_name_that_leads_nowhere_says_so() -> None:
    async def nowhere(host: str, port: int) -> Sequence[str]:
        raise OSError("no such name")

    for resolve in (nowhere, World({"empty.example": [[]]}).resolve):
        with pytest.raises(DestinationUnreached):
            await Egress(None, resolve=resolve).connect("empty.example", 80)


def test_every_row_of_the_table_is_needed() -> None:
    """Without it, some address of the table of cases would pass as public."""
    missed = [address for address in ADDRESSES["refused"] if describe_if_not_public(address) is None]
    assert missed == []
    cases = [ip_address(address) for address in ADDRESSES["refused"] + ADDRESSES["never"] if "%" not in address]
    unseen = [row for row in NOT_PUBLIC if not any(case in ip_network(row) for case in cases)]
    # Reserved for relays and name servers; a case of each would show nothing more.
    assert unseen == ["192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", "2620:4f:8000::/48"]


@given(st.ip_addresses())
def test_no_more_is_public_than_the_standard_library_says(address: Any) -> None:
    """Where both have an opinion, ours is the narrower, but for what carries another address inside."""
    if describe_if_not_public(str(address)) is None and not str(address).startswith(("64:ff9b::", "::ffff:")):
        assert address.is_global


@pytest.mark.parametrize("row", [row for row in ENTRIES if "wrong" not in row], ids=lambda row: row["entry"])
def test_an_entry_lets_through_what_it_says(row: dict[str, Any]) -> None:
    listed = parse_destinations([row["entry"]])

    def allowed(place: str) -> bool:
        host, _, port = place.rpartition(":")
        return listed.has_host(str(parse_address(host) or normalize_host_name(host) or host), int(port))

    assert [place for place in row["through"] if not allowed(place)] == []
    assert [place for place in row["stopped"] if allowed(place)] == []


@pytest.mark.parametrize("row", [row for row in ENTRIES if "wrong" in row], ids=lambda row: row["entry"])
def test_what_is_no_entry_says_why(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=row["wrong"]):
        parse_destination(row["entry"])


def test_what_is_usual_can_be_read() -> None:
    usual = parse_destinations(USUAL)
    assert usual.has_host("github.com", 443)
    assert usual.has_host("files.pythonhosted.org", 443)
    assert not usual.has_host("github.com", 22)
    assert not usual.has_host("example.org", 443)
