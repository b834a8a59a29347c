"""Where are the prompts, which variables do they have, and how are they composed?"""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from mcp_server.model.posture import AiMode, Posture, Stage
from mcp_server.model.text import format_list
from mcp_server.policy.stages import STAGE_PROMPTS, is_reasoning_on

# Exactly four variables are filled in, in one pass: a variable inside a value stays as it is.

VARIABLES = ("project_root", "user_input", "tool_summary", "last_step_outcome")
HOLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def find_variables(text: str) -> tuple[str, ...]:
    """Find the variables in a text, each once, in order."""
    return tuple(dict.fromkeys(HOLE.findall(text)))


def find_unknown_variables(text: str) -> tuple[str, ...]:
    return tuple(name for name in find_variables(text) if name not in VARIABLES)


def find_missing_variables(text: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """Find the variables without a value. Empty counts as missing: a sentence with a hole in it misleads."""
    return tuple(name for name in find_variables(text) if not values.get(name, "").strip())


def fill_variables(text: str, values: Mapping[str, str]) -> str:
    """Fill in the variables, all of which must have a value."""
    return HOLE.sub(lambda hole: values[hole[1]], text)


# A key is looked up in each folder in order, and the first match wins: the workspace's own prompts, if the user
# trusts them; the operator's; and the shipped ones. A prompt that exists but cannot be used is an error, not a reason
# to look further: its author should hear of it.

KEY = re.compile(r"[a-z0-9_]{1,40}(?:/[a-z0-9_]{1,40}){0,3}")
LARGEST = 32 * 1024


class PromptError(Exception):
    """A prompt cannot be used; the message says why and which folders were searched."""


class PromptFolder(Struct, frozen=True):
    name: str
    """For messages."""
    folder: Path
    texts: Mapping[str, str] | None = None
    """The prompts that the user trusted, as they were read then; None if files are read when needed."""


@dataclass(frozen=True)
class Prompts:
    places: Sequence[PromptFolder]
    _read: dict[str, str] = field(default_factory=dict[str, str], init=False, repr=False, compare=False)
    _keys: dict[Path, frozenset[str]] = field(
        default_factory=dict[Path, frozenset[str]], init=False, repr=False, compare=False
    )

    def render_prompt(self, key: str, values: Mapping[str, str] | None = None) -> str:
        """Return the text of a prompt with the values filled in."""
        values = values or {}
        text = self.get_prompt_text(key)
        if unknown := find_unknown_variables(text):
            raise PromptError(
                f"the prompt `{key}` uses `{{{{{unknown[0]}}}}}`; the variables are {', '.join(VARIABLES)}. "
                f"{self._describe_search(key)}"
            )
        if missing := find_missing_variables(text, values):
            raise PromptError(
                f"the prompt `{key}` needs a value for {format_list(missing, 'and')}. {self._describe_search(key)}"
            )
        return fill_variables(text, values)

    def get_prompt_text(self, key: str) -> str:
        """Return the text of a prompt as it is in its file, stripped."""
        if key not in self._read:
            self._read[key] = self._load_text(key)
        return self._read[key]

    def list_keys(self) -> tuple[str, ...]:
        return tuple(sorted({key for place in self.places for key in self._list_keys_in(place)}))

    def find_origin(self, key: str) -> PromptFolder:
        """Find the folder whose prompt is used."""
        _check_key(key)
        for place in self.places:
            if key in self._list_keys_in(place):
                return place
        raise PromptError(f"there is no prompt `{key[:80]}`. {self._describe_search(key)}")

    def _list_keys_in(self, place: PromptFolder) -> frozenset[str]:
        if place.texts is not None:
            return frozenset(place.texts)
        if place.folder not in self._keys:
            self._keys[place.folder] = frozenset(key for key, _ in find_prompt_files(place.folder))
        return self._keys[place.folder]

    def _load_text(self, key: str) -> str:
        place = self.find_origin(key)
        text = place.texts[key] if place.texts is not None else self._read_file(place.folder / f"{key}.md", key)
        if not text.strip():
            raise PromptError(f"the prompt `{key}` is empty in {place.folder}. {self._describe_search(key)}")
        return text.strip()

    def _read_file(self, path: Path, key: str) -> str:
        try:
            text = read_prompt_file(path)
        except (OSError, UnicodeDecodeError):
            text = None
        if text is None:
            raise PromptError(
                f"the prompt `{key}` cannot be read: {path} is not a readable text file of at most"
                f" {LARGEST // 1024} KB. {self._describe_search(key)}"
            )
        return text

    def _describe_search(self, key: str) -> str:
        where = ", ".join(f"{place.folder} ({place.name})" for place in self.places)
        return f"Searched for `{key[:80]}.md` in: {where}."


def _check_key(key: str) -> None:
    if not KEY.fullmatch(key):
        raise PromptError(
            f"`{key[:80]}` is not the key of a prompt; a key looks like `agent/delivery_gate`: lower-case letters,"
            " digits and `_`, with `/` between them."
        )


def find_prompt_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield every prompt file below a folder with its key. Links are skipped, because they may lead anywhere."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not (Path(parent) / name).is_symlink())
        for name in sorted(names):
            path = Path(parent) / name
            key = path.relative_to(folder).with_suffix("").as_posix()
            if path.suffix == ".md" and KEY.fullmatch(key) and not path.is_symlink():
                yield key, path


def read_prompt_file(path: Path) -> str | None:
    """Read a regular file; None if it is not one or is too large. Never blocks on a pipe."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        data = file.read(LARGEST + 1)
    return data.decode("utf-8") if len(data) <= LARGEST else None


# Which prompts make up a model's instructions, and in which order? The same posture and stage give the same bytes.

BASE = ("base/system", "base/project_root_context")
ADDITIONS = {AiMode.AGENT: "agent/mode_addition", AiMode.CHAT: "chat/mode_addition"}


def list_prompt_keys(posture: Posture, stage: Stage) -> tuple[str, ...]:
    """Base, project root, mode, stage, and reasoning if the user turned it on."""
    prompts = STAGE_PROMPTS[stage]
    last = prompts.reasoning if is_reasoning_on(posture) else ()
    return (*BASE, ADDITIONS[posture.ai_mode], *prompts.text, *last)


def compose_prompts(words: Prompts, posture: Posture, stage: Stage, values: Mapping[str, str]) -> str:
    return "\n\n".join(words.render_prompt(key, values) for key in list_prompt_keys(posture, stage)) + "\n"
