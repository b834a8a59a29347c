"""Does each key's file hold a key? What is wrong with one, and what mends it, in words for the person."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mcp_server.state.engine.chain import KEY, WRITTEN

KEPT = re.compile(rb"[A-Za-z0-9_-]{43}\n?")
"""What the wire's keys hold."""
SEALS, TOKENS, QUESTIONS = KEY, "http.key", "request-state.key"
FORMS: Mapping[str, re.Pattern[bytes]] = {SEALS: WRITTEN, TOKENS: KEPT, QUESTIONS: KEPT}
LOST = {
    SEALS: "what was sealed with the old one counts as not yours, until you choose a posture at a terminal",
    TOKENS: "clients over HTTP need the new token, which `menugate serve --http` prints",
    QUESTIONS: "nothing else changes",
}


def unfit_keys(folder: Path | None) -> Iterator[str]:
    """Of those that are there; what is missing is made when it is needed."""
    for name, form in FORMS.items() if folder else ():
        assert folder is not None
        path, fault = folder / name, ""
        try:
            fault = (
                "" if form.fullmatch(path.read_bytes()) else "does not hold a key; it is empty, cut or something else"
            )
        except FileNotFoundError:
            continue
        except IsADirectoryError:
            fault = "is a folder, and a key is kept in a file of that name"
        except OSError as wrong:
            fault = f"cannot be read ({wrong.strerror})"
        if fault:
            yield (
                f"{path} {fault}. Put it back from a backup, or move it away with `mv {path} {path}.old`: menugate "
                f"makes a new one, and {LOST[name]}."
            )
