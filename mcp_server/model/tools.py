"""What is a tool? A frozen value with its name, its arguments, its effect and the code that runs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import import_module
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from msgspec import Struct

from mcp_server.model.posture import Profile, Stage

if TYPE_CHECKING:
    from mcp_server.model.context import Context
    from mcp_server.model.path_steps import PathStep
    from mcp_server.model.results import Ending

Arguments: TypeAlias = Mapping[str, Any]
Schema: TypeAlias = Mapping[str, Any]


class Effect(StrEnum):
    """What a call does to the world. menus/stages.yaml and menus/work_modes.yaml say where each effect is allowed."""

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
    """The protocol's four hints. All are required, because hosts assume the worst about a missing one."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    because: str = field(default="", compare=False)
    """Why they differ from those of the tool's effect."""

    def adjust(self, because: str, **changes: bool) -> Self:
        """Return a copy with these changes and the reason for them."""
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
"""The hints of a tool that states no others: its effect, in the protocol's words."""
UNSAID = replace(MAY_DO_ANYTHING)
"""Stands for the hints of the tool's effect. It is an object of its own, so that a tool can state the worst hints
itself."""


class Confirmation(StrEnum):
    """Whether the user is asked before the tool runs, at every profile and despite allow rules."""

    NEVER = "never"
    BY_ARGUMENTS = "by-arguments"
    """For some arguments; the demand says for which ones, and why."""
    ALWAYS = "always"


class Demand(Struct, frozen=True):
    """What one call with these arguments needs, which may be more or less than the tool needs in general."""

    effect: Effect
    profile: Profile
    confirm: str | None = None
    """Why the user must approve first, in words for the user; None if no approval is needed."""
    waivable: bool = False
    """True if an allow rule can skip the question: for an unknown command, but never for a protected path."""
    asked_below: Profile | None = None
    """At this profile and above, a waivable question is skipped, because choosing the profile answers it."""
    takes: Profile | None = None
    """The profile that the call needs to succeed. Set if an approval below `asked_below` would be useless, because the
    call would fail there anyway."""
    instead: tuple[str, ...] = ()
    """Tools that can do the same at the lower profile, or the part of it that `detour` names."""
    detour: str = ""
    """What can be done instead at the lower profile, in sentences for the model."""
    steps: "tuple[PathStep, ...]" = ()
    """If there are any, the approval is needed only if something that is there stands against them. Where they are
    looked at, `confirm` becomes None, or says what does."""
    once: bool = False
    """True if an approval covers one call only, because the call destroys something."""

    @property
    def always_asks(self) -> bool:
        """True if no rule, no profile and no approval for a session skips the question."""
        return self.confirm is not None and not self.waivable


class RuleSubject(StrEnum):
    """How the specifier in `tool(specifier)` is compared with the argument that rules are about."""

    PATH = "path"
    COMMAND = "command"
    URL = "url"
    TEXT = "text"


Run: TypeAlias = Callable[["Context", Any], Awaitable["Ending"]]


class LazyFunction:
    """A function that is imported when it is first called, written `module:function` as in an entry point.

    To list its tools, a server needs only their definitions. The code behind `run`, or behind a demand that needs a
    parser, is loaded on the first call.
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


class CallPart(Struct, frozen=True):
    """A part of what a call does, such as one command of a line."""

    text: str
    does: Literal["reads", "builds", "asks"]
    """`asks`: it may do more than read, build and test, or menugate does not know what it does."""
    why: str = ""
    """Why it asks."""
    span: tuple[int, int] | None = None
    """Its characters in the tool's subject; None if it stands there in other words."""
    losses: tuple["Loss", ...] = ()
    """What would be gone after it, as far as the part itself says."""
    programs: tuple[str, ...] = ()
    """Names of programs that it starts, which are looked up when it runs."""
    after: str = ""
    """An earlier part that runs code of the project in the same shell, which may give these names another meaning."""


class RunFiles(NamedTuple):
    """What a call may run, as far as its arguments say."""

    folder: str
    """Where it starts."""
    names: tuple[str, ...]
    """Words that may name a file, or a folder with files that others name."""
    folders: tuple[str, ...] = ()
    """Where else it looks for programs."""
    any_file: bool = True
    """False if a file counts only if it is marked as a program or named like one."""
    untold: str = ""
    """Why the call may run files that it does not name; empty if it may not. Such a call is never approved for a whole
    session."""
    loads: bool = False
    """It runs code of the workspace, which may load other files. An approval for once then holds only as long as no
    call has changed anything."""
    scripts: tuple[str, ...] = ()
    """Those of the names that have to be files of the workspace. If one is not, nobody knows what runs."""
    alone: bool = False
    """The call does nothing but run its script, and names it once, so the script can be a copy."""


LossKind: TypeAlias = Literal[
    "deletes",
    "unlinks",  # a file, and no folder
    "removes",  # a folder, if it is empty
    "overwrites",  # the file that a path leads to
    "replaces",  # a file or a link, and nothing behind it; a folder gets it inside
    "relinks",  # the same, also for a link to a folder
    "deletes in",  # some of what is in a folder
    "deletes some in",  # the same, if it fits what the line says
    "overwrites in",
    "cleans",  # files below a folder that git does not track, or some of them
    "cleans all",
    "discards",  # changes below a folder that are not staged
    "resets",  # changes in a whole repository that are not committed
]
LossDoubt: TypeAlias = Literal["", "altered", "folder"]


