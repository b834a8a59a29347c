"""Further people who may come in over HTTP, as the operator writes them into `menugate.yaml`."""

import hashlib
import secrets
from pathlib import Path


def hire(home: Path, **people: str) -> tuple[str, ...]:
    """Let them in, each with the profile they cannot go beyond; their tokens."""
    given = {name: secrets.token_urlsafe(24) for name in people}
    rows = [
        f"  - {{principal: {name}, sha256: {hashlib.sha256(given[name].encode()).hexdigest()}, max_profile: {profile}}}"
        for name, profile in people.items()
    ]
    folder = home / ".config" / "menugate"
    folder.mkdir(parents=True)
    (folder / "menugate.yaml").write_text("\n".join(["tokens:", *rows, ""]))
    return tuple(given.values())
