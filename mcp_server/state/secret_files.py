"""How is a secret written to its file, and what may be read from one?"""

import base64
import hashlib
import json
import os
import stat
from binascii import Error as BadBase64
from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Any, cast

from mcp_server.model.secrets import NAME, SecretEntry, SecretPlace, SecretUnavailable
from mcp_server.state.account import GROUP_AND_OTHERS

MAX_FILE_BYTES = 200_000
NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """One file."""

    entry: SecretEntry
    value: str = field(default="", repr=False)
    sealed: str = field(default="", repr=False)
    key: str = ""
    """Which key of the keyring opens it."""


def make_id(name: str, workspace: str) -> str:
    return hashlib.sha256(f"{name}\0{workspace}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


def get_id(entry: SecretEntry) -> str:
    return make_id(entry.name, entry.workspace)


def format_file(entry: SecretEntry, value: str, key: tuple[str, bytes] | None) -> str:
    fields: dict[str, Any] = {
        "name": entry.name,
        "workspace": entry.workspace,
        "origins": list(entry.origins),
        "created": entry.created,
        "changed": entry.changed,
    }
    if key is None:
        return json.dumps(fields | {"value": value}) + "\n"
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = token_bytes(NONCE_BYTES)
    sealed = AESGCM(key[1]).encrypt(nonce, value.encode(), _format_bound_text(entry))
    return json.dumps(fields | {"key": key[0], "sealed": base64.b64encode(nonce + sealed).decode()}) + "\n"


def unseal(stored: StoredSecret, key: bytes) -> str:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        data = base64.b64decode(stored.sealed, validate=True)
        return AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], _format_bound_text(stored.entry)).decode()
    except (InvalidTag, BadBase64, ValueError):
        name = stored.entry.name
        raise SecretUnavailable(
            f"the secret `{name}` was changed since you stored it. Set it again with `menugate secret set {name}`."
        ) from None


def _format_bound_text(entry: SecretEntry) -> bytes:
    """What the value is bound to: moved to another name, folder or web site, it does not open."""
    return json.dumps([entry.name, entry.workspace, *entry.origins]).encode()


def read_stored(folder: int, file: str) -> StoredSecret:
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a file")
        if status.st_uid != os.geteuid() or status.st_mode & GROUP_AND_OTHERS:
            raise ValueError("other accounts may use it")
        if status.st_size > MAX_FILE_BYTES:
            raise ValueError("it is too large")
        said: Any = json.loads(os.read(descriptor, MAX_FILE_BYTES))
    finally:
        os.close(descriptor)
    if not isinstance(said, dict):
        raise ValueError("it is not what menugate writes there")
    stored = _parse_file(cast(dict[str, Any], said))
    if f"{get_id(stored.entry)}.json" != file:
        raise ValueError("it belongs to another name")
    return stored


def _parse_file(said: Mapping[str, Any]) -> StoredSecret:
    name, workspace, origins = said.get("name"), said.get("workspace"), said.get("origins")
    created, changed = said.get("created"), said.get("changed")
    value, sealed, key = said.get("value", ""), said.get("sealed", ""), said.get("key", "")
    texts = [name, workspace, value, sealed, key, *(cast(list[Any], origins) if isinstance(origins, list) else [None])]
    if not all(isinstance(text, str) for text in texts) or not NAME.fullmatch(str(name)) or bool(value) == bool(sealed):
        raise ValueError("it is not what menugate writes there")
    if not isinstance(created, int) or not isinstance(changed, int):
        raise ValueError("it is not what menugate writes there")
    place = SecretPlace.KEYRING if sealed else SecretPlace.FILE
    entry = SecretEntry(str(name), str(workspace), tuple(cast(list[str], origins)), place, created, changed)
    return StoredSecret(entry, value, sealed, key)
