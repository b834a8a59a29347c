"""What did the operator set in menugate.yaml?"""

import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_server.config.faults import FaultCollector, SourceLocation
from mcp_server.config.hosts import build_hosts
from mcp_server.config.network import read_program_destinations, read_web_access
from mcp_server.config.operator_schema import CONFIG, KEY, MEGABYTE, SECTION
from mcp_server.config.reader import Fields, Leaf, Node, parse_yaml, read_yaml_file
from mcp_server.config.shapes import fit, get_flag, get_items, get_leaf, get_leaves, get_number, get_records, get_text
from mcp_server.model.approvals import ApprovalChannel
from mcp_server.model.destinations import USUAL, Destinations, parse_destination, parse_destinations
from mcp_server.model.menus import Host, Listing
from mcp_server.model.policy import Budget, Reviewing, RuleKind, RuleText, SummaryLimits
from mcp_server.model.posture import AiMode, ModelMode, OnFailure, Posture, Profile, RunControl, WorkMode
from mcp_server.model.processes import ProcessLimits, SandboxPolicy
from mcp_server.model.text import quote_exactly
from mcp_server.model.tools import Effect
from mcp_server.model.web_access import WebAccess

if TYPE_CHECKING:
    from mcp_server.config.upstreams import ConfiguredUpstreams, ServerSections
    from mcp_server.config.value_references import MountPlaces

# The model that reviews finished runs: its endpoint, its name, and the environment variable with the key.

PORTS = {"http": 80, "https": 443}
REFERENCE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
URL_FORM = "write it like `https://host/v1/chat/completions`"


def read_reviewing(fields: Fields, findings: FaultCollector) -> Reviewing | None:
    section = fields.fields.get("review")
    if not isinstance(section, Fields):
        return None
    endpoint, model = get_leaf(section, "endpoint"), get_text(section, "model")
    address = _read_endpoint_address(endpoint, findings) if endpoint else None
    key = _read_key_variable(get_leaf(section, "key"), findings)
    if endpoint is None or address is None or not model:
        return None
    patience = get_number(section, "patience")
    reviewing = Reviewing(endpoint.text, *address, model=model, key=key)
    return replace(reviewing, patience=patience) if patience else reviewing


