"""May we connect to this host, and at which address? Each name is looked up once, and only that answer is used.

We check the name before we look it up, so that a DNS query cannot carry data out. Then we check every address that came
back and connect to it directly, so that no second lookup can return a different one.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

import anyio
from msgspec import Struct, field

from mcp_server.guards.network.addresses import describe_if_not_public, is_always_closed, unwrap_address
from mcp_server.model.destinations import Destinations, normalize_host_name, parse_address
from mcp_server.model.text import to_printable_ascii

ALLOW_SETTING = "`network: allow:` in menugate.yaml"
CONNECT_SECONDS = 10.0
RESOLVE_SECONDS = 10.0
MAX_ADDRESSES = 8

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
Dial: TypeAlias = Callable[[str, int], Awaitable[Streams]]


class DestinationClosed(Exception):
    """The host is not allowed; the message says why, and `way_out` who can change that."""

    def __init__(self, message: str, way_out: str) -> None:
        super().__init__(message)
        self.way_out = way_out


class DestinationUnreached(Exception):
    """The host is allowed but was not reached; the message says why."""


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Ask this machine's resolver."""
    loop = asyncio.get_running_loop()
    results = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in results))


async def dial_address(address: str, port: int) -> Streams:
    return await asyncio.open_connection(address, port)


class Egress(Struct, frozen=True):
    """The only way to connect to the network."""

    names: Destinations | None
    """Names that may be looked up; None for all."""
    operator_list: Destinations = field(default_factory=Destinations)
    """Addresses that are allowed although they are not public."""
    resolve: Resolve = resolve_host
    dial: Dial = dial_address
    judge: Callable[[str, int], DestinationClosed | None] = lambda host, port: None
    """Says why a name may not be looked up; asked after `names`."""
    closed: Destinations = field(default_factory=Destinations)
    """Addresses to which no name may lead."""
    setting: str = ALLOW_SETTING
    """Where the user can allow more."""

    async def connect(self, host: str, port: int) -> Streams:
        return await self._dial_first(host, port, await self.find_addresses(host, port))

    async def connect_to_proxy(self, host: str, port: int) -> Streams:
        """Connect to the proxy that the operator named, wherever it is."""
        return await self._dial_first(host, port, [host] if parse_address(host) else await self._look_up(host, port))

    async def check_through_proxy(self, host: str, port: int) -> None:
        """Check a host to which the operator's proxy will connect. If this machine cannot look up its name, as in many
        companies, the proxy alone decides where it leads."""
        with suppress(DestinationUnreached):
            await self.find_addresses(host, port)

    async def _dial_first(self, host: str, port: int, addresses: Sequence[str]) -> Streams:
        reason = "it has no address"
        for address in addresses[:MAX_ADDRESSES]:
            try:
                with anyio.fail_after(CONNECT_SECONDS):
                    return await self.dial(address, port)
            except TimeoutError:
                reason = f"no answer within {CONNECT_SECONDS:g} s"
            except OSError as error:
                reason = (error.strerror or "the connection failed").lower()
        raise DestinationUnreached(f"`{to_printable_ascii(host)}:{port}` cannot be reached: {reason}.")

    async def find_addresses(self, host: str, port: int) -> Sequence[str]:
        """Return all addresses of the host, each checked: one closed address closes them all."""
        self.check_destination(host, port)
        literal = parse_address(host)
        addresses = [str(literal)] if literal else await self._look_up(normalize_host_name(host) or host, port)
        for address in addresses:
            self._check_address(host, port, address)
        return addresses

    def check_destination(self, host: str, port: int) -> None:
        """Check the name alone, before any lookup."""
        name = str(parse_address(host) or normalize_host_name(host) or "")
        if not name or not 0 < port < 65536:
            raise DestinationClosed(
                f"`{to_printable_ascii(host)}` is not a host name.",
                "Give a host name, or an address in its usual notation.",
            )
        if self.names is not None and not self.names.has_host(name, port):
            raise DestinationClosed(
                f"Connections to `{name}:{port}` are not allowed here.",
                f"The user can add it to {self.setting}.",
            )
        if refusal := self.judge(name, port):
            raise refusal

    async def _look_up(self, name: str, port: int) -> Sequence[str]:
        try:
            with anyio.fail_after(RESOLVE_SECONDS):
                addresses = await self.resolve(name, port)
        except TimeoutError:
            raise DestinationUnreached(f"Looking up `{name}` took longer than {RESOLVE_SECONDS:g} s.") from None
        except (OSError, UnicodeError):
            raise DestinationUnreached(f"This machine's resolver does not know `{name}`.") from None
        if not addresses:
            raise DestinationUnreached(f"`{name}` has no address.")
        return addresses

    def _check_address(self, host: str, port: int, address: str) -> None:
        parsed = parse_address(address.partition("%")[0])
        if parsed is None or self.closed.has_address(unwrap_address(parsed), port):
            raise DestinationClosed(
                f"`{to_printable_ascii(host)}` resolves to {address}, which the operator closed.", "Use another source."
            )
        purpose = describe_if_not_public(address)
        if purpose is None:
            return
        if is_always_closed(address):
            message = f"`{to_printable_ascii(host)}` resolves to an address {purpose}."
            raise DestinationClosed(message, "No setting allows that.")
        if not self.operator_list.has_address(parsed, port):
            raise DestinationClosed(
                f"`{to_printable_ascii(host)}` resolves to {address} ({purpose}).",
                f"The user can allow that address in {self.setting}.",
            )


async def close_writer(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError), anyio.move_on_after(1.0, shield=True):
        await writer.wait_closed()
