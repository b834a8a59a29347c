"""May this network place be reached, and at which address? A name is looked up once, and only that answer is used.

The name is checked before it is looked up, so that a DNS query cannot carry data out. All returned addresses are
checked, then connected to directly: no second lookup can return another answer.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio

from mcp_server.guards.network.addresses import describe_if_not_public, is_always_closed
from mcp_server.model.destinations import Destinations, normalize_host_name, parse_address
from mcp_server.model.text import to_printable_ascii

SETTING = "`network: allow:` in menugate.yaml"
CONNECT_SECONDS = 10.0
RESOLVE_SECONDS = 10.0
MOST_ADDRESSES = 8

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
Dial: TypeAlias = Callable[[str, int], Awaitable[Streams]]


class DestinationClosed(Exception):
    """The place is not allowed; the message says why, and `way_out` who can change that."""

    def __init__(self, message: str, way_out: str) -> None:
        super().__init__(message)
        self.way_out = way_out


class DestinationUnreached(Exception):
    """The place is allowed but was not reached; the message says how it failed."""


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Ask this machine's resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def dial_address(address: str, port: int) -> Streams:
    return await asyncio.open_connection(address, port)


@dataclass(frozen=True, slots=True)
class Egress:
    """`names` lists the names that may be looked up, None for all; `opened` lists addresses allowed although they are
    not public, because the operator listed them."""

    names: Destinations | None
    opened: Destinations = field(default_factory=Destinations)
    resolve: Resolve = resolve_host
    dial: Dial = dial_address

    async def connect(self, host: str, port: int) -> Streams:
        failed = "it has no address"
        for address in (await self.find_addresses(host, port))[:MOST_ADDRESSES]:
            try:
                with anyio.fail_after(CONNECT_SECONDS):
                    return await self.dial(address, port)
            except TimeoutError:
                failed = f"no answer within {CONNECT_SECONDS:g} s"
            except OSError as error:
                failed = (error.strerror or "it cannot be connected to").lower()
        raise DestinationUnreached(f"`{to_printable_ascii(host)}:{port}` cannot be reached: {failed}.")

    async def find_addresses(self, host: str, port: int) -> Sequence[str]:
        """Return all addresses of the host, each checked: one closed address closes them all."""
        self.check_destination(host, port)
        if (address := parse_address(host)) is not None:
            found: Sequence[str] = [str(address)]
        else:
            found = await self._look_up(normalize_host_name(host) or host, port)
        for one in found:
            self._check_address(host, port, one)
        return found

    def check_destination(self, host: str, port: int) -> None:
        """Check the name alone, before any lookup."""
        name = str(parse_address(host) or normalize_host_name(host) or "")
        if not name or not 0 < port < 65536:
            raise DestinationClosed(
                f"`{to_printable_ascii(host)}` is no name of a host.",
                "Give a name, or an address in its usual spelling.",
            )
        if self.names is not None and not self.names.is_host_allowed(name, port):
            raise DestinationClosed(
                f"`{name}:{port}` is not among the places of the network that may be reached from here.",
                f"The person can add it to {SETTING}.",
            )

    async def _look_up(self, name: str, port: int) -> Sequence[str]:
        try:
            with anyio.fail_after(RESOLVE_SECONDS):
                found = await self.resolve(name, port)
        except TimeoutError:
            raise DestinationUnreached(f"`{name}` was not found within {RESOLVE_SECONDS:g} s.") from None
        except (OSError, UnicodeError):
            raise DestinationUnreached(f"`{name}` is not known to this machine's name server.") from None
        if not found:
            raise DestinationUnreached(f"`{name}` has no address.")
        return found

    def _check_address(self, host: str, port: int, address: str) -> None:
        why = describe_if_not_public(address)
        if why is None:
            return
        plain = parse_address(address.partition("%")[0])
        if is_always_closed(address):
            raise DestinationClosed(f"`{to_printable_ascii(host)}` leads to {why}.", "Nothing opens that.")
        if plain is None or not self.opened.is_address_allowed(plain, port):
            raise DestinationClosed(
                f"`{to_printable_ascii(host)}` leads to {address}, which is {why}.",
                f"The person can open that address with {SETTING}.",
            )
