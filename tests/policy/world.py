"""The tools, menus and policies that the tables speak about, read from tests/tables/tools.yaml."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from mcp_server.model.menus import Menus, Mode
from mcp_server.model.policy import Budget, Policy, RuleKind, Rules, RuleText
from mcp_server.model.posture import Profile, Stage, WorkMode
from mcp_server.model.results import Done, Ending
from mcp_server.model.tools import (
    ACTING,
    READING,
    REVIEWING,
    WARMUP,
    Arguments,
    Demand,
    Effect,
    Hints,
    RuleSubject,
    Tool,
)
from mcp_server.policy.arguments import build_argument_check
from mcp_server.policy.rule_match import find_call_words
from mcp_server.policy.rules import compile_rules
from tests.yaml_text import load_yaml
from tools.catalog import READ_LINE

TABLES = Path(__file__).parents[1] / "tables"
PROFILES = dict(zip("RNTU", Profile, strict=True))
STAGES = {"W": WARMUP, "A": ACTING, "Q": REVIEWING, "D": frozenset({Stage.DELIVERY_CHECK})}
EFFECTS: dict[Stage, frozenset[Effect]] = {
    Stage.WARMUP: READING,
    **dict.fromkeys(sorted(ACTING), frozenset(Effect)),
    Stage.DELIVERY_CHECK: frozenset(),
    Stage.QA_REVIEW: READING,
}
WORK: dict[WorkMode, frozenset[Effect]] = {
    **dict.fromkeys((WorkMode.CHAT, WorkMode.BUILD, WorkMode.REPAIR), frozenset(Effect)),
    **dict.fromkeys((WorkMode.PLAN, WorkMode.REVIEW, WorkMode.RESEARCH), READING),
}


def table(name: str) -> Any:
    return load_yaml((TABLES / f"{name}.yaml").read_text())


def spoken(value: Any) -> str:
    """A case's name that can be given on a command line again: without the sign that is taken for an escape there, and
    without those that are escaped by it. Who plants faults chooses tests by name, and one not found looks noticed."""
    plain = str(value).replace("\\", "/")
    return "".join(sign if sign.isascii() and sign.isprintable() else f"U+{ord(sign):04X}" for sign in plain)


async def run(_ctx: Any, _arguments: Any) -> Ending:
    return Done("")


def schema(takes: Mapping[str, str]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, kind in takes.items():
        plain = kind.rstrip("!")
        properties[name] = {"type": "array", "items": {"type": "string"}} if plain == "strings" else {"type": plain}
    required = [name for name, kind in takes.items() if kind.endswith("!")]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def tool(name: str, row: Mapping[str, Any]) -> Tool:
    floor = Demand(Effect(row["effect"]), PROFILES[row["least"]])
    cases: Sequence[Mapping[str, Any]] = row.get("demands", ())

    def demand(arguments: Arguments) -> Demand:
        for case in cases:
            value = arguments.get(case["argument"])
            if value is True if "is" in case else isinstance(value, str) and value.startswith(case["starts"]):
                if case.get("fails"):
                    raise KeyError(value)
                below = Profile(case["below"]) if "below" in case else None
                takes = Profile(case["takes"]) if "takes" in case else None
                asked = case.get("confirm"), case.get("waivable", False), below, takes, tuple(case.get("instead", ()))
                return Demand(Effect(case["effect"]), Profile(case["profile"]), *asked)
        return floor

    subject = row.get("subject", "").split()
    return Tool(
        name=name,
        title=name,
        description=name,
        arguments=schema(row.get("takes", {})),
        profile=floor.profile,
        effect=floor.effect,
        hints=Hints(*(mark == "1" for mark in row["hints"])),
        stages=frozenset[Stage]().union(*(STAGES[letter] for letter in row["stages"])),
        run=run,
        meta=not row["modes"],
        demand=demand if cases else None,
        written=row.get("written"),
        subject=(subject[1], RuleSubject(subject[0])) if subject else None,
    )


@cache
def tools(own: bool = False) -> dict[str, Tool]:
    """`own`: with what one workspace adds."""
    page = table("tools")
    rows = page["tools"] | (page["own_tools"] if own else {})
    return {name: tool(name, row) for name, row in rows.items()}


@cache
def menus(own: bool = False) -> Menus:
    page = table("tools")
    rows = page["modes"] | (page["own_modes"] if own else {})
    return Menus(tuple(mode(name, row) for name, row in rows.items()))


def mode(name: str, row: Mapping[str, Any]) -> Mode:
    words: dict[str, str] = {key: row.get(key, "") for key in ("role", "goal", "offers", "when", "remember")}
    return Mode(
        name=name,
        title=row["title"],
        tools=tuple(row.get("tools", ())),
        triggers=tuple(map(str, row.get("triggers", ()))),
        role=words["role"],
        goal=words["goal"],
        offers=words["offers"],
        when=words["when"],
        remember=words["remember"],
    )


def example(name: str) -> Arguments:
    return table_example().get(name, {})


@cache
def table_example() -> dict[str, Arguments]:
    page = table("tools")
    return {name: row.get("example", {}) for name, row in (page["tools"] | page["own_tools"]).items()}


def texts(written: Mapping[str, Sequence[str]], reason: str = "") -> list[RuleText]:
    return [
        RuleText(RuleKind(kind), text, f"rules.yaml:{line}", reason=reason)
        for kind, several in written.items()
        for line, text in enumerate(several, 1)
    ]


@cache
def check(own: bool = False) -> Any:
    return build_argument_check(tools(own))


def policy(
    written: Mapping[str, Sequence[str]] | None = None,
    ceiling: Profile = Profile.UNRESTRICTED,
    budget: Budget | None = None,
    own: bool = False,
    reason: str = "",
) -> Policy:
    rules = compile_rules(texts(written or {}, reason), tools(own), READ_LINE, roots=("/work",))
    assert isinstance(rules, Rules), rules
    said = (tools(own), menus(own), EFFECTS, rules, ceiling, budget or Budget(), check(own))
    return Policy(*said, read_line=READ_LINE, work_modes=WORK)


SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "q": {"type": "string"},
        "kind": {"enum": ["web", "news"]},
        "depth": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "flag": {"type": ["boolean", "null"]},
        "filter": {"anyOf": [{"type": "object", "properties": {"language": {"type": "string"}}}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
}


def known() -> dict[str, Tool]:
    """The tools of the table and one of an upstream, whose schema is its own."""
    upstream = replace(
        tools()["Read"],
        name="acme_search",
        written="acme:search",
        arguments=SEARCH,
        subject=None,
        profile=Profile.TRUSTED,
    )
    return {**tools(), "acme_search": upstream}


def compiled(kind: str, text: str) -> Rules:
    rules = compile_rules([RuleText(RuleKind(kind), text, "rules.yaml:1")], known(), READ_LINE, roots=("/work",))
    assert isinstance(rules, Rules), rules
    return rules


def speaks(rules: Rules, kind: str, name: str, call: Any) -> bool:
    tool = known()[name]
    arguments: Any = {tool.subject[0]: call} if isinstance(call, str) and tool.subject else call
    every = [
        rule
        for rule in rules.find_for_tool(name, RuleKind(kind))
        if rule.applies is None or rule.applies(tool, arguments)
    ]
    found = rules.find_for_call(name, RuleKind(kind), find_call_words(tool, arguments, READ_LINE))
    assert set(every) <= set(found), "a rule that applies is not found by its word"
    return bool(every)
