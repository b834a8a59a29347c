"""Which network destinations may be reached? The operator's list, read once: names, families of names, addresses.

`pypi.org`, `*.pythonhosted.org` (every name below it), `github.com:22`, `*` (every name), `10.1.2.3:8080`,
`10.1.0.0/16`, `[2001:db8::1]:443`. Without a port, the two web ports are meant. An address allows itself, even if a
name leads to it; no name allows an address outside the public network.
"""

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from msgspec import Struct

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

WEB = (80, 443)
ALL_PORTS = range(1, 65536)
LONGEST = 253
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
ENTRY = re.compile(r"(?P<name>\[[^\]]*\](?:/\d+)?|[^:\[\]]*)(?::(?P<port>\d{1,5}))?")
LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

USUAL = (
    # Packages.
    *("pypi.org", "*.pypi.org", "*.pythonhosted.org", "registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org"),
    *("crates.io", "*.crates.io", "*.rust-lang.org", "proxy.golang.org", "sum.golang.org", "rubygems.org"),
    *("*.rubygems.org", "repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", "packagist.org"),
    *("*.packagist.org", "*.nuget.org", "hex.pm", "*.hex.pm", "deb.debian.org", "security.debian.org"),
    # Repositories.
    *("github.com", "*.github.com", "*.githubusercontent.com", "gitlab.com", "bitbucket.org", "codeberg.org"),
)
"""Where packages and repositories come from: what a program at profile `trusted` may reach unless the operator
decides."""


USUAL_INDEX = "https://pypi.org/simple/"
"""Where Python packages come from, unless the account says otherwise."""


class Destination(Struct, frozen=True):
    text: str
    ports: Sequence[int]
    name: str = ""
    """A name; `*` for every name, `*.` and a name for every name below it. Empty if an address is meant."""
    networks: tuple[Network, ...] = ()
    """Addresses that it allows, whatever kind they are."""

    def has_name(self, name: str, port: int) -> bool:
        if port not in self.ports or not self.name:
            return False
        return self.name in ("*", name) or (self.name.startswith("*.") and name.endswith(self.name[1:]))

    def has_host(self, host: str, port: int) -> bool:
        """True for a name or literal address that it lists; of the addresses, `*` lists every one."""
        address = parse_address(host)
        if address is None:
            return self.has_name(host, port)
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return self.has_address(address, port) or self.has_name("*", port)

    def has_address(self, address: Address, port: int) -> bool:
        return port in self.ports and any(address in network for network in self.networks)


class Destinations(Struct, frozen=True):
    every: tuple[Destination, ...] = ()

    def has_host(self, host: str, port: int) -> bool:
        """True if this name or literal address is listed."""
        return any(one.has_host(host, port) for one in self.every)

    def has_address(self, address: Address, port: int) -> bool:
        """True if the operator listed this very address, or a network that contains it."""
        return any(one.has_address(address, port) for one in self.every)


def parse_destinations(entries: Iterable[str], usual_ports: Sequence[int] = WEB) -> Destinations:
    """Parse the entries. Raises `ValueError` at the first bad one, and says what is wrong with it."""
    return Destinations(tuple(parse_destination(entry, usual_ports) for entry in entries))


def parse_destination(entry: str, usual_ports: Sequence[int] = WEB) -> Destination:
    """`usual_ports` are meant by an entry without a port."""
    text = entry.strip().lower()
    # An IPv6 address has colons of its own, and needs no brackets if no port follows.
    entry_match = ENTRY.fullmatch(f"[{text}]" if _parse_network(text) else text)
    if entry_match is None:
        raise ValueError("is not a host, `host:port` or address; a URL is not allowed")
    name, port = entry_match["name"], entry_match["port"]
    ports = usual_ports if port is None else (int(port),)
    if port is not None and not 0 < int(port) < 65536:
        raise ValueError("has an invalid port; ports go from 1 to 65535")
    if name == "localhost":
        return Destination(entry, ports, name, LOOPBACK)
    if (network := _parse_network(name.replace("[", "").replace("]", ""))) is not None:
        return Destination(entry, ports, networks=(network,))
    known = normalize_host_name(name.removeprefix("*.")) if name != "*" else name
    if known is None:
        raise ValueError("is not a host name; a `*` is allowed only as `*.` in front of one")
    return Destination(entry, ports, f"*.{known}" if name.startswith("*.") else known)


def normalize_host_name(host: str) -> str | None:
    """Return a host name in the one spelling used for comparison; None if it is not a name.

    Letters outside ASCII are encoded as in DNS (IDNA 2008), after the same mapping that browsers apply. Nothing that
    ends in a number is a name: resolvers read `2130706433`, `0x7f.1` and `127.1` as addresses, and we do not.
    """
    name = _encode_international_name(host)
    if name is None:
        return None
    name = name.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > LONGEST or not all(LABEL.fullmatch(label) for label in labels):
        return None
    return None if NUMBER.fullmatch(labels[-1]) else name


def _encode_international_name(host: str) -> str | None:
    if host.isascii():
        return host
    if len(host) > LONGEST:
        return None
    import idna  # its tables take time to load, and few names need them

    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return None


def parse_address(host: str) -> Address | None:
    """Return a literal address in its usual spelling; None for a name, and for an address with a zone, because the
    zone says which of this machine's interfaces to use."""
    try:
        return None if "%" in host else ip_address(host)
    except ValueError:
        return None


def _parse_network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None
