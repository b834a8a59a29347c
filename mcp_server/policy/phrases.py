"""Which posture change did the person type? The words of a command, parsed into values of axes and a scope.

The terminal and the slash commands share this syntax: `repair --autonomous --permission-profile normal`, or a bare
value if only one axis has it. Nothing is guessed: an unknown word is an error that lists the known ones.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from mcp_server.model.posture import (
    AXES,
    ChangeScope,
    Posture,
    PostureChoice,
    Value,
    find_axis_value,
    format_value,
    list_axis_words,
)
from mcp_server.model.text import find_nearest_name, quote_text

NAMES: Mapping[str, tuple[str, ...]] = {
    "work_mode": ("mode", "work-mode"),
    "run_control": ("control", "run-control"),
    "profile": ("permission-profile", "profile"),
    "model_mode": ("model-mode", "model"),
    "ai_mode": ("ai-mode", "ai"),
    "reasoning": ("reasoning",),
}
"""The names of each axis for the person; messages show the first."""
BY_NAME = {name: axis for axis, names in NAMES.items() for name in names}
TYPED = dict(zip(NAMES, ("mode", "control", "profile", "model", "ai-mode", "reasoning"), strict=True))
"""The command that sets each axis."""
AUTONOMOUS = "--autonomous"


class Phrase(Struct, frozen=True):
    axes: Mapping[str, Value]
    scope: ChangeScope


class Unclear(ValueError):
    """The words have no single meaning; the message says which word is wrong and lists the known ones."""


def parse_phrase(words: Sequence[str], axis: str | None = None) -> Phrase:
    """Parse the words; if `axis` is given, the first word is a value of it."""
    axes: dict[str, Value] = {}
    scope: ChangeScope | None = None
    rest = list(words)
    if axis is not None and rest:
        axes[axis] = parse_axis_value(axis, rest.pop(0))
    while rest:
        word = rest.pop(0)
        if word == AUTONOMOUS:
            part: tuple[str, Value] | ChangeScope = ("run_control", parse_axis_value("run_control", "autonomous"))
        elif word.startswith("--"):
            part = parse_flag(word, rest)
        else:
            part = parse_bare_value(word)
        if isinstance(part, ChangeScope):
            refuse_twice(scope, part)
            scope = part
        else:
            refuse_twice(axes.get(part[0]), part[1])
            axes[part[0]] = part[1]
    return Phrase(axes, scope or ChangeScope.NOW)


class Narrowed(Struct, frozen=True):
    """Less is allowed than usual, although nobody chose that."""

    says: str
    commands: tuple[str, ...]
    """The commands that restore the usual values."""


def find_narrowed_posture(choice: PostureChoice | None, usual: Posture, lost: str) -> Narrowed | None:
    """Find the axes that are narrowed until the person chooses again, because a state was lost or is not ours."""
    axes = choice.find_narrowed_axes(usual) if choice else []
    if not axes:
        return None
    names = ", ".join(axis.replace("_", " ") for axis in axes)
    why = "an earlier state was lost" if lost else "an earlier state is not sealed with this account's key"
    says = f"Because {why}, the posture is narrowed until you choose again: {names}."
    return Narrowed(says, tuple(f"menugate {TYPED[axis]} {format_value(getattr(usual, axis))}" for axis in axes))


def find_axis(name: str) -> str:
    axis = BY_NAME.get(name.removeprefix("--"))
    if axis is None:
        raise Unclear(describe_unknown_word(name, [names[0] for names in NAMES.values()], "an axis"))
    return axis


def parse_axis_value(axis: str, word: str) -> Value:
    value = find_axis_value(axis, word)
    if value is None:
        raise Unclear(describe_unknown_word(word, list_axis_values(axis), f"a value of {NAMES[axis][0]}"))
    return value


def list_axis_values(axis: str) -> list[str]:
    return [str(word) for word in list_axis_words(AXES[axis])]


def parse_flag(flag: str, rest: list[str]) -> tuple[str, Value] | ChangeScope:
    name, equals, word = flag.partition("=")
    if name != "--scope":
        find_axis(name)
    if not equals:
        if not rest:
            raise Unclear(f"{quote_text(name)} needs a value.")
        word = rest.pop(0)
    if name == "--scope":
        return parse_scope(word)
    axis = find_axis(name)
    return axis, parse_axis_value(axis, word)


def parse_scope(word: str) -> ChangeScope:
    if word not in list(ChangeScope):
        raise Unclear(describe_unknown_word(word, list(ChangeScope), "a scope"))
    return ChangeScope(word)


def parse_bare_value(word: str) -> tuple[str, Value] | ChangeScope:
    """Parse a value without a flag, which only one axis may have."""
    if word in list(ChangeScope):
        return ChangeScope(word)
    fitting = [(axis, value) for axis in AXES if (value := find_axis_value(axis, word)) is not None]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        flags = " or ".join(f"`--{NAMES[axis][0]} {word}`" for axis, _ in fitting)
        raise Unclear(f"{quote_text(word)} may mean {flags}; say which.")
    known = [*map(str, ChangeScope), *(value for axis in AXES for value in list_axis_values(axis))]
    raise Unclear(describe_unknown_word(word, known, "a value or a scope"))


def refuse_twice(before: StrEnum | bool | None, now: StrEnum | bool) -> None:
    if before is not None and before != now:
        raise Unclear(
            f"{quote_text(format_value(before))} and {quote_text(format_value(now))} contradict each other; give one."
        )


def describe_unknown_word(word: str, known: Sequence[str], what: str) -> str:
    near = find_nearest_name(word, known)
    hint = f" Did you mean {quote_text(near)}?" if near else ""
    few = list(dict.fromkeys(map(str, known)))
    return f"{quote_text(word)} is not {what}: {', '.join(few)}.{hint}"
