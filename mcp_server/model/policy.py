"""What may happen, and what was decided about it? The operator's data, compiled, and the answer of the decision."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct, field

from mcp_server.model.menus import Menus
from mcp_server.model.posture import Profile, Stage, WorkMode
from mcp_server.model.results import Code
from mcp_server.model.shell import ReadLine
from mcp_server.model.tools import Arguments, Demand, Effect, Tool
from mcp_server.model.web_access import WebAccess


class SandboxState(StrEnum):
    """Is there a sandbox for tools that must run in one?"""

    THERE = "there"
    MISSING = "missing"
    """Such a tool then needs the next higher profile."""
    REFUSED = "refused"
    """Such a tool then does not run: the operator requires a sandbox."""


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Layer(StrEnum):
    """In the order in which they are asked; the first refusal is the one reported."""

    FIND = "find"
    BLOCK = "block"
    MODE = "mode"
    STAGE = "stage"
    PROFILE = "profile"
    RULES = "rules"
    ARGUMENTS = "arguments"
    BUDGET = "budget"
    CONFIRMATION = "confirmation"


class RuleOwner(StrEnum):
    OPERATOR = "operator"
    WORKSPACE = "workspace"
    """It is in the workspace's own file."""


class Decision(Struct, frozen=True):
    verdict: Verdict
    layer: Layer | None = None
    code: Code | None = None
    reason: str = ""
    way_out: str = ""
    rule: str | None = None
    demand: Demand | None = None
    """What the call was granted; the guards hold it to that."""
    rule_source: str = ""
    """Where the rule that made it ask is written: file:line."""
    rule_owner: RuleOwner | None = None
    instead: tuple[str, ...] = ()
    """Tools that do what was refused, all in one mode that can be entered from here."""

    @property
    def is_allowed(self) -> bool:
        return self.verdict is Verdict.ALLOW

    @property
    def demand_to_ease(self) -> Demand | None:
        """The demand, if it asks and what is there may make that unnecessary."""
        return self.demand if self.verdict is Verdict.ASK and self.demand and self.demand.steps else None


class RuleKind(StrEnum):
    """The four lists a rule can be in, strongest first. Neither order nor specificity ever matters."""

    BLOCK = "block"
    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


class RuleText(Struct, frozen=True):
    """A rule as the operator wrote it, not yet parsed.

    An example is a call's arguments or, for short, the value of the tool's subject; for a rule about every call of a
    tool it is the tool's name.
    """

    kind: RuleKind
    text: str
    source: str
    """file:line, for messages."""
    match: tuple[str | Arguments, ...] = ()
    """Calls that the rule must match, checked when it is parsed."""
    not_match: tuple[str | Arguments, ...] = ()
    reason: str = ""
    """Shown to a refused caller."""


class Rule(Struct, frozen=True):
    kind: RuleKind
    text: str
    """As the person wrote it: `bash(git push:*)`, `Read(src/**)`, `server:tool`, `tool(arg.path op value)`."""
    source: str
    """file:line, for messages."""
    names: Callable[[str], bool]
    """True if the rule is about this tool."""
    applies: Callable[[Tool, Arguments], bool] | None = None
    """True if it is about these arguments. None if it is about every call, and so also hides the tool."""
    word: str | None = None
    """A word that a call must contain for the rule to apply, if there is one: rules are looked up by it."""
    reason: str = ""
    """The reason that the operator gave, for the caller that it stops."""
    reaches: bool = False
    """True if it names paths, and so applies to everything that a call takes along or finds there."""
    owner: RuleOwner = RuleOwner.OPERATOR


class PathsBeneath(Struct, frozen=True):
    """What a call that takes a whole folder touches in it, and the rule about that."""

    rule: Rule | None
    """None if the folder is too large to search."""
    path: str


Shelf: TypeAlias = Mapping[str | None, tuple[Rule, ...]]
"""The rules of one list about one tool, by the word they are looked up by; under None those that concern any call."""


