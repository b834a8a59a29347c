"""What may commands and tools reach on the network? Reads `network` and `web` of menugate.yaml."""

from collections.abc import Sequence
from pathlib import Path

from mcp_server.config.faults import FaultCollector
from mcp_server.config.reader import Fields
from mcp_server.config.shapes import get_leaf, get_leaves
from mcp_server.model.destinations import (
    ALL_PORTS,
    USUAL,
    WEB,
    Destination,
    Destinations,
    parse_destination,
    parse_destinations,
)
from mcp_server.model.text import quote_exactly
from mcp_server.model.web_access import WebAccess
from mcp_server.model.web_address import BadWebAddress, WebAddress, parse_web_address


def read_program_destinations(fields: Fields, findings: FaultCollector) -> Destinations:
    section = fields.fields.get("network")
    if not isinstance(section, Fields) or "allow" not in section.fields:
        return parse_destinations(USUAL)
    return _read_destinations(section, "allow", WEB, findings)


def read_web_access(path: Path, fields: Fields, findings: FaultCollector) -> WebAccess:
    section = fields.fields.get("web")
    if not isinstance(section, Fields):
        return WebAccess()
    return WebAccess(
        allow=_read_destinations(section, "allow", WEB, findings),
        # A host that is closed is closed on every port.
        deny=_read_destinations(section, "deny", ALL_PORTS, findings),
        ask=_read_destinations(section, "ask", ALL_PORTS, findings),
        proxy=_read_proxy(section, findings),
        authorities=_read_authorities(path, section, findings),
    )


def _read_destinations(section: Fields, key: str, usual_ports: Sequence[int], findings: FaultCollector) -> Destinations:
    destinations: list[Destination] = []
    for entry in get_leaves(section, key):
        try:
            destinations.append(parse_destination(entry.text, usual_ports))
        except ValueError as fault:
            findings.add(entry.place, f"`{entry.text}` {fault}")
    return Destinations(tuple(destinations))


def _read_proxy(section: Fields, findings: FaultCollector) -> WebAddress | None:
    """Messages never repeat the URL, which may contain a password."""
    entry = get_leaf(section, "proxy")
    if entry is None:
        return None
    try:
        address = parse_web_address(entry.text)
    except BadWebAddress as fault:
        findings.add(entry.place, f"{fault} Write the proxy like `http://proxy.example:3128`")
        return None
    if address.target != "/":
        findings.add(entry.place, "leave out everything after the proxy's host and port")
    return address


def _read_authorities(path: Path, section: Fields, findings: FaultCollector) -> str:
    entry = get_leaf(section, "authorities")
    if entry is None:
        return ""
    file = path.parent / entry.text
    try:
        if "-----BEGIN CERTIFICATE-----" not in file.read_text("utf-8", "replace"):
            findings.add(entry.place, f"{quote_exactly(str(file))} contains no certificate in PEM format")
    except OSError as fault:
        findings.add(entry.place, f"{quote_exactly(str(file))} cannot be read: {fault.strerror}")
    return str(file)