class Loss(NamedTuple):
    does: LossKind
    path: str
    """Below the workspace; if it is not known, the word that bash turns into one, or nothing if it is in no word."""
    known: bool = True
    doubt: LossDoubt = ""
    """Earlier parts of the call may have changed what is there, or may have led to another folder."""
    fits: tuple[str, ...] = ()
    """Patterns that the path must fit, below the workspace; empty if nothing is known of it."""


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
    """By default, the hints that follow from its effect. If they differ, `because` says why."""
    confirmation: Confirmation = Confirmation.NEVER
    result: Schema | None = None
    meta: bool = False
    """A meta-tool: always listed, and exempt from the mode and stage but not from block rules."""
    demand: Callable[[Arguments], Demand] | None = None
    """Returns what a call with these arguments needs; None if every call needs the same. It must be pure, and gets only
    arguments that fit the schema."""
    demand_there: Callable[["Context", Arguments, Demand], Awaitable[Demand]] | None = None
    """Looks where a call that `stays` would run, and returns what it needs there, given its demand. It may need more
    than its arguments show, because of what earlier calls left there. Called only for a call that may run otherwise."""
    demand_known: Callable[["Context", Arguments, Demand], Awaitable[Demand | None]] | None = None
    """Looks at the workspace before the user is asked, and returns what the call needs given what is there: less than
    its arguments alone show, or None for the same. Called only for a call that would ask; it may only read."""
    written: str | None = None
    """How menus and rules refer to the tool, if not by its name: `server:tool` for a tool of an upstream server."""
    subject: tuple[str, RuleSubject] | None = None
    """The argument that a rule's specifier is compared with, and how."""
    paths: tuple[str, ...] = ()
    """The arguments that name places in the workspace, if the subject is not the only one."""
    stands_on: Callable[["Context", Arguments], Awaitable[Mapping[str, str]]] | None = None
    """Returns the facts that matter besides the arguments, by name: what is staged, what is at a path, where a shell
    is. Called only if a call needs an approval. The question shows the facts, the approval is bound to their digest,
    and they are looked up again before the call runs. It may read, but must change nothing. If it raises `Refusal`, the
    call ends before the user is asked."""
    runs_files: Callable[[Arguments, Mapping[str, str]], RunFiles] | None = None
    """Says which files of the workspace a call may run, given what `stands_on` found. Called only if a call needs an
    approval. The question names them, and the approval is bound to what they contain."""
    parts: Callable[[Arguments], Sequence[CallPart]] | None = None
    """Lists the parts of what a call does, in order, for the user to see. Called only if a call needs an approval."""
    stays: Callable[[Arguments], bool] = lambda _arguments: False
    """True if a call with these arguments leaves something behind that only a later call in the same session can
    reach."""
    rehearsed: bool = False
    """It works on files alone, and is tried before the user is asked, so that the user is not asked about a call that
    would fail. During the trial, `ctx.files` checks everything and changes nothing."""
    incidental: tuple[str, ...] = ()
    """Arguments that don't change what a call does, so an approval covers every value of them."""
    tree: str = ""
    """The argument that names a folder which the call affects as a whole. Rules about anything in the folder apply
    too."""
    tree_to: str = ""
    """The argument that names the folder's destination."""
    counts_as: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By argument, the tools whose path rules also apply to the path it names. For example, moving a file away counts
    as reading it."""
    base: str = ""
    """The argument that other paths are relative to; if empty, they are relative to the workspace."""
    shut_in: bool = False
    """The programs it starts run in a sandbox. Without a sandbox, the tool needs the next higher profile or does not
    run."""
    timeout: float = 60.0
    max_result_chars: int = 30_000
    """How much of a result is shown. The rest goes to a file that `Read` can open."""
    large: bool = False
    """Ask hosts that cap results to let a long one through."""
    shown: Schema | None = None
    """The schema that clients see, if it is not that of the arguments: fixed arguments are not in it."""
    fixed: Arguments = field(default_factory=dict[str, Any])
    """Arguments that the operator set. Every call has them, and no caller can give them."""
    hidden: frozenset[str] = frozenset()
    """Arguments that no caller can give, although the schema may allow them."""
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """More of its entry in `tools/list`, in the protocol's shape, such as icons."""
    offers: Mapping[str, Any] | None = None
    """What of another server passes through it, and is listed in its stead. Clients neither list nor call it."""
    places: tuple[str, ...] = field(init=False, compare=False)
    """The arguments that name places in the workspace."""

    def __post_init__(self) -> None:
        if self.hints is UNSAID:
            object.__setattr__(self, "hints", HINTS.get(self.effect, UNSAID))
        subject = (self.subject[0],) if self.subject and self.subject[1] is RuleSubject.PATH else ()
        object.__setattr__(self, "places", self.paths or subject)

    @property
    def is_listed(self) -> bool:
        return self.offers is None

    @property
    def offered(self) -> Schema:
        """The schema of the arguments that a caller can give."""
        return self.arguments if self.shown is None else self.shown

    def make_paths_relative(self, arguments: Arguments, root: str) -> Arguments:
        """Write every path below the workspace relative to it.

        A question about `.git/config` must also be asked about its absolute path, and a workspace inside a folder with
        a protected name is not protected for that reason.
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
        """Write a path relative to the workspace, if the tool takes it relative to another argument."""
        base = arguments.get(self.base) if self.base and name != self.base else None
        relative = isinstance(base, str) and base and not path.startswith(("/", "~"))
        return f"{base}/{path}" if relative else path

    def looks_there(self, arguments: Arguments) -> bool:
        """True if what a call needs depends on what earlier calls have left where it would run."""
        return self.demand_there is not None and self.stays(arguments)

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
