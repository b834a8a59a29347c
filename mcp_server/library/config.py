"""What has the operator decided? The file `menugate.yaml`, as one frozen value."""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from mcp_server.library.faults import Findings, Place, quoted
from mcp_server.library.hosts import ROWS, rows
from mcp_server.library.reading import Fields, Leaf, read
from mcp_server.library.shape import (
    Choice,
    Flag,
    Key,
    ListOf,
    Record,
    TextOr,
    Whole,
    Words,
    fit,
    flag,
    items,
    leaf,
    leaves,
    number,
    records,
    text,
)
from mcp_server.model.menu import Host, Listing
from mcp_server.model.policy import Budget, Folding, Kind, RuleText
from mcp_server.model.posture import AiMode, ModelMode, Posture, Profile, RunControl, WorkMode
from mcp_server.model.tool import Effect


class Approvals(StrEnum):
    """How a person is asked: through the client, or past it."""

    ELICIT = "elicit"
    OUT_OF_BAND = "out_of_band"


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token that proves who somebody is, kept as its SHA-256 so that the file opens nobody's door."""

    principal: str
    sha256: str
    max_profile: Profile


@dataclass(frozen=True, slots=True)
class Config:
    rules: tuple[RuleText, ...] = ()
    max_profile: Profile = Profile.UNRESTRICTED
    posture: Posture = field(default_factory=Posture)
    """Where a person starts who has chosen nothing yet; never above `max_profile`."""
    budget: Budget = field(default_factory=Budget)
    menus: tuple[Path, ...] = ()
    prompts: Path | None = None
    hosts: tuple[Host, ...] = ()
    listing: Listing | None = None
    """None leaves the choice to era, transport and host."""
    approvals: Approvals = Approvals.ELICIT
    folding: Folding = field(default_factory=Folding)
    out_of_band: frozenset[str] = frozenset()
    """Effects and tools that no client may answer for, where `approvals` leaves the others to it."""
    tokens: tuple[Token, ...] = ()


RULE = Words(500)
RULES = ListOf(
    TextOr(
        RULE,
        Record(
            {
                "rule": Key(RULE, "the rule, such as `bash(git push:*)`", required=True),
                "match": Key(ListOf(RULE), "calls the rule has to speak about; checked at start"),
                "not_match": Key(ListOf(RULE), "calls it must not speak about; checked at start"),
                "reason": Key(Words(240), "what a refused caller is told"),
            },
            "A rule with examples and a reason.",
        ),
    ),
    most=10_000,
)
KINDS = {
    Kind.BLOCK: "never, whatever the profile or an approval says",
    Kind.DENY: "refused",
    Kind.ASK: "only after the person said yes",
    Kind.ALLOW: "without a question where one would be asked",
}
AXES = {
    "work_mode": (WorkMode, "the kind of work: `plan`, `research` and `review` only read"),
    "run_control": (RunControl, "how often the person is asked: `manual` asks for every effect"),
    "model_mode": (ModelMode, "how much thought the model is asked to spend"),
    "ai_mode": (AiMode, "`chat` asks before any write"),
}
PROFILES = Choice(tuple(Profile))
LIMIT = Whole(1, 1_000_000_000)
RULE_LISTS = Record({kind.value: Key(RULES, says) for kind, says in KINDS.items()}, "Four lists; the strongest wins.")
BUDGET = Record(
    {
        "calls": Key(LIMIT, "calls in one run"),
        "minutes": Key(LIMIT, "minutes from a run's first call"),
        "result_bytes": Key(LIMIT, "bytes of results in one run"),
        "repeated_failures": Key(LIMIT, "how often the same call may fail in a row"),
    },
    "What a run may spend; no limit where a key is left out.",
)
CONFIG = Record(
    {
        "rules": Key(RULE_LISTS, "what may be called, and with which arguments"),
        "max_profile": Key(PROFILES, "the highest permission profile anybody may choose"),
        "profile": Key(PROFILES, "the permission profile to start with"),
        **{name: Key(Choice(tuple(axis)), says) for name, (axis, says) in AXES.items()},
        "reasoning": Key(Flag(), "whether a run has the stages of reasoning"),
        "budget": Key(BUDGET, "what a run may spend"),
        "summary": Key(
            Record(
                {
                    "messages": Key(LIMIT, "messages in one run; a call and its answer are two (40 where left out)"),
                    "tokens": Key(LIMIT, "tokens in one run, as estimated (20000 where left out)"),
                    "keep": Key(Whole(2, 1_000), "so many of the newest messages stay out (20 where left out)"),
                },
                "After which growth the beginning of a run is put together.",
            ),
            "when a run is summed up; `menugate summary` shows it",
        ),
        "menus": Key(
            ListOf(
                Words(4096, r"(?!~).*", "a whole path or one beginning at this file's folder; `~` is not read here")
            ),
            "folders with further mode files, beginning at this file's folder",
        ),
        "prompts": Key(
            Words(4096, r"(?!~).*", "a whole path or one beginning at this file's folder; `~` is not read here"),
            "a folder with words of your own in place of shipped ones, beginning at this file's folder",
        ),
        "hosts": Key(ROWS, "hosts menugate does not know, or knows wrongly"),
        "listing": Key(Choice(("auto", *Listing)), "what `tools/list` shows, to every host"),
        "tokens": Key(
            ListOf(
                Record(
                    {
                        "principal": Key(Words(64, r"[A-Za-z0-9_.@-]+"), "whom the token stands for", required=True),
                        "sha256": Key(Words(64, r"[0-9a-f]{64}"), "the token's SHA-256, in hex", required=True),
                        "max_profile": Key(PROFILES, "the profile this principal cannot go beyond"),
                    },
                    "A further bearer token for HTTP.",
                ),
            ),
            "further people who may come in over HTTP, each with a token of their own",
        ),
        "approvals": Key(
            TextOr(
                Words(20, "|".join(Approvals), f"one of {', '.join(Approvals)}, or a mapping with `out_of_band`"),
                Record(
                    {"out_of_band": Key(ListOf(Words(80), least=1), "effects such as `destroy-local`, and tools")},
                    "What only the person at a terminal can answer; everything else may be asked through the client.",
                ),
            ),
            "`out_of_band` where the client is not trusted to ask, for every question or for some",
        ),
    },
    "What the operator of menugate decides.",
)


