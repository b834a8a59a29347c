"""Where do the words lie, and what do they say? A key is looked for in each place in order, and the first one counts.

The places are the folder's own words, where the person trusts that folder; the operator's; and the shipped ones. What
is there and cannot be used is an error and not a reason to look further: whoever wrote it should hear of it.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcp_server.config.filling import VARIABLES, filled, missing_in, names_in, unknown_in

KEY = re.compile(r"[a-z0-9_]{1,40}(?:/[a-z0-9_]{1,40}){0,3}")
LARGEST = 32 * 1024


class PromptError(Exception):
    """The words cannot be said; the message tells what is wrong and names the places that were searched."""


@dataclass(frozen=True, slots=True)
class PromptFolder:
    """One folder of words, as a person would name it."""

    name: str
    folder: Path
    texts: Mapping[str, str] | None = None
    """What was read of it when it was found to be trusted; None where it is read when it is needed."""


@dataclass(frozen=True)
class Prompts:
    places: Sequence[PromptFolder]
    _read: dict[str, str] = field(default_factory=dict[str, str], init=False, repr=False, compare=False)
    _keys: dict[Path, frozenset[str]] = field(
        default_factory=dict[Path, frozenset[str]], init=False, repr=False, compare=False
    )

    def say(self, key: str, values: Mapping[str, str] | None = None) -> str:
        """The words behind a key, with the values in their places."""
        given = values or {}
        text = self.text(key)
        if unknown := unknown_in(text):
            known = ", ".join(VARIABLES)
            raise PromptError(
                f"the prompt `{key}` asks for `{{{{{unknown[0]}}}}}`, and there are only {known}. {self._searched(key)}"
            )
        if missing := missing_in(text, given):
            raise PromptError(
                f"the prompt `{key}` needs a value for {', '.join(f'`{name}`' for name in missing)}, and there is none."
                f" {self._searched(key)}"
            )
        return filled(text, given)

    def text(self, key: str) -> str:
        """As it lies there, without the space around it."""
        if key not in self._read:
            self._read[key] = self._found(key)
        return self._read[key]

    def asks_for(self, key: str) -> tuple[str, ...]:
        return names_in(self.text(key))

    def known(self) -> tuple[str, ...]:
        """Every key that leads to words, in the order of the alphabet of keys."""
        found = {key for place in self.places for key in self._in(place)}
        return tuple(sorted(found))

    def origin(self, key: str) -> PromptFolder:
        """The place whose words count."""
        _check(key)
        for place in self.places:
            if key in self._in(place):
                return place
        raise PromptError(f"there is no prompt `{key[:80]}`. {self._searched(key)}")

    def _in(self, place: PromptFolder) -> frozenset[str]:
        if place.texts is not None:
            return frozenset(place.texts)
        if place.folder not in self._keys:
            self._keys[place.folder] = frozenset(key for key, _ in files_in(place.folder))
        return self._keys[place.folder]

    def _found(self, key: str) -> str:
        place = self.origin(key)
        text = place.texts[key] if place.texts is not None else self._file(place.folder / f"{key}.md", key)
        if not text.strip():
            raise PromptError(f"the prompt `{key}` is empty in {place.folder}. {self._searched(key)}")
        return text.strip()

    def _file(self, path: Path, key: str) -> str:
        try:
            text = contents(path)
        except (OSError, UnicodeDecodeError):
            text = None
        if text is None:
            raise PromptError(
                f"the prompt `{key}` cannot be read: {path} is not a readable text of at most {LARGEST // 1024} KB."
                f" {self._searched(key)}"
            )
        return text

    def _searched(self, key: str) -> str:
        where = ", ".join(f"{place.folder} ({place.name})" for place in self.places)
        return f"Searched for `{key[:80]}.md` in: {where}."


def _check(key: str) -> None:
    if not KEY.fullmatch(key):
        raise PromptError(
            f"`{key[:80]}` is no key of a prompt; a key is written like `agent/delivery_gate`: small letters, digits,"
            " `_`, and `/` between them."
        )


def files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file of words below a folder with its key; links are passed over, as they lead who knows where."""
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not (Path(above) / name).is_symlink())
        for name in sorted(names):
            path = Path(above) / name
            key = path.relative_to(folder).with_suffix("").as_posix()
            if path.suffix == ".md" and KEY.fullmatch(key) and not path.is_symlink():
                yield key, path


def contents(path: Path) -> str | None:
    """The text of a plain file; None for what is none, or is too large. Never waits for a pipe's other end."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        data = file.read(LARGEST + 1)
    return data.decode("utf-8") if len(data) <= LARGEST else None
