"""What is a stored secret? Its name, where it may be used, and which values can be kept; never the value itself."""

import re
from enum import StrEnum
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_server.model.text import CONTROLS, quote_exactly

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
MIN_VALUE_CHARS = 8
"""The shortest value that can be masked: a shorter one would match in ordinary words."""
MAX_VALUE_BYTES = 65_536
MAX_ORIGINS = 20
HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
UNTYPABLE = re.compile(f"[{CONTROLS}\ud800-\udfff]")
PORTS = {"https": 443, "http": 80}


class SecretPlace(StrEnum):
    """Where a value is kept."""

    KEYRING = "keyring"
    """In our file, encrypted with a key that only the system keyring has."""
    FILE = "file"
    """In our file, which only this account can read."""


class SecretEntry(Struct, frozen=True):
    """What may be shown of a secret."""

    name: str
    workspace: str = ""
    """The only folder whose servers may use it; empty: every folder."""
    origins: tuple[str, ...] = ()
    """The web sites that it may be typed into; empty: none."""
    place: SecretPlace = SecretPlace.FILE
    created: int = 0
    """In nanoseconds, like the next two."""
    changed: int = 0
    used: int = 0
    """0 if it was never used."""
    used_by: str = ""


class SecretNames(Protocol):
    """The secrets that servers in the call's workspace could use, without their values."""

    def list_entries(self) -> tuple[list[SecretEntry], int]:
        """Return them by name, and how many files could not be read. Asks no keyring."""
        ...


class SecretUnavailable(Exception):
    """A secret cannot be used; the message says why, and what to do."""


class KeyringUnavailable(Exception):
    """The system keyring cannot be used; the message says why."""


class Keyring(Protocol):
    """The keyring of the system, which keeps one of our keys. Every call ends after a time limit; it raises
    `KeyringUnavailable` if the keyring is missing, locked, or does not answer."""

    def load_key(self, id: str) -> str | None:
        """Return the key, or None if the keyring works and does not have it."""
        ...

    def save_key(self, id: str, key: str) -> None: ...


def find_name_fault(name: str) -> str:
    """Say what is wrong with a name; empty if it is fine."""
    if NAME.fullmatch(name):
        return ""
    return (
        f"{quote_exactly(name)} cannot be a secret's name: use at most 64 letters, digits, `_`, `.` and `-`, and begin "
        "with a letter or digit."
    )


def find_value_fault(value: str) -> str:
    """Say what is wrong with a value, without repeating it; empty if it is fine."""
    if not value.strip():
        return "the value is empty."
    if value != value.strip(" \t"):
        return "the value begins or ends with a space or tab; leave it out."
    if len(value) < MIN_VALUE_CHARS:
        return (
            f"the value has {len(value)} characters. Values shorter than {MIN_VALUE_CHARS} cannot be kept secret: "
            "hiding them would hide parts of ordinary words."
        )
    if UNTYPABLE.search(value.replace("\r\n", "\n")):
        return "the value contains a control character or half a character; type or paste it again."
    if len(value.encode()) > MAX_VALUE_BYTES:
        return f"the value has more than {MAX_VALUE_BYTES:,} bytes."
    return ""


def parse_origin(text: str) -> str:
    """Return a web origin in its one spelling, such as `https://example.org`; raise `ValueError` with what is wrong."""
    shown = quote_exactly(text)
    try:
        parts = urlsplit(text)
        port, host = parts.port, (parts.hostname or "").rstrip(".")
    except ValueError:
        raise ValueError(f"{shown} is not the address of a web site.") from None
    if text != text.strip() or parts.scheme not in PORTS or not host:
        raise ValueError(f"{shown} is not a web site such as `https://example.org`.")
    if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc or "?" in text:
        raise ValueError(f"{shown} names more than a web site; write only `{parts.scheme}://` and the host.")
    address = _read_address(host)
    if not address and (not HOST.fullmatch(host) or len(host) > 253):
        raise ValueError(f"{shown} has a host that cannot be compared safely; write it in ASCII, without `*`.")
    if parts.scheme == "http" and not (host == "localhost" or (address and ip_address(address).is_loopback)):
        raise ValueError(f"{shown} sends what is typed there unencrypted; only `https` and this machine are allowed.")
    written = f"[{address}]" if ":" in address else address or host
    return f"{parts.scheme}://{written}" + ("" if port in (None, PORTS[parts.scheme]) else f":{port}")


def _read_address(host: str) -> str:
    try:
        return str(ip_address(host))
    except ValueError:
        return ""
