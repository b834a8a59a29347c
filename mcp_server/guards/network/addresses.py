"""Is this address on the public network? Others are private networks, this machine, or where a cloud keeps its keys.

We write the table out because the standard library's answer changed between versions: it took one cloud's metadata
service, and addresses that embed another address, for public.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from mcp_server.model.destinations import Address

NOT_PUBLIC: dict[str, str] = {
    "0.0.0.0/8": "this machine",
    "10.0.0.0/8": "a private network",
    "100.64.0.0/10": "a provider's internal network",
    "127.0.0.0/8": "this machine",
    "169.254.0.0/16": "the local link, where clouds keep their metadata",
    "172.16.0.0/12": "a private network",
    "192.0.0.0/24": "reserved, and where a cloud keeps its metadata",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "reserved for name servers",
    "192.52.193.0/24": "reserved for relays",
    "192.88.99.0/24": "a relay to other addresses",
    "192.168.0.0/16": "a private network",
    "192.175.48.0/24": "reserved for name servers",
    "198.18.0.0/15": "benchmarks",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
    # Of IPv6, only 2000::/3 is allocated at all; these are the exceptions in it.
    "2001::/23": "reserved, with relays to other addresses",
    "2001:db8::/32": "documentation",
    "2002::/16": "a relay to other addresses",
    "2620:4f:8000::/48": "reserved for name servers",
    "3fff::/20": "documentation",
}
METADATA = (
    *("169.254.0.0/16", "192.0.0.192/32", "100.100.100.200/32", "168.63.129.16/32"),
    *("fd00:ec2::/32", "fe80::/10", "fd20:ce::/32"),
)
"""Where clouds hand out a machine's keys. No list and no profile allows these."""
ALLOCATED = IPv6Network("2000::/3")
EMBEDDING_IPV4 = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
"""Addresses that stand for the IPv4 address in their last four bytes."""

SIX_TO_FOUR, TEREDO = IPv6Network("2002::/16"), IPv6Network("2001::/32")
LOCAL_NAT64, COMPATIBLE = IPv6Network("64:ff9b:1::/48"), IPv6Network("::/96")

_NOT_PUBLIC = tuple((ip_network(text), why) for text, why in NOT_PUBLIC.items())
_METADATA = tuple(map(ip_network, METADATA))


def unwrap_address(address: Address) -> Address:
    """Return the address that a connection to this one really reaches."""
    if isinstance(address, IPv6Address) and any(address in network for network in EMBEDDING_IPV4):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def describe_if_not_public(address: str) -> str | None:
    """Describe what the address is instead of public; None if it is public."""
    real = unwrap_address(_parse_address(address))
    if is_always_closed(address):
        return "where a cloud keeps a machine's keys"
    if isinstance(real, IPv6Address) and real not in ALLOCATED:
        return "not on the public network"
    return next((purpose for network, purpose in _NOT_PUBLIC if _is_in_network(real, network)), None)


def is_always_closed(address: str) -> bool:
    """Does it stay closed whatever the lists say?"""
    real = unwrap_address(_parse_address(address))
    return any(map(_is_metadata, (real, *_find_relayed_addresses(real))))


def _find_relayed_addresses(address: Address) -> Iterator[Address]:
    """Find the IPv4 addresses to which a relay or translator might forward what is sent to this one. Such an address is
    never public, but the operator may have listed the relay."""
    if not isinstance(address, IPv6Address):
        return
    number = int(address)
    if address in SIX_TO_FOUR:
        yield IPv4Address(number >> 80 & 0xFFFFFFFF)
    elif address in TEREDO:
        yield IPv4Address(number & 0xFFFFFFFF ^ 0xFFFFFFFF)
    elif address in LOCAL_NAT64 or address in COMPATIBLE:
        yield IPv4Address(number & 0xFFFFFFFF)
        # RFC 6052 leaves out the byte in the middle if the prefix has 48 bits.
        yield IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF)


def _parse_address(address: str) -> Address:
    """Parse without the zone (the interface), which has no bearing on where the address leads."""
    return ip_address(address.partition("%")[0])


def _is_metadata(address: Address) -> bool:
    return any(_is_in_network(address, network) for network in _METADATA)


def _is_in_network(address: Address, network: IPv4Network | IPv6Network) -> bool:
    return address.version == network.version and address in network
