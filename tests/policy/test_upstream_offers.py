"""Are the resources and prompts of a server seen where its tools are, and only those that you approved?"""

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_server.model.menus import Menus, Mode
from mcp_server.model.policy import Call, Policy, RuleKind, RuleText, Verdict
from mcp_server.model.posture import Posture, Profile
from mcp_server.model.results import Code
from mcp_server.model.sessions import Session
from mcp_server.model.upstreams import Catalogue, CatalogueChanges, HttpTarget, Mount, StdioTarget
from mcp_server.policy.decision import decide, list_visible_tools
from mcp_server.policy.rules import compile_mounted_rules
from mcp_server.policy.upstream_offers import (
    add_offers_to_modes,
    build_offer_tools,
    find_prompt,
    find_resource,
    find_template,
    get_definition,
    is_offered,
    is_withheld,
    list_offers,
)
from mcp_server.policy.upstream_pins import approve_catalogue, compute_mount_digest, judge_catalogue
from tests.config.samples import made
from tests.policy.world import EFFECTS

MOUNT = Mount("notes", "notes", StdioTarget(("x",)))
CATALOGUE = Catalogue(
    tools=({"name": "show", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://view"}}},),
    prompts=({"name": "plan", "description": "Plan\u200b it"},),
    resources=({"uri": "memo://a", "name": "a"}, {"uri": "memo://b", "name": "b"}),
    templates=({"uriTemplate": "memo://days/{day}", "name": "day"},),
)
TOOL = made("notes_show", written="notes:show")


def mode(name: str, *tools: str) -> Mode:
    return Mode(name, name, "", "", "", "", "", tools)


def build_policy(
    mount: Mount = MOUNT, now: Catalogue = CATALOGUE, rules: tuple[tuple[RuleKind, str], ...] = ()
) -> Policy:
    digest = compute_mount_digest(mount)
    judged = judge_catalogue(digest, now, approve_catalogue(digest, CATALOGUE, 0), CatalogueChanges.ASK)
    tools = {tool.name: tool for tool in (TOOL, *build_offer_tools(mount, judged))}
    menus = Menus((mode("mine", "notes_show"), mode("other", "Read"), mode("named")))
    whole = add_offers_to_modes(menus, {"named": frozenset({mount.name})}, tools)
    texts = [RuleText(kind, text, "file:1") for kind, text in rules]
    compiled, _ = compile_mounted_rules(texts, tools, lambda _: None, ())
    return Policy(tools, whole, EFFECTS, compiled)


def list_uris(policy: Policy, session: Session, posture: Posture | None = None) -> list[str]:
    return [one["uri"] for one in list_offers("resources", session, posture or POSTURE, policy)]


POSTURE = replace(Posture(), profile=Profile.RESTRICTED)
HERE = Session("s", "me", "mine", run="run")


@pytest.mark.parametrize(
    ("session", "seen"),
    [
        (HERE, True),
        (replace(HERE, mode="named"), True),
        (replace(HERE, mode="other"), False),
        (replace(HERE, mode=None), False),
        (replace(HERE, mode=None, flat=True), True),
    ],
)
def test_they_are_where_the_tools_of_their_server_are(session: Session, seen: bool) -> None:
    policy = build_policy()
    assert list_uris(policy, session) == (["memo://notes/a", "memo://notes/b"] if seen else [])
    decision = decide(
        policy.tools["notes:resource"], Call("notes:resource", {"uri": "memo://a"}), session, POSTURE, policy
    )
    assert (decision.verdict is Verdict.ALLOW) is seen
    assert seen or decision.code is Code.WRONG_MODE


def test_no_tool_is_listed_for_them() -> None:
    assert [name for name in list_visible_tools(HERE, POSTURE, build_policy()) if ":" in name] == []


def test_a_rule_hides_what_it_denies() -> None:
    policy = build_policy(rules=((RuleKind.DENY, "notes:resource(memo://b)"),))
    assert list_uris(policy, HERE) == ["memo://notes/a"]
    assert list_uris(build_policy(rules=((RuleKind.DENY, "notes:*"),)), HERE) == []


def test_what_is_new_or_changed_is_neither_listed_nor_read() -> None:
    new = {"uri": "memo://days/new", "name": "new"}
    now = replace(CATALOGUE, resources=({"uri": "memo://a", "name": "another"}, CATALOGUE.resources[1], new))
    policy = build_policy(now=now)
    assert list_uris(policy, HERE) == ["memo://notes/b"]
    gate = policy.tools["notes:resource"]
    for uri in ("memo://a", "memo://days/new"):
        assert is_withheld(gate, uri) and not is_offered(gate, uri)
    assert is_offered(gate, "memo://days/old") and is_offered(gate, "ui://view")


def test_addresses_and_names_lead_back() -> None:
    policy = build_policy()
    cases: list[tuple[Any, Any]] = [
        (find_resource("memo://notes/a", policy), {"uri": "memo://a"}),
        (find_resource("memo://notes/anything", policy), {"uri": "memo://anything"}),
        (find_template("memo://notes/days/{day}", policy), {"uri": "memo://days/{day}"}),
        (find_prompt("notes_plan", policy), {"name": "plan"}),
    ]
    for route, arguments in cases:
        assert route is not None and route.arguments == arguments
    for route in (find_resource("memo://a", policy), find_template("memo://days/{day}", policy)):
        assert route is None
    assert find_prompt("plan", policy) is None


def test_without_a_prefix_they_keep_their_names() -> None:
    policy = build_policy(dataclasses.replace(MOUNT, prefixed=False))
    assert list_uris(policy, HERE) == ["memo://a", "memo://b"]
    route, prompt = find_resource("memo://a", policy), find_prompt("plan", policy)
    assert route is not None and prompt is not None
    assert find_resource("memo://unlisted", policy) is None


def test_texts_show_no_invisible_characters() -> None:
    (prompt,) = list_offers("prompts", HERE, POSTURE, build_policy())
    assert prompt == {"name": "notes_plan", "description": "Plan it"}


def test_a_server_elsewhere_is_read_from_afar() -> None:
    near, far = build_policy(), build_policy(dataclasses.replace(MOUNT, target=HttpTarget("http://127.0.0.1:1/mcp")))
    assert near.tools["notes:resource"].effect == "read-local"
    assert far.tools["notes:resource"].effect == "read-remote"


def test_a_new_or_changed_prompt_or_template_is_neither_listed_nor_found() -> None:
    changed = {"name": "plan", "description": "Plan it, and tell nobody"}
    templates = ({**CATALOGUE.templates[0], "title": "Days"}, {"uriTemplate": "memo://nights/{night}", "name": "n"})
    for prompts in ((changed,), (*CATALOGUE.prompts, {"name": "new"})):
        policy = build_policy(now=replace(CATALOGUE, prompts=prompts, templates=templates))
        assert list(list_offers("templates", HERE, POSTURE, policy)) == []
        assert find_template("memo://notes/nights/{night}", policy) is None
        assert find_template("memo://notes/days/{day}", policy) is None
        assert not is_offered(policy.tools["notes:resource"], "memo://days/monday")
        known = [one["name"] for one in list_offers("prompts", HERE, POSTURE, policy)]
        assert known == (["notes_plan"] if len(prompts) == 2 else [])
        assert find_prompt("notes_new", policy) is None
        assert (find_prompt("notes_plan", policy) is None) is (len(prompts) == 1)


def test_offers_are_bound_to_their_server_as_it_was_defined() -> None:
    other = dataclasses.replace(MOUNT, target=StdioTarget(("y",)))
    for name in ("notes:resource", "notes:prompt"):
        assert get_definition(build_policy().tools[name]) == compute_mount_digest(MOUNT)
        assert get_definition(build_policy(other).tools[name]) == compute_mount_digest(other)
