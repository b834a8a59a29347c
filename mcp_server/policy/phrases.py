"""What did the person type? Words of a command, taken as axes with their values and a scope.

The terminal and the slash commands take the same words: `repair --autonomous --permission-profile normal`, or a value
by itself where no other axis has it. Nothing is guessed: what is not understood is said, with what there is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mcp_server.model.posture import AXES, ChangeScope, Posture, PostureChoice, Value, value_of, word_of, words_of
from mcp_server.model.text import nearest, quoted

NAMES: Mapping[str, tuple[str, ...]] = {
    "work_mode": ("mode", "work-mode"),
    "run_control": ("control", "run-control"),
    "profile": ("permission-profile", "profile"),
    "model_mode": ("model-mode", "model"),
    "ai_mode": ("ai-mode", "ai"),
    "reasoning": ("reasoning",),
}
"""What the person calls each axis, the name that is shown first."""
BY_NAME = {name: axis for axis, names in NAMES.items() for name in names}
TYPED = dict(zip(NAMES, ("mode", "control", "profile", "model", "ai-mode", "reasoning"), strict=True))
"""The command that chooses a value of it."""
AUTONOMOUS = "--autonomous"


@dataclass(frozen=True, slots=True)
class Phrase:
    axes: Mapping[str, Value]
    scope: ChangeScope


class Unclear(ValueError):
    """The words do not say one thing; the message says what was not understood and what there is."""


def phrase(words: Sequence[str], axis: str | None = None) -> Phrase:
    """`axis` is the one that the first word is a value of."""
    axes: dict[str, Value] = {}
    scope: ChangeScope | None = None
    rest = list(words)
    if axis is not None and rest:
        axes[axis] = valued(axis, rest.pop(0))
    while rest:
        word = rest.pop(0)
        if word == AUTONOMOUS:
            found: tuple[str, Value] | ChangeScope = ("run_control", valued("run_control", "autonomous"))
        elif word.startswith("--"):
            found = flagged(word, rest)
        else:
            found = alone(word)
        if isinstance(found, ChangeScope):
            refuse_twice(scope, found)
            scope = found
        else:
            refuse_twice(axes.get(found[0]), found[1])
            axes[found[0]] = found[1]
    return Phrase(axes, scope or ChangeScope.NOW)


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Less is allowed than usual, and nobody chose that."""

    says: str
    commands: tuple[str, ...]
    """What is typed, line by line, for what would hold otherwise."""


def to_choose(choice: PostureChoice | None, usual: Posture, lost: str) -> Narrowed | None:
    """Which axes a state that was lost, or is not this account's, holds down until they are chosen again."""
    axes = choice.narrowed(usual) if choice else []
    if not axes:
        return None
    names = ", ".join(axis.replace("_", " ") for axis in axes)
    why = "an earlier state was lost" if lost else "an earlier state is not sealed with this account's key"
    says = f"Because {why}, the posture is narrowed until you choose again: {names}."
    return Narrowed(says, tuple(f"menugate {TYPED[axis]} {word_of(getattr(usual, axis))}" for axis in axes))


def axis_named(name: str) -> str:
    axis = BY_NAME.get(name.removeprefix("--"))
    if axis is None:
        raise Unclear(not_one_of(name, [names[0] for names in NAMES.values()], "an axis"))
    return axis


def valued(axis: str, word: str) -> Value:
    value = value_of(axis, word)
    if value is None:
        raise Unclear(not_one_of(word, values(axis), NAMES[axis][0]))
    return value


def values(axis: str) -> list[str]:
    return [str(word) for word in words_of(AXES[axis])]


def flagged(flag: str, rest: list[str]) -> tuple[str, Value] | ChangeScope:
    name, equals, word = flag.partition("=")
    if name != "--scope":
        axis_named(name)
    if not equals:
        if not rest:
            raise Unclear(f"{quoted(name)} needs a value.")
        word = rest.pop(0)
    if name == "--scope":
        return scoped(word)
    axis = axis_named(name)
    return axis, valued(axis, word)


def scoped(word: str) -> ChangeScope:
    if word not in list(ChangeScope):
        raise Unclear(not_one_of(word, list(ChangeScope), "scope"))
    return ChangeScope(word)


def alone(word: str) -> tuple[str, Value] | ChangeScope:
    """A value by itself, where it can be of one axis alone."""
    if word in list(ChangeScope):
        return ChangeScope(word)
    fitting = [(axis, value) for axis in AXES if (value := value_of(axis, word)) is not None]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        flags = " or ".join(f"`--{NAMES[axis][0]} {word}`" for axis, _ in fitting)
        raise Unclear(f"{quoted(word)} may mean {flags}; write which.")
    known = [str(one) for one in ChangeScope] + [one for axis in AXES for one in values(axis)]
    raise Unclear(not_one_of(word, known, "a value or a scope"))


def refuse_twice(before: StrEnum | bool | None, now: StrEnum | bool) -> None:
    if before is not None and before != now:
        raise Unclear(f"{quoted(word_of(before))} and {quoted(word_of(now))} cannot both hold; name one.")


def not_one_of(word: str, known: Sequence[str], what: str) -> str:
    near = nearest(word, known)
    hint = f" Did you mean {quoted(near)}?" if near else ""
    few = list(dict.fromkeys(map(str, known)))
    return f"{quoted(word)} is not {what}: {', '.join(few)}.{hint}"
