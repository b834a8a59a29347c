"""Which keys are stored, and does each file hold one?"""

import base64
import fcntl
import hmac
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.state.engine.chain import KEY, WRITTEN
from mcp_server.state.location import write_private_file

# Does each key's file hold a key? If not, say what is wrong and how to fix it.

KEPT = re.compile(rb"[A-Za-z0-9_-]{43}\n?")
"""The content of a wire key."""
SEALS, TOKENS, QUESTIONS = KEY, "http.key", "request-state.key"
FORMS: Mapping[str, re.Pattern[bytes]] = {SEALS: WRITTEN, TOKENS: KEPT, QUESTIONS: KEPT}
LOST = {
    SEALS: "what the old one sealed does not count as yours until you choose a posture at a terminal",
    TOKENS: "clients over HTTP need the new token, which `menugate serve --http` prints",
    QUESTIONS: "nothing else changes",
}


def describe_unfit_keys(folder: Path | None) -> Iterator[str]:
    """Only existing files are checked; a missing one is created when needed."""
    if folder is None:
        return
    for name, form in FORMS.items():
        path, fault = folder / name, ""
        try:
            if not form.fullmatch(path.read_bytes()):
                fault = "does not contain a key; it is empty, cut short, or something else"
        except FileNotFoundError:
            continue
        except IsADirectoryError:
            fault = "is a folder, and menugate keeps a key in a file with that name"
        except OSError as wrong:
            fault = f"cannot be read ({wrong.strerror})"
        if fault:
            yield (
                f"{path} {fault}. Restore it from a backup, or move it away with `mv {path} {path}.old`: menugate "
                f"makes a new one, and {LOST[name]}."
            )


# Which secrets does the wire need? Files that only their owner can read, created when first needed.


def load_or_create_secret(path: Path | None, anew: bool = False) -> str:
    """Return the secret at this path: 32 random bytes, encoded to fit in a header. If nothing can be stored, return one
    for this process alone. `anew`: replace a file that holds no key; nothing lasting depends on it."""
    if path is None:
        return secrets.token_urlsafe(32)
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        found = _create_key(path)
    except IsADirectoryError:
        what = f"`{path}` is a folder, and menugate keeps a key in a file with that name."
        raise Refusal(Problem(Code.STORE_UNAVAILABLE, what, f"Move it away: `mv {path} {path}.old`.")) from None
    if anew and not KEPT.fullmatch(found):
        found = _replace_key(path)
    if not KEPT.fullmatch(found):
        raise Refusal(
            Problem(
                Code.STORE_UNAVAILABLE, f"`{path}` does not contain a key.", "Delete it; menugate then makes a new one."
            )
        )
    path.chmod(0o600)
    return found.decode().strip()


def _replace_key(path: Path) -> bytes:
    """If two processes replace it at once, one is first, and both use its key."""
    place = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        if not path.exists() or not KEPT.fullmatch(path.read_bytes()):
            path.unlink(missing_ok=True)
            return _create_key(path)
        return path.read_bytes()
    finally:
        os.close(place)


def write_bearer_token(secrets_folder: Path | None, workspace: Path, shown: Path) -> str:
    """Write a workspace's bearer token to the file that you are shown.

    It is derived from a key outside the workspace; a token file shipped with the folder would be known to its sender.
    """
    key = load_or_create_secret(secrets_folder and secrets_folder / "http.key").encode()
    found = base64.urlsafe_b64encode(hmac.digest(key, os.fsencode(workspace), "sha256")).decode().rstrip("=")
    write_private_file(shown, f"{found}\n")
    return found


def _create_key(path: Path) -> bytes:
    """If two processes start together, one is first, and both use its complete key."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_urlsafe(32).encode() + b"\n")
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_bytes()
