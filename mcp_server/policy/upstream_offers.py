"""Which resources and prompts does another server have here, and may they be seen and read?

They pass through the gate as calls of two tools that no client lists: `server:resource`, with the server's own address,
and `server:prompt`. A mode that has any tool of the server has them, too.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from mcp_server.model.menus import Menus
from mcp_server.model.policy import Call, Policy, Verdict
from mcp_server.model.posture import Posture
from mcp_server.model.sessions import Session
from mcp_server.model.text import CONTROLS, INVISIBLE
from mcp_server.model.tools import ACTING, REVIEWING, WARMUP, Effect, LazyFunction, RuleSubject, Schema, Tool
from mcp_server.model.upstreams import Definition, HttpTarget, Mount, MountBinding
from mcp_server.policy.decision import decide
from mcp_server.policy.upstream_effects import LOWEST
from mcp_server.policy.upstream_names import PROMPT, RESOURCE, UNCHANGED, slug_tool
from mcp_server.policy.upstream_pins import JudgedCatalogue, compute_mount_digest
from mcp_server.policy.upstream_uris import find_view, matches_template, prefix_block, prefix_uri, strip_uri

READ_RESOURCE = LazyFunction("mcp_server.calls.upstream_offers:relay_resource")
GET_PROMPT = LazyFunction("mcp_server.calls.upstream_offers:relay_prompt")
URI_SCHEMA: Schema = {
    "type": "object",
    "properties": {"uri": {"type": "string", "maxLength": 8000}},
    "required": ["uri"],
    "additionalProperties": False,
}
PROMPT_SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}
UNSEEN = re.compile(f"[{CONTROLS}{INVISIBLE}\ud800-\udfff]")
MAX_TEXT_CHARS = 1_000
URI_KEYS = {"resources": "uri", "templates": "uriTemplate"}


class OfferRoute(Struct, frozen=True):
    """Where a client's address or name leads: the tool behind which it is, and the call's arguments."""

    tool: Tool
    arguments: Mapping[str, Any]


class _Withheld(Struct, frozen=True):
    """What a server lists and you have not approved."""

    uris: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()


def build_offer_tools(mount: Mount, judged: JudgedCatalogue) -> Iterator[Tool]:
    """Build the tools through which the approved resources and prompts of a server pass."""
    offered = judged.offered
    withheld = _Withheld(
        *(
            tuple(one.part.name for one in judged.quarantined if one.part.kind == kind)
            for kind in ("resource", "template")
        )
    )
    views = [{"uri": uri} for tool in offered.tools if (uri := find_view(tool.get("_meta"))) is not None]
    if offered.resources or offered.templates or views:
        listed: dict[str, Any] = {"resources": offered.resources, "templates": offered.templates}
        listed |= {"views": tuple(views), "withheld": withheld}
        yield _build_tool(mount, RESOURCE, URI_SCHEMA, "uri", READ_RESOURCE, listed)
    if offered.prompts:
        yield _build_tool(mount, PROMPT, PROMPT_SCHEMA, "name", GET_PROMPT, {"prompts": offered.prompts})


def _build_tool(
    mount: Mount, kind: str, schema: Schema, subject: str, run: LazyFunction, offers: Mapping[str, Any]
) -> Tool:
    effect = Effect.READ_REMOTE if isinstance(mount.target, HttpTarget) else Effect.READ_LOCAL
    return Tool(
        name=f"{mount.name}:{kind}",
        title=f"{kind.capitalize()} of {mount.name}",
        description=f"Read a {kind} of the server {mount.name}.",
        arguments=schema,
        profile=LOWEST[effect],
        effect=effect,
        stages=WARMUP | ACTING | REVIEWING,
        run=partial(run, mount.name, MountBinding(compute_mount_digest(mount), mount.uri_prefix)),
        written=f"{mount.name}:{kind}",
        subject=(subject, RuleSubject.TEXT),
        timeout=mount.call_seconds,
        offers={"prefix": mount.uri_prefix, "slug": mount.slug if mount.prefixed else "", **offers},
    )


def add_offers_to_modes(menus: Menus, written: Mapping[str, frozenset[str]], tools: Mapping[str, Tool]) -> Menus:
    """Put the offers of each server into every mode with a tool of it. `written`: the servers that each mode names."""
    offers = [tool for tool in tools.values() if not tool.is_listed]
    if not offers:
        return menus

    def find_behind(name: str, listed: tuple[str, ...]) -> tuple[str, ...]:
        used = {_get_server(tools[one]) for one in listed if one in tools} | written.get(name, frozenset())
        return tuple(one.name for one in offers if _get_server(one) in used)

    return menus.add_behind(find_behind)


def _get_server(tool: Tool) -> str:
    return (tool.written or "").partition(":")[0]


def get_definition(tool: Tool) -> str:
    """Return the digest of the server's definition that this was built from, whether a tool or what offers pass."""
    run = tool.run
    bound = run.args if isinstance(run, partial) else ()
    return next((one.digest for one in bound if isinstance(one, MountBinding)), "")


