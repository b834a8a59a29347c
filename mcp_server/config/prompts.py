"""Where are the prompts, what is filled in, and how are they put together?"""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcp_server.model.posture import AiMode, Posture, Stage
from mcp_server.policy.stages import STAGE_PROMPTS, is_reasoning_on

# What is put into the words? Exactly four variables, in one pass: what a value says is never read as a variable.

VARIABLES = ("project_root", "user_input", "tool_summary", "last_step_outcome")
HOLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def find_variables(text: str) -> tuple[str, ...]:
    """The variables a text asks for, each once, in the order in which they come."""
    return tuple(dict.fromkeys(HOLE.findall(text)))


def find_unknown_variables(text: str) -> tuple[str, ...]:
    return tuple(name for name in find_variables(text) if name not in VARIABLES)


def find_missing_variables(text: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """What the text asks for and nobody gave, or gave empty: a sentence with a hole in it misleads."""
    return tuple(name for name in find_variables(text) if not values.get(name, "").strip())


def fill_variables(text: str, values: Mapping[str, str]) -> str:
    """For a text whose variables are known and given."""
    return HOLE.sub(lambda hole: values[hole[1]], text)


# Where do the words lie, and what do they say? A key is looked for in each place in order, and the first one counts.
#
# The places are the folder's own words, where the person trusts that folder; the operator's; and the shipped ones.
# What is there and cannot be used is an error and not a reason to look further: whoever wrote it should hear of it.

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

    def render_prompt(self, key: str, values: Mapping[str, str] | None = None) -> str:
        """The words behind a key, with the values in their places."""
        given = values or {}
        text = self.get_prompt_text(key)
        if unknown := find_unknown_variables(text):
            known = ", ".join(VARIABLES)
            raise PromptError(
                f"the prompt `{key}` asks for `{{{{{unknown[0]}}}}}`, and there are only {known}. "
                f"{self._describe_search(key)}"
            )
        if missing := find_missing_variables(text, given):
            raise PromptError(
                f"the prompt `{key}` needs a value for {', '.join(f'`{name}`' for name in missing)}, and there is none."
                f" {self._describe_search(key)}"
            )
        return fill_variables(text, given)

    def get_prompt_text(self, key: str) -> str:
        """As it lies there, without the space around it."""
        if key not in self._read:
            self._read[key] = self._load_text(key)
        return self._read[key]

    def list_variables(self, key: str) -> tuple[str, ...]:
        return find_variables(self.get_prompt_text(key))

    def list_keys(self) -> tuple[str, ...]:
        """Every key that leads to words, in the order of the alphabet of keys."""
        found = {key for place in self.places for key in self._list_keys_in(place)}
        return tuple(sorted(found))

    def find_origin(self, key: str) -> PromptFolder:
        """The place whose words count."""
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
                f"the prompt `{key}` cannot be read: {path} is not a readable text of at most {LARGEST // 1024} KB."
                f" {self._describe_search(key)}"
            )
        return text

    def _describe_search(self, key: str) -> str:
        where = ", ".join(f"{place.folder} ({place.name})" for place in self.places)
        return f"Searched for `{key[:80]}.md` in: {where}."


def _check_key(key: str) -> None:
    if not KEY.fullmatch(key):
        raise PromptError(
            f"`{key[:80]}` is no key of a prompt; a key is written like `agent/delivery_gate`: small letters, digits,"
            " `_`, and `/` between them."
        )


def find_prompt_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file of words below a folder with its key; links are passed over, as they lead who knows where."""
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not (Path(above) / name).is_symlink())
        for name in sorted(names):
            path = Path(above) / name
            key = path.relative_to(folder).with_suffix("").as_posix()
            if path.suffix == ".md" and KEY.fullmatch(key) and not path.is_symlink():
                yield key, path


def read_prompt_file(path: Path) -> str | None:
    """The text of a plain file; None for what is none, or is too large. Never waits for a pipe's other end."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        data = file.read(LARGEST + 1)
    return data.decode("utf-8") if len(data) <= LARGEST else None


# Which words make up what a model is told, and in which order? The same posture and stage give the same bytes.

BASE = ("base/system", "base/project_root_context")
ADDITIONS = {AiMode.AGENT: "agent/mode_addition", AiMode.CHAT: "chat/mode_addition"}


def list_prompt_keys(posture: Posture, stage: Stage) -> tuple[str, ...]:
    """Base, project root, mode, stage, and reasoning where the person has it on."""
    prompts = STAGE_PROMPTS[stage]
    last = prompts.reasoning if is_reasoning_on(posture) else ()
    return (*BASE, ADDITIONS[posture.ai_mode], *prompts.text, *last)


def compose_prompts(words: Prompts, posture: Posture, stage: Stage, values: Mapping[str, str]) -> str:
    return "\n\n".join(words.render_prompt(key, values) for key in list_prompt_keys(posture, stage)) + "\n"
