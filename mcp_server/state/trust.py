"""Which folders' own files do you trust, with the content they had when you trusted them?

Trust applies to content: its digest is stored, so trust ends by itself when a byte changes. Each folder has one small
file beside your keys; a file that your key did not seal counts as missing.
"""

import json
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from mcp_server.model.results import Refusal
from mcp_server.state.account import NO_KEY_FOLDER
from mcp_server.state.engine.chain import LedgerKey, format_canonical_json
from mcp_server.state.location import get_path_beside_keys, write_private_file


class Trusted(Struct, frozen=True):
    secrets: Path | None
    """The folder for keys; without one, nothing is trusted."""

    def is_trusted(self, folder: Path, digest: str) -> bool:
        """Was trust given to exactly this content of this folder?"""
        return self.find_trusted_digest(folder) == digest

    def find_trusted_digest(self, folder: Path) -> str | None:
        """Return the digest that was trusted; None if none was, or if someone else wrote it."""
        if self.secrets is None:
            return None
        try:
            found: Any = json.loads(_get_trust_path(self.secrets, folder).read_text("utf-8"))
            key = LedgerKey.load(self.secrets)
        except (OSError, ValueError, RecursionError):
            return None
        if key is None or not isinstance(found, dict):
            return None
        fields = cast(dict[str, Any], found)
        digest, mac = fields.get("sha256"), fields.get("mac")
        if not isinstance(digest, str) or not isinstance(mac, str):
            return None
        return digest if key.has_sealed(_format_seal_text(folder, digest), mac) else None

    def give_trust(self, folder: Path, digest: str) -> None:
        if self.secrets is None:
            raise Refusal(NO_KEY_FOLDER)
        mac = LedgerKey.load_or_create(self.secrets).compute_mac(_format_seal_text(folder, digest))
        path = _get_trust_path(self.secrets, folder)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = format_canonical_json({"folder": str(folder), "sha256": digest, "mac": mac})
        write_private_file(path, f"{text}\n", durable=True)

    def withdraw_trust(self, folder: Path) -> bool:
        """Withdraw trust; False if there was none."""
        given = self.find_trusted_digest(folder) is not None
        if self.secrets is not None:
            _get_trust_path(self.secrets, folder).unlink(missing_ok=True)
        return given

    def get_path(self, folder: Path) -> Path | None:
        """Where the trust of this folder is stored."""
        return None if self.secrets is None else _get_trust_path(self.secrets, folder)


def _get_trust_path(secrets: Path, folder: Path) -> Path:
    return get_path_beside_keys(secrets, "trusted", folder).with_suffix(".json")


def _format_seal_text(folder: Path, digest: str) -> str:
    return format_canonical_json({"trusted": str(folder), "sha256": digest})