def config_in(path: Path, findings: Findings, tools: Collection[str]) -> Config:
    """The defaults stand in for whatever is wrong, so that the rest can be checked; the faults forbid using it."""
    node = read(path, findings)
    fields = fit(node, CONFIG, findings) if node is not None else None
    if not isinstance(fields, Fields):
        return Config()
    ceiling = Profile(text(fields, "max_profile") or Profile.UNRESTRICTED)
    listing = text(fields, "listing")
    return Config(
        rules=rules_in(fields),
        max_profile=ceiling,
        posture=_posture(fields, ceiling, findings),
        budget=budget_in(fields),
        menus=tuple(path.parent / folder.text for folder in leaves(fields, "menus")),
        prompts=_prompts(path, fields, findings),
        hosts=rows(records(fields, "hosts"), findings),
        listing=Listing(listing) if listing not in ("", "auto") else None,
        approvals=Approvals(text(fields, "approvals") or Approvals.ELICIT),
        folding=_folding(fields),
        out_of_band=_out_of_band(fields, tools, findings),
        tokens=tuple(
            Token(text(one, "principal"), text(one, "sha256"), Profile(text(one, "max_profile") or ceiling))
            for one in records(fields, "tokens")
        ),
    )


def _out_of_band(fields: Fields, tools: Collection[str], findings: Findings) -> frozenset[str]:
    chosen = fields.fields.get("approvals")
    named = leaves(chosen, "out_of_band") if isinstance(chosen, Fields) else ()
    known = (*(effect.value for effect in Effect), *tools)
    for one in named:
        if one.text not in known:
            findings.add(one.place, f"`{one.text}` is neither an effect nor a tool", one.text, known)
    return frozenset(one.text for one in named)


def _prompts(path: Path, fields: Fields, findings: Findings) -> Path | None:
    named = leaf(fields, "prompts")
    if named is None:
        return None
    folder = path.parent / named.text
    if not folder.is_dir():
        findings.add(named.place, f"there is no folder {quoted(str(folder))}")
    return folder


def rules_in(fields: Fields) -> tuple[RuleText, ...]:
    lists = fields.fields.get("rules")
    if not isinstance(lists, Fields):
        return ()
    found = [_rule(kind, entry) for kind in Kind for entry in items(lists, kind.value)]
    return tuple(rule for rule in found if rule is not None)


def _rule(kind: Kind, entry: object) -> RuleText | None:
    match entry:
        case Leaf():
            return RuleText(kind, entry.text, entry.place.source)
        case Fields():
            rule = leaf(entry, "rule")
            return rule and RuleText(
                kind,
                rule.text,
                rule.place.source,
                match=tuple(example.text for example in leaves(entry, "match")),
                not_match=tuple(example.text for example in leaves(entry, "not_match")),
                reason=text(entry, "reason"),
            )
        case _:
            return None


def _posture(fields: Fields, ceiling: Profile, findings: Findings) -> Posture:
    usual = Posture()
    chosen = leaf(fields, "profile")
    profile = Profile(chosen.text) if chosen else usual.profile
    if chosen and not ceiling.covers(profile):
        findings.add(chosen.place, f"`{profile}` is above `max_profile`, which is `{ceiling}`; lower it or raise that")
    return Posture(
        work_mode=WorkMode(text(fields, "work_mode") or usual.work_mode),
        run_control=RunControl(text(fields, "run_control") or usual.run_control),
        profile=profile,
        model_mode=ModelMode(text(fields, "model_mode") or usual.model_mode),
        ai_mode=AiMode(text(fields, "ai_mode") or usual.ai_mode),
        reasoning=flag(fields, "reasoning", usual.reasoning),
    ).capped(ceiling)


def _below(fields: Fields, key: str) -> Fields:
    found = fields.fields.get(key)
    return found if isinstance(found, Fields) else Fields(Place(""))


def _folding(fields: Fields) -> Folding:
    given, usual = _below(fields, "summary"), Folding()
    return Folding(
        messages=number(given, "messages") or usual.messages,
        tokens=number(given, "tokens") or usual.tokens,
        keep=number(given, "keep") or usual.keep,
    )


def budget_in(fields: Fields) -> Budget:
    limits = _below(fields, "budget")
    return Budget(
        calls=number(limits, "calls"),
        minutes=number(limits, "minutes"),
        result_bytes=number(limits, "result_bytes"),
        repeated_failures=number(limits, "repeated_failures"),
    )
