"""What did each server behind menugate offer last? One file per server, so that lists need nothing started.

A catalogue belongs to one definition of a server: if its command or address changes, it counts for nothing. Each file
is sealed with this account's key, because tools are built from it.
"""

import hashlib
import hmac
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from mcp_server.model.upstreams import Catalogue, HttpTarget, Mount
from mcp_server.state.keys import load_or_create_secret
from mcp_server.state.location import make_private_folder

FOLDER = "upstreams"
KEY = "catalogues.key"
LISTS = ("tools", "prompts", "resources", "templates")
LARGEST = 16 * 1024 * 1024


def load_catalogues(state: Path, secrets: Path | None, mounts: Iterable[Mount]) -> dict[str, Catalogue]:
    """Load the catalogues of these servers. What is missing, damaged, foreign or of another definition is left out."""
    key = _load_key(secrets) if (state / FOLDER).is_dir() else None
    found: dict[str, Catalogue] = {}
    for mount in mounts if key else ():
        with suppress(OSError, ValueError, TypeError, KeyError):
            found[mount.name] = _parse(_read(_get_path(state, mount)), mount, key or b"")
    return found


def save_catalogue(state: Path, secrets: Path | None, mount: Mount, catalogue: Catalogue) -> None:
    """Keep the catalogue for the next start. Raises `OSError`."""
    key = _load_key(secrets)
    if key is None:
        return
    path = _get_path(state, mount)
    make_private_folder(path.parent)
    body = json.dumps(
        {
            "definition": describe_definition(mount),
            **{name: list(getattr(catalogue, name)) for name in LISTS},
            "instructions": catalogue.instructions,
            "server": catalogue.server,
            "capabilities": catalogue.capabilities,
            "protocol": catalogue.protocol,
            "read_at": catalogue.read_at,
        }
    )
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{_seal(body, key)}\n{body}")
    draft.replace(path)


def describe_definition(mount: Mount) -> str:
    """Digest what decides which server this is, without the values of its variables and headers."""
    target = mount.target
    parts: list[Any]
    if isinstance(target, HttpTarget):
        parts = ["http", target.url, sorted(target.headers)]
    else:
        parts = ["stdio", target.argv, sorted(target.env), target.folder]
        if mount.package and mount.package.lock:
            parts.append(mount.package.lock.digest)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _get_path(state: Path, mount: Mount) -> Path:
    return state / FOLDER / f"{mount.slug}.json"


def _load_key(secrets: Path | None) -> bytes | None:
    return load_or_create_secret(secrets / KEY).encode() if secrets else None


def _seal(body: str, key: bytes) -> str:
    return hmac.new(key, body.encode(), "sha256").hexdigest()


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(LARGEST).decode()


def _parse(text: str, mount: Mount, key: bytes) -> Catalogue:
    seal, _, body = text.partition("\n")
    if not hmac.compare_digest(seal, _seal(body, key)):
        raise ValueError("another seal")
    kept = cast(Mapping[str, Any], json.loads(body))
    if kept["definition"] != describe_definition(mount):
        raise ValueError("another definition")
    return Catalogue(
        **{name: tuple(kept[name]) for name in LISTS},
        instructions=kept["instructions"],
        server=kept["server"],
        capabilities=kept["capabilities"],
        protocol=kept["protocol"],
        read_at=kept["read_at"],
    )
