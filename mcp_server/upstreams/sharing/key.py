"""Is it the very same server, and does our own account ask for it? Digests and proofs with a key of this account.

Only this account can read the key, and it never leaves its file: a process shows that it can read it by answering a
challenge. The digest of a definition is made with it, too, so that nobody can try out guesses of a password on it.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcp_server.state.keys import load_or_create_secret

FILE = "instances.key"
DIGEST_CHARS = 32
MIN_NONCE_CHARS = 32


def make_nonce() -> str:
    return secrets.token_hex(32)


@dataclass(frozen=True, slots=True)
class ShareKey:
    secret: bytes = field(repr=False)

    @classmethod
    def load(cls, keys: Path) -> "ShareKey":
        """Load it, and create it first if there is none. Raises `OSError` or `Refusal`."""
        return cls(load_or_create_secret(keys / FILE, anew=True).encode())

    def digest_definition(self, parts: Sequence[object]) -> str:
        """Name what is started in a way that tells nothing about it."""
        return self._digest("definition", json.dumps(parts, sort_keys=True))[:DIGEST_CHARS]

    def prove(self, role: str, digest: str, own_nonce: str, other_nonce: str) -> str:
        """Answer the other side's challenge. A proof is good for one role, one connection and one definition."""
        return self._digest(f"{role} of {digest}", f"{own_nonce} {other_nonce}")

    def is_proven(self, proof: str, role: str, digest: str, other_nonce: str, own_nonce: str) -> bool:
        long_enough = len(other_nonce) >= MIN_NONCE_CHARS and other_nonce != own_nonce
        expected = self.prove(role, digest, other_nonce, own_nonce)
        return long_enough and hmac.compare_digest(proof.encode(), expected.encode())

    def _digest(self, purpose: str, text: str) -> str:
        return hmac.new(self.secret, f"{purpose}\n{text}".encode(), hashlib.sha256).hexdigest()
