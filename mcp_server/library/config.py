"""What has the operator decided? The file `menugate.yaml`, as one frozen value."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from mcp_server.library.faults import Findings, Place
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
from mcp_server.model.destinations import USUAL, Destination, Destinations, destination, destinations
from mcp_server.model.menu import Host, Listing
from mcp_server.model.policy import Budget, Kind, RuleText
from mcp_server.model.ports.processes import Limits, Sandboxing
from mcp_server.model.posture import AiMode, ModelMode, OnFailure, Posture, Profile, RunControl, WorkMode
from mcp_server.model.runs.approval import Approvals
from mcp_server.model.tool import Effect


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
    hosts: tuple[Host, ...] = ()
    listing: Listing | None = None
    """None leaves the choice to era, transport and host."""
    approvals: Approvals = Approvals.ELICIT
    out_of_band: frozenset[str] = frozenset()
    """Effects and tools that no client may answer for, where `approvals` leaves the others to it."""
    sandbox: Sandboxing = Sandboxing.PREFERRED
    limits: Limits = field(default_factory=Limits)
    network: Destinations = field(default_factory=lambda: destinations(USUAL))
    """What programs in a sandbox may reach at profile trusted, and which inner addresses anybody may."""
    tokens: tuple[Token, ...] = ()
    health: OnFailure = OnFailure.ASK


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
MEGABYTE = 1 << 20
LIMIT = Whole(1, 1_000_000_000)
CONFIG = Record(
    {
        "rules": Key(
            Record({kind.value: Key(RULES, says) for kind, says in KINDS.items()}, "Four lists; the strongest wins."),
            "what may be called, and with which arguments",
        ),
        "max_profile": Key(PROFILES, "the highest permission profile anybody may choose"),
        "profile": Key(PROFILES, "the permission profile to start with"),
        **{name: Key(Choice(tuple(axis)), says) for name, (axis, says) in AXES.items()},
        "reasoning": Key(Flag(), "whether a run has the stages of reasoning"),
        "budget": Key(
            Record(
                {
                    "calls": Key(LIMIT, "calls in one run"),
                    "minutes": Key(LIMIT, "minutes from a run's first call"),
                    "result_bytes": Key(LIMIT, "bytes of results in one run"),
                    "repeated_failures": Key(LIMIT, "how often the same call may fail in a row"),
                },
                "What a run may spend; no limit where a key is left out.",
            ),
            "what a run may spend",
        ),
        "menus": Key(
            ListOf(
                Words(4096, r"(?!~).*", "a whole path or one beginning at this file's folder; `~` is not read here")
            ),
            "folders with further mode files, beginning at this file's folder",
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
        "health": Key(
            Choice(tuple(OnFailure)),
            "what a failed health check does: turn the work mode to `repair` (`auto`), ask for that, or only record it",
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
        "sandbox": Key(
            Choice(tuple(Sandboxing)),
            "commands run shut in; where no sandbox holds, `required` refuses them, and otherwise they need one "
            "profile more",
        ),
        "limits": Key(
            Record(
                {
                    "processes": Key(Whole(8, 100_000), "how many processes one command may start"),
                    "memory_mb": Key(Whole(64, 1_000_000), "megabytes of memory for one process"),
                    "file_mb": Key(Whole(1, 1_000_000), "megabytes of one file"),
                },
                "How much a command may use.",
            ),
            "how much a command may use",
        ),
        "network": Key(
            Record(
                {"allow": Key(ListOf(Words(300)), "such as `github.com:443`, `*.example.org`, `10.1.0.0/16`")},
                "The places there are, instead of the usual sources of packages and repositories.",
            ),
            "what commands may reach of the network at profile `trusted`",
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
        rules=_rules(fields),
        max_profile=ceiling,
        posture=_posture(fields, ceiling, findings),
        budget=_budget(fields),
        menus=tuple(path.parent / folder.text for folder in leaves(fields, "menus")),
        hosts=rows(records(fields, "hosts"), findings),
        listing=Listing(listing) if listing not in ("", "auto") else None,
        health=OnFailure(text(fields, "health") or OnFailure.ASK),
        approvals=Approvals(text(fields, "approvals") or Approvals.ELICIT),
        out_of_band=_out_of_band(fields, tools, findings),
        sandbox=Sandboxing(text(fields, "sandbox") or Sandboxing.PREFERRED),
        limits=_limits(fields),
        network=_network(fields, findings),
        tokens=tuple(
            Token(text(one, "principal"), text(one, "sha256"), Profile(text(one, "max_profile") or ceiling))
            for one in records(fields, "tokens")
        ),
    )


def _network(fields: Fields, findings: Findings) -> Destinations:
    found = fields.fields.get("network")
    if not isinstance(found, Fields) or "allow" not in found.fields:
        return destinations(USUAL)
    good: list[Destination] = []
    for entry in leaves(found, "allow"):
        try:
            good.append(destination(entry.text))
        except ValueError as wrong:
            findings.add(entry.place, f"`{entry.text}` {wrong}")
    return Destinations(tuple(good))


def _out_of_band(fields: Fields, tools: Collection[str], findings: Findings) -> frozenset[str]:
    chosen = fields.fields.get("approvals")
    named = leaves(chosen, "out_of_band") if isinstance(chosen, Fields) else ()
    known = (*(effect.value for effect in Effect), *tools)
    for one in named:
        if one.text not in known:
            findings.add(one.place, f"`{one.text}` is neither an effect nor a tool", one.text, known)
    return frozenset(one.text for one in named)


def _rules(fields: Fields) -> tuple[RuleText, ...]:
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


def _limits(fields: Fields) -> Limits:
    given, usual = fields.fields.get("limits"), Limits()
    if not isinstance(given, Fields):
        return usual
    memory, file = number(given, "memory_mb"), number(given, "file_mb")
    return Limits(
        processes=number(given, "processes") or usual.processes,
        memory=memory * MEGABYTE if memory else usual.memory,
        file=file * MEGABYTE if file else usual.file,
    )


def _budget(fields: Fields) -> Budget:
    limits = fields.fields.get("budget", Fields(Place("")))
    if not isinstance(limits, Fields):
        return Budget()
    return Budget(
        calls=number(limits, "calls"),
        minutes=number(limits, "minutes"),
        result_bytes=number(limits, "result_bytes"),
        repeated_failures=number(limits, "repeated_failures"),
    )