@dataclass(frozen=True)
class Rules:
    """Every rule, looked up by tool, so that a call meets only the few rules that could matter."""

    every: tuple[Rule, ...] = ()
    _shelves: dict[tuple[str, RuleKind], Shelf] = dataclasses.field(
        default_factory=dict[tuple[str, RuleKind], Shelf], init=False, repr=False, compare=False
    )

    def find_for_tool(self, name: str, kind: RuleKind) -> tuple[Rule, ...]:
        return _sort_rules(rule for shelf in self.get_shelf(name, kind).values() for rule in shelf)

    def find_for_call(self, name: str, kind: RuleKind, words: frozenset[str] | None) -> tuple[Rule, ...]:
        """Return the rules that could concern a call with these words; None if its words are unknown."""
        shelf = self.get_shelf(name, kind)
        if words is None:
            return self.find_for_tool(name, kind)
        if len(shelf) <= 1 and None in shelf:
            return shelf[None]
        return _sort_rules(rule for word in (None, *words) for rule in shelf.get(word, ()))

    def get_shelf(self, name: str, kind: RuleKind) -> Shelf:
        found = self._shelves.get((name, kind))
        if found is None:
            shelf: dict[str | None, list[Rule]] = {}
            for rule in self.every:
                if rule.kind is kind and rule.names(name):
                    shelf.setdefault(rule.word, []).append(rule)
            found = self._shelves[name, kind] = {word: _sort_rules(rules) for word, rules in shelf.items()}
        return found


def _sort_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Sort by text, so that not even the rule that an answer names depends on the order of writing."""
    return tuple(sorted(rules, key=lambda rule: (rule.text, rule.source)))


class Budget(Struct, frozen=True):
    """What a run may spend; None means no limit."""

    calls: int | None = None
    minutes: int | None = None
    result_bytes: int | None = None
    repeated_failures: int | None = None


class SummaryLimits(Struct, frozen=True):
    """When the beginning of a run is folded into a summary."""

    messages: int = 40
    tokens: int = 20_000
    keep: int = 20
    """How many of the newest messages stay out of it."""


class Reviewing(Struct, frozen=True):
    """Which model is asked about a finished run, besides the checks."""

    endpoint: str
    """The address of a model's chat endpoint, such as `https://host/v1/chat/completions`."""
    host: str
    port: int
    model: str
    key: str = ""
    """The environment variable with the endpoint's key; empty if it needs none."""
    patience: float = 20.0

    @property
    def place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class BudgetUse(Struct, frozen=True):
    """What a run has spent so far."""

    calls: int = 0
    minutes: float = 0.0
    result_bytes: int = 0
    repeated_failures: int = 0
    in_phase: int = 0
    """Calls in the run's current phase."""


class Policy(Struct, frozen=True):
    tools: Mapping[str, Tool]
    menus: Menus
    stages: Mapping[Stage, frozenset[Effect]]
    rules: Rules = field(default_factory=Rules)
    ceiling: Profile = Profile.UNRESTRICTED
    budget: Budget = field(default_factory=Budget)
    unfit: Callable[[str, Arguments], str | None] = lambda _tool, _arguments: None
    """Says, for the caller, what is wrong with these arguments for that tool; None if nothing is."""
    meant: Callable[[str, Arguments], Arguments] = lambda _tool, arguments: arguments
    """Drops the arguments that say nothing. Every other check sees only the rest."""
    read_line: ReadLine = lambda _text: None
    """Parses a shell line. If a line cannot be parsed, every rule that narrows applies to it."""
    shelter: Callable[[], SandboxState] = lambda: SandboxState.THERE
    """As far as it is known now."""
    work_modes: Mapping[WorkMode, frozenset[Effect]] = field(default_factory=dict[WorkMode, frozenset[Effect]])
    """What each work mode allows. One that is missing here allows only reading."""
    web: WebAccess = field(default_factory=WebAccess)


class Call(Struct, frozen=True):
    """One call as the decision sees it. Without arguments the question is whether the tool is visible at all."""

    tool: str
    arguments: Arguments | None = None
    approved: bool = False
    """The person approved exactly this call."""
    spent: BudgetUse = field(default_factory=BudgetUse)
    within: str | None = None
    """The tool that makes this call for its caller, if one does: its own mode was already checked."""
    led: Arguments | None = None
    """The arguments with every path's links followed; None if no link leads elsewhere."""
    beneath: tuple[PathsBeneath, ...] = ()
    """What rules say about the folder that the call takes as a whole: at most one finding per list."""
    demand: Demand | None = None
    """What it needs where it would run, if its tool has looked; otherwise its arguments say."""