def _read_endpoint_address(endpoint: Leaf, findings: FaultCollector) -> tuple[str, int] | None:
    """Read host and port. Messages never repeat the URL, which may contain a secret."""
    try:
        parts = urlsplit(endpoint.text)
        host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        findings.add(endpoint.place, f"this is not a URL; {URL_FORM}")
        return None
    if "@" in parts.netloc:
        findings.add(endpoint.place, "the URL contains a user name or password; remove it and name a variable in `key`")
        return None
    if parts.scheme not in PORTS or not host or parts.fragment:
        findings.add(endpoint.place, f"this is not a web address; {URL_FORM}")
        return None
    try:
        parse_destination(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except ValueError as wrong:
        findings.add(endpoint.place, f"{quote_exactly(host)} {wrong}")
        return None
    return host, port


def _read_key_variable(key: Leaf | None, findings: FaultCollector) -> str:
    if key is None:
        return ""
    reference = REFERENCE.fullmatch(key.text)
    if reference is None:
        # Never quote it: it may be the key itself, and faults end up in logs.
        findings.add(key.place, "write `env:NAME`, the variable that holds the key, not the key itself")
        return ""
    return reference[1]


class HttpToken(Struct, frozen=True):
    """A bearer token of one principal. Only its SHA-256 is stored, so the file alone gives no access."""

    principal: str
    sha256: str
    max_profile: Profile


class OperatorConfig(Struct, frozen=True):
    rules: tuple[RuleText, ...] = ()
    max_profile: Profile = Profile.UNRESTRICTED
    posture: Posture = field(default_factory=Posture)
    """The posture to start with; never above `max_profile`."""
    budget: Budget = field(default_factory=Budget)
    menus: tuple[Path, ...] = ()
    prompts: Path | None = None
    hosts: tuple[Host, ...] = ()
    listing: Listing | None = None
    """None if era, transport and host decide."""
    approvals: ApprovalChannel = ApprovalChannel.ELICIT
    folding: SummaryLimits = field(default_factory=SummaryLimits)
    out_of_band: frozenset[str] = frozenset()
    """Effects and tools whose approvals no client may answer, even if `approvals` leaves the others to it."""
    sandbox: SandboxPolicy = SandboxPolicy.PREFERRED
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    network: Destinations = field(default_factory=lambda: parse_destinations(USUAL))
    """Which hosts sandboxed programs may reach at profile `trusted`."""
    web: WebAccess = field(default_factory=WebAccess)
    review: Reviewing | None = None
    """None if no model reviews finished runs."""
    tokens: tuple[HttpToken, ...] = ()
    upstreams: "ConfiguredUpstreams | None" = None
    """The servers under `mcpServers`; None if there are none."""
    health: OnFailure = OnFailure.ASK
    glance: bool = True
    """Whether one line about each call is kept beside the ledger for a while."""


def read_operator_config(
    path: Path,
    findings: FaultCollector,
    tools: Collection[str] | None,
    text: str | None = None,
    workspace: Path | None = None,
    places: "Callable[[], MountPlaces] | None" = None,
) -> OperatorConfig:
    """Read the file, or `text` if it was read before. With faults, it must not be used. Without `tools`, their names
    are not checked; without `workspace`, rules for single workspaces are left out, and without `places` all servers."""
    parsed = FaultCollector()
    node = read_yaml_file(path, parsed) if text is None else parse_yaml(text, str(path), parsed)
    servers = _take_out_servers(node, parsed, findings)
    fields = fit(node, CONFIG, findings) if node is not None else None
    if not isinstance(fields, Fields):
        return OperatorConfig()
    ceiling, listing = Profile(get_text(fields, "max_profile") or Profile.UNRESTRICTED), get_text(fields, "listing")
    network = read_program_destinations(fields, findings)
    return OperatorConfig(
        rules=(*read_rules(fields), *_read_workspace_rules(fields, workspace, findings)),
        max_profile=ceiling,
        posture=_read_posture(fields, ceiling, findings),
        budget=read_budget(fields),
        menus=tuple(path.parent / folder.text for folder in get_leaves(fields, "menus")),
        prompts=_read_prompts_folder(path, fields, findings),
        hosts=build_hosts(get_records(fields, "hosts"), findings),
        listing=Listing(listing) if listing not in ("", "auto") else None,
        health=OnFailure(get_text(fields, "health") or OnFailure.ASK),
        glance=get_text(fields, "glance") != "off",
        approvals=ApprovalChannel(get_text(fields, "approvals") or ApprovalChannel.ELICIT),
        folding=_read_summary_limits(fields),
        out_of_band=_read_out_of_band(fields, tools, findings),
        sandbox=SandboxPolicy(get_text(fields, "sandbox") or SandboxPolicy.PREFERRED),
        limits=_read_process_limits(fields),
        network=network,
        web=read_web_access(path, fields, findings),
        review=read_reviewing(fields, findings),
        tokens=_read_tokens(fields, ceiling),
        upstreams=_read_servers(servers, places, network if "tokens" in fields.fields else None),
    )


def _read_servers(
    servers: "ServerSections | None", places: "Callable[[], MountPlaces] | None", reachable: Destinations | None
) -> "ConfiguredUpstreams | None":
    return servers.read(places(), reachable) if servers and places else None


def _take_out_servers(node: Node | None, parsed: FaultCollector, findings: FaultCollector) -> "ServerSections | None":
    """Take the servers out of the file. The faults of the file itself go to `findings`."""
    if not isinstance(node, Fields) or not (KEY in node.fields or SECTION in node.fields):
        findings.extend(parsed)
        return None
    from mcp_server.config.upstreams import ServerSections  # most people mount nothing

    return ServerSections.take_out(node, parsed, findings)


def _read_tokens(fields: Fields, ceiling: Profile) -> tuple[HttpToken, ...]:
    return tuple(
        HttpToken(get_text(one, "principal"), get_text(one, "sha256"), Profile(get_text(one, "max_profile") or ceiling))
        for one in get_records(fields, "tokens")
    )


def _read_out_of_band(fields: Fields, tools: Collection[str] | None, findings: FaultCollector) -> frozenset[str]:
    section = fields.fields.get("approvals")
    entries = get_leaves(section, "out_of_band") if isinstance(section, Fields) else ()
    names = (*(effect.value for effect in Effect), *(tools or ()))
    for entry in entries:
        if tools is not None and entry.text not in names:
            findings.add(entry.place, f"`{entry.text}` is neither an effect nor a tool", entry.text, names)
    return frozenset(entry.text for entry in entries)


def _read_prompts_folder(path: Path, fields: Fields, findings: FaultCollector) -> Path | None:
    entry = get_leaf(fields, "prompts")
    if entry is None:
        return None
    folder = path.parent / entry.text
    if not folder.is_dir():
        findings.add(entry.place, f"there is no folder {quote_exactly(str(folder))}")
    return folder


def read_rules(fields: Fields) -> tuple[RuleText, ...]:
    lists = fields.fields.get("rules")
    if not isinstance(lists, Fields):
        return ()
    rules = [_read_rule(kind, entry) for kind in RuleKind for entry in get_items(lists, kind.value)]
    return tuple(rule for rule in rules if rule is not None)


def _read_workspace_rules(fields: Fields, workspace: Path | None, findings: FaultCollector) -> tuple[RuleText, ...]:
    """Return the rules for this workspace only. They join the others, so everything about rules applies to them."""
    sections = fields.fields.get("workspaces")
    if workspace is None or not isinstance(sections, Fields):
        return ()
    real, rules = os.path.realpath(workspace), list[RuleText]()
    for name, section in sections.fields.items():
        if os.path.normpath(name) == real and isinstance(section, Fields):
            rules += read_rules(section)
        elif os.path.realpath(name) == real:
            # A link may lead elsewhere tomorrow, and a `deny` must not be lost with it.
            findings.add(sections.keys[name], f"a link leads to this workspace; write its path, {quote_exactly(real)}")
    return tuple(rules)


def _read_rule(kind: RuleKind, entry: object) -> RuleText | None:
    match entry:
        case Leaf():
            return RuleText(kind, entry.text, entry.place.source)
        case Fields():
            rule = get_leaf(entry, "rule")
            return rule and RuleText(
                kind,
                rule.text,
                rule.place.source,
                match=tuple(example.text for example in get_leaves(entry, "match")),
                not_match=tuple(example.text for example in get_leaves(entry, "not_match")),
                reason=get_text(entry, "reason"),
            )
        case _:
            return None


def _read_posture(fields: Fields, ceiling: Profile, findings: FaultCollector) -> Posture:
    usual = Posture()
    entry = get_leaf(fields, "profile")
    profile = Profile(entry.text) if entry else usual.profile
    if entry and not ceiling.covers(profile):
        findings.add(entry.place, f"`{profile}` is above `max_profile`, `{ceiling}`; lower one or raise the other")
    return Posture(
        work_mode=WorkMode(get_text(fields, "work_mode") or usual.work_mode),
        run_control=RunControl(get_text(fields, "run_control") or usual.run_control),
        profile=profile,
        model_mode=ModelMode(get_text(fields, "model_mode") or usual.model_mode),
        ai_mode=AiMode(get_text(fields, "ai_mode") or usual.ai_mode),
        reasoning=get_flag(fields, "reasoning", usual.reasoning),
    ).cap_profile(ceiling)


def _get_section(fields: Fields, key: str) -> Fields:
    section = fields.fields.get(key)
    return section if isinstance(section, Fields) else Fields(SourceLocation(""))


def _read_process_limits(fields: Fields) -> ProcessLimits:
    section, usual = _get_section(fields, "limits"), ProcessLimits()
    memory, file = get_number(section, "memory_mb"), get_number(section, "file_mb")
    return ProcessLimits(
        processes=get_number(section, "processes") or usual.processes,
        memory=memory * MEGABYTE if memory else usual.memory,
        file=file * MEGABYTE if file else usual.file,
    )


def _read_summary_limits(fields: Fields) -> SummaryLimits:
    section, usual = _get_section(fields, "summary"), SummaryLimits()
    return SummaryLimits(
        messages=get_number(section, "messages") or usual.messages,
        tokens=get_number(section, "tokens") or usual.tokens,
        keep=get_number(section, "keep") or usual.keep,
    )


def read_budget(fields: Fields) -> Budget:
    limits = _get_section(fields, "budget")
    return Budget(
        calls=get_number(limits, "calls"),
        minutes=get_number(limits, "minutes"),
        result_bytes=get_number(limits, "result_bytes"),
        repeated_failures=get_number(limits, "repeated_failures"),
    )
