"""Which revision does a server speak? Found out when it starts, as the mount's `era` says.

`auto` asks as the newest revision does, and falls back to the older handshake on any error, or when nothing came for a
while: some servers ignore what they do not know. The later answer counts then, whichever it is, because the first
request that a server understands settles its revision.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from msgspec import Struct, field

import mcp_server
from mcp_server.model.upstreams import ProtocolEra
from mcp_server.upstreams.messages import LinkClosed
from mcp_server.upstreams.peer import INTERNAL_ERROR, Peer, UpstreamError

PROBE_SECONDS = 3.0
CLIENT_INFO = {"name": "menugate", "version": mcp_server.__version__}
ERAS: Mapping[ProtocolEra, tuple[bool, bool]] = {
    ProtocolEra.AUTO: (True, True),
    ProtocolEra.MODERN: (True, False),
    ProtocolEra.LEGACY: (False, True),
}
"""Whether the newest revision is tried, and whether the older handshake is."""


class Agreement(Struct, frozen=True):
    """What was agreed with a server: the revision, and what it said about itself."""

    protocol: str
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    server: Mapping[str, Any] = field(default_factory=dict[str, Any])
    instructions: str = ""
    declared: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The abilities that we declared."""

    @property
    def modern(self) -> bool:
        return self.protocol in MODERN_PROTOCOL_VERSIONS

    def stamp(self, method: str, params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return what a request carries in this revision, and its HTTP headers."""
        headers = {"mcp-protocol-version": self.protocol}
        if not self.modern:
            return dict(params), headers
        own = {
            PROTOCOL_VERSION_META_KEY: self.protocol,
            CLIENT_INFO_META_KEY: CLIENT_INFO,
            CLIENT_CAPABILITIES_META_KEY: self.declared,
        }
        headers["mcp-method"] = method
        if isinstance(name := params.get(NAME_BEARING_METHODS.get(method, "")), str):
            headers["mcp-name"] = encode_header_value(name)
        return {**params, "_meta": {**params.get("_meta", {}), **own}}, headers


async def agree(peer: Peer, era: ProtocolEra, roots: bool) -> Agreement:
    """Agree on a revision, or raise `LinkClosed` or `UpstreamError`."""
    declared: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
    if roots:
        declared["roots"] = {}
    tries_modern, tries_legacy = ERAS[era]
    if not tries_modern:
        return await _initialize(peer, declared)
    if not tries_legacy:
        return await _discover(peer, declared)
    probe = asyncio.ensure_future(_discover(peer, declared))
    try:
        await asyncio.wait([probe], timeout=PROBE_SECONDS)
        if not probe.done():
            return await _take_first(probe, asyncio.ensure_future(_initialize(peer, declared)))
        if isinstance(error := probe.exception(), UpstreamError):
            return await _initialize(peer, declared)
        if error is not None:
            raise error
        return probe.result()
    finally:
        probe.cancel()


async def _take_first(*tries: "asyncio.Future[Agreement]") -> Agreement:
    """Return what succeeds first; raise the last error if nothing does."""
    last = UpstreamError(INTERNAL_ERROR, "it answered nothing")
    try:
        for attempt in asyncio.as_completed(tries):
            try:
                return await attempt
            except UpstreamError as error:
                last = error
        raise last
    finally:
        for one in tries:
            one.cancel()
            if one.done() and not one.cancelled():
                one.exception()  # or the loop reports that nobody looked


async def _discover(peer: Peer, declared: Mapping[str, Any]) -> Agreement:
    newest = MODERN_PROTOCOL_VERSIONS[-1]
    params, headers = Agreement(newest, declared=declared).stamp("server/discover", {})
    found = await peer.ask("server/discover", params, headers)
    offered: Any = found.get("supportedVersions")
    if not isinstance(offered, list) or newest not in offered:
        raise UpstreamError(-32022, "the server does not speak this revision")
    return _read(newest, found, declared, _read_object(found.get("_meta")).get(SERVER_INFO_META_KEY))


async def _initialize(peer: Peer, declared: Mapping[str, Any]) -> Agreement:
    params = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": declared, "clientInfo": CLIENT_INFO}
    found = await peer.ask("initialize", params, {})
    protocol = found.get("protocolVersion")
    if protocol not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise LinkClosed(f"it speaks a revision of MCP that menugate does not know ({str(protocol)[:40]})")
    agreed = _read(str(protocol), found, declared, found.get("serverInfo"))
    await peer.notify("notifications/initialized", {}, {"mcp-protocol-version": agreed.protocol})
    return agreed


def _read(protocol: str, found: Mapping[str, Any], declared: Mapping[str, Any], server: Any) -> Agreement:
    instructions = found.get("instructions")
    words = instructions if isinstance(instructions, str) else ""
    return Agreement(protocol, _read_object(found.get("capabilities")), _read_object(server), words, declared)


def _read_object(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
