"""What is a tool? One frozen value: what it is called, what it takes, what it does to the world, and how it runs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import import_module
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from mcp_server.model.posture import Profile, Stage

if TYPE_CHECKING:
    from mcp_server.model.context import Context
    from mcp_server.model.results import Ending

Arguments: TypeAlias = Mapping[str, Any]
Schema: TypeAlias = Mapping[str, Any]


class Effect(StrEnum):
    """What a call does to the world. menus/stages.yaml and menus/work_modes.yaml say where each is allowed."""

    NONE = "none"
    SESSION = "session"
    READ_LOCAL = "read-local"
    READ_REMOTE = "read-remote"
    SPEND = "spend"
    WRITE_LOCAL = "write-local"
    DESTROY_LOCAL = "destroy-local"
    VCS_LOCAL = "vcs-local"
    EXEC = "exec"
    BROWSER_ACT = "browser-act"
    REMOTE_WRITE = "remote-write"
    PRODUCTION_MUTATION = "production-mutation"
    DELEGATE = "delegate"


READING = frozenset({Effect.NONE, Effect.SESSION, Effect.READ_LOCAL, Effect.READ_REMOTE, Effect.SPEND})
"""Effects that change nothing outside menugate's own state."""

ASKING = frozenset({Effect.DESTROY_LOCAL, Effect.PRODUCTION_MUTATION})
"""Effects that the person confirms whatever the profile."""


@dataclass(frozen=True, slots=True)
class Hints:
    """The four protocol hints, always written out: a hint left out means the worst one."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    because: str = field(default="", compare=False)
    """Why they are not those of the tool's effect."""

    def adjust(self, because: str, **changes: bool) -> Self:
        """The same but for what is changed, and why that is so."""
        said = {name: changes.pop(name, getattr(self, name)) for name in HINT_NAMES}
        if changes:
            raise TypeError(f"there is no hint `{next(iter(changes))}`")
        return type(self)(**said, because=because)


HINT_NAMES = ("read_only", "destructive", "idempotent", "open_world")
READS_HERE = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
READS_ELSEWHERE = Hints(read_only=True, destructive=False, idempotent=True, open_world=True)
KEEPS_A_RECORD = Hints(read_only=False, destructive=False, idempotent=False, open_world=False)
MAY_DO_ANYTHING = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
HINTS: Mapping[Effect, Hints] = {
    Effect.NONE: READS_HERE,
    Effect.SESSION: KEEPS_A_RECORD,
    Effect.READ_LOCAL: READS_HERE,
    Effect.READ_REMOTE: READS_ELSEWHERE,
    # The same question, paid for a second time, has another answer.
    Effect.SPEND: replace(READS_ELSEWHERE, idempotent=False),
    Effect.WRITE_LOCAL: replace(MAY_DO_ANYTHING, open_world=False),
    # What is gone cannot go again.
    Effect.DESTROY_LOCAL: replace(MAY_DO_ANYTHING, idempotent=True, open_world=False),
    # A repository takes things in; only some of its tools throw any away.
    Effect.VCS_LOCAL: KEEPS_A_RECORD,
    Effect.EXEC: MAY_DO_ANYTHING,
    Effect.BROWSER_ACT: MAY_DO_ANYTHING,
    Effect.REMOTE_WRITE: MAY_DO_ANYTHING,
    Effect.PRODUCTION_MUTATION: MAY_DO_ANYTHING,
    Effect.DELEGATE: MAY_DO_ANYTHING,
}
"""What a host is told of a tool that says nothing else: its effect, in the protocol's words."""
UNSAID = replace(MAY_DO_ANYTHING)
"""Stands for the hints of the tool's effect. An object of its own, so that saying the worst is saying something."""


class Confirmation(StrEnum):
    """Is the person asked before the tool runs, at any profile and whatever the operator's rules allow?"""

    NEVER = "never"
    BY_ARGUMENTS = "by-arguments"
    """For some arguments: its demand says for which, and why."""
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Demand:
    """What one call with these arguments asks for, which may be more or less than its tool in general."""

    effect: Effect
    profile: Profile
    confirm: str | None = None
    """Why the user must approve first, in words for the user; None if no approval is needed."""
    waivable: bool = False
    """An allow rule may answer in advance. True for an unknown command, never for a protected path."""
    asked_below: Profile | None = None
    """From this profile on, a waivable question is not asked: choosing the profile has answered it."""
    takes: Profile | None = None
    """The profile that this really takes. Set if an approval below `asked_below` would be useless, because what runs
    there could not do this."""
    instead: tuple[str, ...] = ()
    """The tools that can do it at the lower profile."""


class RuleSubject(StrEnum):
    """How a rule's `tool(specifier)` reads the argument it is about."""

    PATH = "path"
    COMMAND = "command"
    TEXT = "text"


Run: TypeAlias = Callable[["Context", Any], Awaitable["Ending"]]


