"""Whom does the operator let look over a run? An address, a model, and the name of the variable that holds the key."""

import re
from dataclasses import replace
from urllib.parse import urlsplit

from mcp_server.config.faults import FaultCollector, quoted
from mcp_server.config.reader import Fields, Leaf
from mcp_server.config.shapes import leaf, number, text
from mcp_server.model.destinations import destination
from mcp_server.model.policy import Reviewing

PORTS = {"http": 80, "https": 443}
REFERENCE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
LIKE = "write it as `https://host/v1/chat/completions`"


def reviewing_in(fields: Fields, findings: FaultCollector) -> Reviewing | None:
    found = fields.fields.get("review")
    if not isinstance(found, Fields):
        return None
    endpoint, model = leaf(found, "endpoint"), text(found, "model")
    place = _place(endpoint, findings) if endpoint else None
    key = _key(leaf(found, "key"), findings)
    if endpoint is None or place is None or not model:
        return None
    patience = number(found, "patience")
    wish = Reviewing(endpoint.text, *place, model=model, key=key)
    return replace(wish, patience=patience) if patience else wish


def _place(endpoint: Leaf, findings: FaultCollector) -> tuple[str, int] | None:
    """Host and port of the address, which is not repeated as a whole: it may hold what is meant to stay secret."""
    try:
        parts = urlsplit(endpoint.text)
        host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        findings.add(endpoint.place, f"this is no URL; {LIKE}")
        return None
    if "@" in parts.netloc:
        findings.add(endpoint.place, "the URL holds a name or a password; leave it out and name a variable in `key`")
        return None
    if parts.scheme not in PORTS or not host or parts.fragment:
        findings.add(endpoint.place, f"this is no address of the web; {LIKE}")
        return None
    try:
        destination(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except ValueError as wrong:
        findings.add(endpoint.place, f"{quoted(host)} {wrong}")
        return None
    return host, port


def _key(key: Leaf | None, findings: FaultCollector) -> str:
    if key is None:
        return ""
    found = REFERENCE.fullmatch(key.text)
    if found is None:
        # It may be the key itself, and faults are shown in logs.
        findings.add(key.place, "write `env:NAME`, with the variable that holds the key, and not the key itself")
        return ""
    return found[1]