def list_offers(kind: str, session: Session, posture: Posture, policy: Policy) -> Iterator[Definition]:
    """Yield what `decide` does not refuse, as clients see it."""
    for tool in policy.tools.values():
        if tool.offers is None or not tool.offers.get(kind) or not _is_allowed(tool, None, session, posture, policy):
            continue
        for one in tool.offers[kind]:
            if kind == "templates" or _is_allowed(tool, _build_arguments(kind, one), session, posture, policy):
                yield show_offer(tool, kind, one)


def _build_arguments(kind: str, offer: Definition) -> Mapping[str, Any]:
    return {"name": offer["name"]} if kind == "prompts" else {"uri": offer["uri"]}


def _is_allowed(
    tool: Tool, arguments: Mapping[str, Any] | None, session: Session, posture: Posture, policy: Policy
) -> bool:
    return decide(tool, Call(tool.name, arguments), session, posture, policy).verdict is not Verdict.DENY


def is_allowed(route: OfferRoute, session: Session, posture: Posture, policy: Policy) -> bool:
    """May this be watched or completed? Only what could be read, too."""
    return _is_allowed(route.tool, route.arguments, session, posture, policy)


def show_offer(tool: Tool, kind: str, offer: Definition) -> Definition:
    assert tool.offers is not None
    texts = {key: offer[key] for key in ("title", "description") if isinstance(offer.get(key), str)}
    offer = {**offer, **{key: UNSEEN.sub("", text).strip()[:MAX_TEXT_CHARS] for key, text in texts.items()}}
    if kind == "prompts":
        return {**offer, "name": name_prompt(tool, str(offer["name"]))}
    prefix, key = tool.offers["prefix"], URI_KEYS[kind]
    return {**prefix_block(prefix, offer), key: prefix_uri(prefix, str(offer[key]))}


def name_prompt(tool: Tool, name: str) -> str:
    assert tool.offers is not None
    slug = tool.offers["slug"]
    return name if not slug and UNCHANGED.fullmatch(name) else slug_tool(slug or _get_server(tool), name)


def find_resource(uri: str, policy: Policy) -> OfferRoute | None:
    """Find the server that has this address: the one that it names, else one that lists it as it is."""
    offering = [tool for tool in policy.tools.values() if tool.offers is not None and "resources" in tool.offers]
    for tool in offering:
        assert tool.offers is not None
        own = strip_uri(tool.offers["prefix"], uri)
        if own is not None:
            return OfferRoute(tool, {"uri": own})
    plain = (tool for tool in offering if prefix_uri((tool.offers or {})["prefix"], uri) == uri)
    found = next((tool for tool in plain if is_offered(tool, uri)), None)
    return OfferRoute(found, {"uri": uri}) if found else None


def find_template(template: str, policy: Policy) -> OfferRoute | None:
    """Find the server's own template behind this one."""
    for tool in policy.tools.values():
        for one in (tool.offers or {}).get("templates", ()):
            if show_offer(tool, "templates", one)["uriTemplate"] == template:
                return OfferRoute(tool, {"uri": one["uriTemplate"]})
    return None


def find_prompt(name: str, policy: Policy) -> OfferRoute | None:
    for tool in policy.tools.values():
        for one in (tool.offers or {}).get("prompts", ()):
            if name_prompt(tool, str(one["name"])) == name:
                return OfferRoute(tool, {"name": one["name"]})
    return None


def is_offered(tool: Tool, uri: str) -> bool:
    """True if the server lists this address of its own, if a tool shows it as its view, or if a template describes
    it."""
    offers = tool.offers or {}
    if uri in _get_withheld(tool).uris:
        return False
    if any(one["uri"] == uri for kind in ("resources", "views") for one in offers.get(kind, ())):
        return True
    return any(matches_template(str(one["uriTemplate"]), uri) for one in offers.get("templates", ()))


def is_withheld(tool: Tool, uri: str) -> bool:
    """True if the server lists it, or a template that describes it, and you have not approved that as it is."""
    withheld = _get_withheld(tool)
    return uri in withheld.uris or any(matches_template(one, uri) for one in withheld.templates)


def _get_withheld(tool: Tool) -> _Withheld:
    return (tool.offers or {}).get("withheld", _Withheld())
