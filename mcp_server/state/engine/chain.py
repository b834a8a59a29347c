"""How does the ledger show tampering? By one chain of hashes, an anchor beside the file, and signed checkpoints.

A row's hash is SHA-256 over three lines: the previous hash, the row's number, its canonical JSON. The chain alone shows
an edit, a deletion or a swap; it does not show a tail cut off or a chain computed again. Two things do:

- the **anchor** (`ledger.anchor`) names the newest row after every commit, under a MAC whose key lies outside the
  workspace. It is a MAC, not a signature, because the one process that also checks it writes it some thousand times a
  second, and it needs no library at start. It is one write of one sector in place, after the commit and before any
  caller is answered: a process killed between the two leaves rows that are committed, not yet anchored and not
  acknowledged. Until the next process has anchored them, they could be cut or exchanged without a trace, and rows could
  be appended after the last; that process's start row says how many rows without an anchor it found (`unanchored`);
- **checkpoints**, every thousand rows, every minute and at the end, are Ed25519 signatures over the newest row, each
  including the previous one; anyone with the public key can check them elsewhere.

An attacker who can restore an older copy of both the state file and the anchor can roll the ledger back to that day:
only a checkpoint exported elsewhere shows that. An attacker who can read the key can forge all of it.
"""

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcp_server.model.results import Code, Problem, Refusal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

GENESIS = "0" * 64
LONGEST_BODY = 8192
LONGEST_TEXT = 500
SLOT = 512
WRITTEN = re.compile(rb"[0-9a-f]{64}\n?")
"""The content of `ledger.key`."""
KEY = "ledger.key"
ANCHOR = "ledger.anchor"
"""The name of the anchor file, beside the state file."""

# ASCII, so that a lone surrogate from a hostile caller makes a row like any other.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def format_canonical_json(fields: Mapping[str, Any]) -> str:
    """The canonical text of these fields. Fields that are None are left out; overlong strings are truncated."""
    body = _encode({key: value for key, value in fields.items() if value is not None})
    return body if len(body) <= LONGEST_BODY else _encode({key: _clip(value) for key, value in fields.items()})


def _clip(value: Any) -> Any:
    return value[:LONGEST_TEXT] + "…" if isinstance(value, str) and len(value) > LONGEST_TEXT else value


def compute_row_hash(previous: str, seq: int, body: str) -> str:
    return hashlib.sha256(f"{previous}\n{seq}\n{body}".encode()).hexdigest()


class LedgerKey:
    """The secret behind anchors and checkpoints: 32 bytes in `ledger.key`, readable by its owner alone.

    If no folder can keep one (the folder is None), this process gets a key of its own and forgets it at the end.
    """

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._mac = hmac.digest(seed, b"menugate anchor", "sha256")

    @classmethod
    def load(cls, folder: Path | None) -> "LedgerKey | None":
        """None if there is no key, or if the file holds something else: an empty key must never seal anything."""
        if folder is None:
            return _get_process_key()
        try:
            found = (folder / "ledger.key").read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            return None
        return cls(bytes.fromhex(found.decode())) if WRITTEN.fullmatch(found) else None

    @classmethod
    def load_or_create(cls, folder: Path | None) -> "LedgerKey":
        if found := cls.load(folder):
            return found
        assert folder is not None, "the key of a process is always there"
        if (folder / KEY).is_dir():
            place = folder / KEY
            what = f"`{place}` is a folder, and menugate keeps this account's key in a file with that name."
            raise Refusal(Problem(Code.STORE_UNAVAILABLE, what, f"Move it away: `mv {place} {place}.old`."))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = folder / f".ledger.key-{secrets.token_hex(8)}"
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.write(file, secrets.token_bytes(32).hex().encode() + b"\n")
            os.fsync(file)
            # If two processes start together, one is first, and both use its key.
            fcntl.flock(place, fcntl.LOCK_EX)
            if cls.load(folder) is None:
                draft.replace(folder / "ledger.key")
        finally:
            os.close(place)
            os.close(file)
            draft.unlink(missing_ok=True)
        return cls.load_or_create(folder)

    @property
    def account(self) -> str:
        """A name for the holder of this key, which nobody else can predict."""
        return self.compute_mac("account")[:16]

    def compute_mac(self, text: str) -> str:
        return hmac.digest(self._mac, text.encode(), "sha256").hex()

    def has_sealed(self, text: str, mac: str) -> bool:
        return hmac.compare_digest(self.compute_mac(text).encode(), mac.encode("utf-8", "replace"))

    @cached_property
    def _signer(self) -> "Ed25519PrivateKey":
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self._seed)

    @cached_property
    def public_key(self) -> str:
        return self._signer.public_key().public_bytes_raw().hex()

    def sign(self, text: str) -> str:
        return self._signer.sign(text.encode()).hex()


@cache
def _get_process_key() -> LedgerKey:
    return LedgerKey(secrets.token_bytes(32))


def is_valid_signature(text: str, signature: str, public: str) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), text.encode())
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


class Anchor(Struct, frozen=True):
    """The newest row after some commit, and how many checkpoints there were."""

    seq: int
    hash: str
    at: int
    checkpoints: int

    def format_line(self, key: LedgerKey) -> bytes:
        # Every part is a number or hex, so the canonical text can be written directly.
        text = f'{{"at":{self.at},"checkpoints":{self.checkpoints},"hash":"{self.hash}","seq":{self.seq}}}'
        return f'{text[:-1]},"mac":"{key.compute_mac(text)}"}}'.encode().ljust(SLOT - 1) + b"\n"

    @classmethod
    def parse_line(cls, line: bytes, key: LedgerKey) -> "Anchor | None":
        """None if the line was not written with this key."""
        try:
            fields = json.loads(line)
            mac = fields.pop("mac")
            anchor = cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return anchor if isinstance(mac, str) and key.has_sealed(_encode(fields), mac) else None


class AnchorFile:
    """The file itself, held open: one line, always written in place."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def write(self, anchor: Anchor, key: LedgerKey) -> None:
        os.pwrite(self._file, anchor.format_line(key), 0)

    def read(self) -> bytes:
        return os.pread(self._file, SLOT, 0)

    def close(self) -> None:
        os.close(self._file)


class Checkpoint(Struct, frozen=True):
    number: int
    seq: int
    hash: str
    at: int
    key: str = ""
    signature: str = ""

    def format_statement(self, previous: "Checkpoint | None") -> str:
        """The text that is signed: this head and, through the previous signature, every head before it."""
        before = previous.signature if previous else ""
        return _encode({"at": self.at, "before": before, "hash": self.hash, "number": self.number, "seq": self.seq})