class LazyFunction:
    """A function that is imported when it is first called, written `module:function` as in an entry point.

    A server that a host starts only has to list its tools. What a tool is, is there at once; the code behind `run`, or
    behind a demand that needs a parser, is loaded with the first call.
    """

    __slots__ = ("_loaded", "where")

    def __init__(self, where: str) -> None:
        self.where = where
        self._loaded: Callable[..., Any] | None = None

    def __call__(self, *given: Any) -> Any:
        self._loaded = self._loaded or self.load_function()
        return self._loaded(*given)

    def load_function(self) -> Callable[..., Any]:
        module, _, name = self.where.partition(":")
        return getattr(import_module(module), name)


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    title: str
    description: str
    arguments: Schema
    profile: Profile
    effect: Effect
    stages: frozenset[Stage]
    run: Run
    hints: Hints = UNSAID
    """Those of its effect, unless the tool says others and why."""
    confirmation: Confirmation = Confirmation.NEVER
    result: Schema | None = None
    meta: bool = False
    """A meta tool: always listed, exempt from mode and stage, never from the blocklist."""
    demand: Callable[[Arguments], Demand] | None = None
    """Returns what these arguments demand, if arguments make a difference. Pure; gets arguments that fit the schema."""
    written: str | None = None
    """How menus and rules write it if that is not its name: `server:tool` for a tool of an upstream."""
    subject: tuple[str, RuleSubject] | None = None
    """The argument that a rule's specifier is matched against."""
    paths: tuple[str, ...] = ()
    """The arguments that name places in the workspace, if those are more than the subject."""
    stands_on: Callable[["Context", Arguments], Awaitable[Mapping[str, str]]] | None = None
    """What decides besides the arguments, by name: what is staged, what lies at a path, where a shell is. Looked up
    only for a call that needs an approval: shown in the question, bound by its digest, and looked up again before the
    call runs. It may read, but change nothing; a `Refusal` ends the call before anybody is asked."""
    stays: Callable[[Arguments], bool] = lambda _arguments: False
    """True if such a call leaves something behind that only a later call of the same session could reach."""
    rehearsed: bool = False
    """It works on files alone, and is tried before the user is asked: a call that would fail is refused unasked. Its
    files then check everything and change nothing."""
    incidental: tuple[str, ...] = ()
    """The arguments that decide nothing about what a call does: an approval holds whatever their values."""
    tree: str = ""
    """The argument that names the folder the call takes as a whole: rules about anything in it apply, too."""
    tree_to: str = ""
    """The argument that names where that goes."""
    counts_as: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By argument, the tools whose rules about a path also hold for what it names: whoever moves a file away can read
    it."""
    base: str = ""
    """The argument that the other places are relative to; without one, they are relative to the workspace."""
    shut_in: bool = False
    """What it starts runs in a sandbox. If there is none, it needs the next higher profile, or does not run at all."""
    timeout: float = 60.0
    max_result_chars: int = 30_000
    """How much of a result is shown; the rest goes to a file that `Read` may open."""
    large: bool = False
    """Ask hosts that cap results to let a long one through."""

    def __post_init__(self) -> None:
        if self.hints is UNSAID:
            object.__setattr__(self, "hints", HINTS.get(self.effect, UNSAID))

    @property
    def places(self) -> tuple[str, ...]:
        """The arguments that name places in the workspace."""
        return self.paths or ((self.subject[0],) if self.subject and self.subject[1] is RuleSubject.PATH else ())

    def make_paths_relative(self, arguments: Arguments, root: str) -> Arguments:
        """Write every path below the workspace relative to it.

        What is asked about `.git/config` must be asked about its absolute path too; and a workspace below a protected
        name is not protected for that reason.
        """
        names = self.places
        inside = f"{root.rstrip('/')}/"
        found = {name: arguments.get(name) for name in names}
        short = {
            name: _strip_workspace(inside, path) or "."
            for name, path in found.items()
            # An empty path names nothing, if the schema does not allow one.
            if isinstance(path, str) and (path or not self.arguments.get("properties", {})[name].get("minLength"))
        }
        return {**arguments, **short} if short != {name: found[name] for name in short} else arguments

    def join_base_path(self, name: str, path: str, arguments: Arguments) -> str:
        """Write a place relative to the workspace, if the tool takes it relative to another of its arguments."""
        base = arguments.get(self.base) if self.base and name != self.base else None
        relative = isinstance(base, str) and base and not path.startswith(("/", "~"))
        return f"{base}/{path}" if relative else path

    def get_demand(self, arguments: Arguments) -> Demand:
        if self.demand is None:
            return Demand(self.effect, self.profile)
        return self.demand(arguments)


def _strip_workspace(inside: str, path: str) -> str:
    # `root//a` is below the root, and the rest must neither begin at the top of the disk nor climb out.
    rest = path.removeprefix(inside).lstrip("/") if path.startswith(inside) else path
    return path if normpath(rest).startswith("..") else rest


WARMUP = frozenset({Stage.WARMUP})
ACTING = frozenset({Stage.ACT, Stage.TOOL_FOLLOWUP, Stage.MICRO_STEP})
REVIEWING = frozenset({Stage.QA_REVIEW})
EVERY_STAGE = frozenset(Stage)
