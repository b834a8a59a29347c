"""May this tool run? The reviewed cases, and what must hold in every state there is."""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_server.model.menus import META_TOOLS
from mcp_server.model.phases import REACHABLE, Phase, find_step
from mcp_server.model.policy import Budget, BudgetUse, Call, Decision, Policy, RuleKind, Rules, Verdict
from mcp_server.model.posture import AiMode, Posture, Profile, RunControl, Stage, WorkMode
from mcp_server.model.sessions import Hold, Holder, Session
from mcp_server.model.tools import ACTING, Demand, Tool
from mcp_server.policy import decision
from mcp_server.policy.decision import LAYERS, decide, list_visible_tools
from mcp_server.policy.rules import compile_rules
from tests.policy.world import EFFECTS, WORK, check, example, menus, policy, table, texts, tools
from tests.sizes import sample, scale
from tools.catalog import READ_LINE

CASES: list[tuple[str, Mapping[str, Any]]] = [
    (f"{group['group']} {number}", case)
    for group in table("decisions")
    for number, case in enumerate(group["cases"], 1)
]
KEYS = {"mode", "pinned", "stage", "work", "control", "profile", "ai", "tool", "args", "see", "approved", "rules"} | {
    *("ceiling", "budget", "spent", "answer", "layer", "code", "rule", "says", "phase", "within", "flat", "own"),
    *("reasoning", "reasoned", "held", "run", "why", "led"),
}


def hold(written: Mapping[str, Any]) -> Hold:
    return Hold(Holder(written["by"]), written["reason"], written.get("run", ""))


def answer(case: Mapping[str, Any]) -> Decision:
    assert case.keys() <= KEYS, case.keys() - KEYS
    name = case["tool"]
    posture = Posture(
        work_mode=WorkMode(case.get("work", "build")),
        run_control=RunControl(case.get("control", "autonomous")),
        profile=Profile(case.get("profile", "normal")),
        ai_mode=AiMode(case.get("ai", "agent")),
        reasoning=case.get("reasoning", False),
    )
    stage = case.get("stage", "act")
    session = Session(
        *("s", "p", case.get("mode"), None if stage == "none" else Stage(stage)),
        **{name: case[name] for name in ("pinned", "flat", "phase", "run", "reasoned") if name in case},
        held=hold(case["held"]) if "held" in case else None,
    )
    arguments = None if case.get("see") else case.get("args", example(name))
    call = Call(
        name,
        arguments,
        case.get("approved", False),
        BudgetUse(**case.get("spent", {})),
        case.get("within"),
        case.get("led"),
    )
    ceiling = Profile(case.get("ceiling", "unrestricted"))
    own = case.get("own", False)
    house = policy(case.get("rules"), ceiling, Budget(**case.get("budget", {})), own, case.get("why", ""))
    return decide(tools(own).get(name), call, session, posture, house)


def wrong(case: Mapping[str, Any]) -> str | None:
    got = answer(case)
    for key, value in (("answer", got.verdict), ("layer", got.layer), ("code", got.code)):
        if case.get(key) != value:
            return f"{key} is {value}, not {case.get(key)}: {got.reason}"
    if case.get("rule", got.rule) != got.rule:
        return f"rule is {got.rule}"
    text = f"{got.reason} {got.way_out}"
    return None if case.get("says", "") in text else f"does not say so: {text}"


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES])
def test_reviewed_cases(case: Mapping[str, Any]) -> None:
    assert wrong(case) is None, wrong(case)


def test_the_table_is_as_large_as_it_says_it_is() -> None:
    assert len(CASES) >= 400
    assert len({str(case) for _, case in CASES}) == len(CASES), "a case stands there twice"


def fails(case: Mapping[str, Any]) -> bool:
    try:
        return wrong(case) is not None
    except AssertionError:
        return True


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_without_any_one_layer_the_table_fails(layer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "LAYERS", tuple(one for one in LAYERS if one is not layer))
    assert any(fails(case) for _, case in CASES)


@pytest.mark.parametrize("place", range(len(LAYERS) - 1))
def test_with_two_neighbouring_layers_swapped_the_table_fails(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    order = list(LAYERS)
    order[place], order[place + 1] = order[place + 1], order[place]
    monkeypatch.setattr(decision, "LAYERS", tuple(order))
    assert any(fails(case) for _, case in CASES)


def states() -> Iterator[tuple[Session, Posture]]:
    modes = (None, *(mode.name for mode in menus()))
    for mode, stage, profile, work, ai in product(modes, (None, *Stage), Profile, WorkMode, AiMode):
        yield Session("s", "p", mode, stage), Posture(work_mode=work, profile=profile, ai_mode=ai)


@pytest.mark.heavy
def test_no_phase_is_a_dead_end_and_each_hides_exactly_what_it_refuses() -> None:
    """In every phase, and in one that nobody knows: the meta-tools, and where anything acts the way on and the way
    back; a phase takes tools away and gives none, and other modes are as they always are."""
    house = policy()
    meta = {name for name, tool in tools().items() if tool.meta}
    ways = {"advance_phase", "return_to_fix_phase", "get_phase_status"}
    every = product((*Phase, "other"), Profile, ACTING, menus(), (False, True))
    for phase, profile, stage, mode, flat in sample(every):
        posture, free = Posture(profile=profile), Session("s", "p", None if flat else mode.name, stage, flat=flat)
        session = replace(free, phase=phase)
        seen, seen_free = (
            set(list_visible_tools(session, posture, house)),
            set(list_visible_tools(free, posture, house)),
        )
        assert meta <= seen <= seen_free
        if mode.name == "swe" or flat:
            assert ways <= seen
            step = find_step(phase)
            allowed = (step.tools if step else set[str]()) | REACHABLE | meta
            elsewhere = (
                {name for one in menus() for name in one.tools} - set(menus().modes[0].tools) if flat else set[str]()
            )
            assert seen == seen_free & (allowed | elsewhere)
        else:
            assert seen == seen_free
        for name, tool in tools().items():
            got = decide(tool, Call(name, example(name)), session, posture, house)
            assert (name in seen) == (got.verdict is not Verdict.DENY), (name, session, got)


@pytest.mark.heavy
def test_every_state_is_decided_and_hides_exactly_what_it_refuses() -> None:
    house, every = policy(), list(states())
    # Every mode and none, every stage and an unknown one, every profile, kind of work and of answer.
    assert len(every) == (len(list(menus())) + 1) * (len(Stage) + 1) * len(Profile) * len(WorkMode) * 2
    for session, posture in sample(every):
        for name, tool in tools().items():
            shown = decide(tool, Call(name), session, posture, house)
            asked = decide(tool, Call(name, example(name)), session, posture, house)
            assert shown.verdict is not Verdict.ASK
            assert (shown.verdict is Verdict.DENY) == (asked.verdict is Verdict.DENY), (name, session, posture, asked)
            if shown.verdict is Verdict.DENY:
                assert (shown.layer, shown.code) == (asked.layer, asked.code)
                assert shown.reason and shown.way_out
            assert tool.meta <= (asked.verdict is Verdict.ALLOW), "a dead end"


@pytest.mark.heavy
def test_what_a_lower_profile_may_a_higher_one_may() -> None:
    house = policy()
    for mode, work, stage in sample(product(menus(), WorkMode, Stage)):
        seen: list[set[str]] = []
        for profile in Profile:
            posture = Posture(profile=profile, work_mode=work)
            session = Session("s", "p", mode.name, stage)
            seen.append(
                {name for name in tools() if decide(tools()[name], Call(name), session, posture, house).is_allowed}
            )
        assert seen[0] <= seen[1] <= seen[2] <= seen[3]
    build = [{name for name, tool in tools().items() if profile.covers(tool.profile)} for profile in Profile]
    assert build[0] < build[1] < build[2] <= build[3]


def test_the_policy_table_keeps_its_promises() -> None:
    rows = table("tools")["tools"]
    for name, tool in tools().items():
        at = [mode.name for mode in menus().find_modes_with(name)]
        assert sorted(at) == sorted(rows[name]["modes"])
        assert tool.meta == (name in META_TOOLS)
        assert tool.meta or Stage.DELIVERY_CHECK not in tool.stages


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KNOWN = st.sampled_from(["command", "file_path", "path", "files", "timeout", "limit", "repo", "permanent", "options"])
ARGUMENTS = st.dictionaries(KNOWN | st.text(max_size=8), VALUES, max_size=4)
NAMES = st.sampled_from(sorted(tools()))
POSTURES = st.builds(
    Posture,
    work_mode=st.sampled_from(WorkMode),
    run_control=st.sampled_from(RunControl),
    profile=st.sampled_from(Profile),
    ai_mode=st.sampled_from(AiMode),
)
SESSIONS = st.builds(
    Session,
    st.just("s"),
    st.just("p"),
    st.sampled_from([None, "nowhere", *(mode.name for mode in menus())]),
    st.sampled_from([None, *Stage]),
    pinned=st.booleans(),
)
RULES = st.sampled_from(
    [
        *("Read", "bash(git push:*)", "bash(frobnicate:*)", "Edit(src/**)", "git_*", "*", "Read(*.env)"),
        *("bash(timeout gt 60)", "fs_*(path glob 'secrets/**')", "git_create_pr(repo neq 'a/b' and draft exists)"),
        *("git_add(files contains '.env')", "mcp_tool(options.deep.key eq 1 or)", "web_search(query regex '^a+b')"),
    ]
).filter(lambda text: " or" not in text)
WRITTEN = st.dictionaries(
    st.sampled_from(["block", "deny", "ask", "allow"]), st.lists(RULES, max_size=2, unique=True), max_size=3
)
CALLS = st.builds(Call, NAMES, st.none() | ARGUMENTS, st.booleans(), st.builds(BudgetUse, st.integers(0, 9)))
WIDTH = {Verdict.DENY: 0, Verdict.ASK: 1, Verdict.ALLOW: 2}


def house(written: Mapping[str, list[str]]) -> Policy | None:
    """The policy with these rules; None where the compiler refuses them, which is its own test."""
    rules = compile_rules(texts(written), tools(), READ_LINE)
    if not isinstance(rules, Rules):
        return None
    budget = Budget(calls=5)
    return Policy(tools(), menus(), EFFECTS, rules, budget=budget, unfit=check(), read_line=READ_LINE, work_modes=WORK)


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None, derandomize=True)
@given(CALLS, SESSIONS, POSTURES, WRITTEN, st.sampled_from(["block", "deny", "ask"]), RULES)
def test_a_further_narrowing_rule_never_widens(
    call: Call, session: Session, posture: Posture, written: dict[str, list[str]], kind: str, rule: str
) -> None:
    before, after = house(written), house({kind: [rule]})
    if before is None or after is None:
        return
    more = replace(before, rules=Rules(before.rules.every + after.rules.every))
    tool = tools()[call.tool]
    wide, narrow = (decide(tool, call, session, posture, one).verdict for one in (before, more))
    assert WIDTH[narrow] <= WIDTH[wide]


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None, derandomize=True)
@given(CALLS, SESSIONS, POSTURES, WRITTEN, st.sampled_from(Profile), st.sampled_from(Profile))
def test_a_lower_profile_or_ceiling_never_widens(
    call: Call, session: Session, posture: Posture, written: dict[str, list[str]], lower: Profile, ceiling: Profile
) -> None:
    with_rules = house(written)
    if with_rules is None:
        return
    tool = tools()[call.tool]
    wide = decide(tool, call, session, posture, with_rules)
    narrow = decide(tool, call, session, posture.cap_profile(lower), replace(with_rules, ceiling=ceiling))
    assert WIDTH[narrow.verdict] <= WIDTH[wide.verdict]


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None, derandomize=True)
@given(CALLS, SESSIONS, POSTURES, WRITTEN)
def test_an_allow_rule_lifts_questions_only_and_an_approval_no_refusal(
    call: Call, session: Session, posture: Posture, written: dict[str, list[str]]
) -> None:
    with_rules = house(written)
    if with_rules is None:
        return
    tool = tools()[call.tool]
    without = replace(with_rules, rules=Rules(tuple(r for r in with_rules.rules.every if r.kind is not RuleKind.ALLOW)))
    first, second = (decide(tool, call, session, posture, one) for one in (without, with_rules))
    assert (first.verdict is Verdict.DENY) == (second.verdict is Verdict.DENY)
    approved = decide(tool, replace(call, approved=True), session, posture, with_rules)
    assert (approved.verdict is Verdict.DENY) == (second.verdict is Verdict.DENY)
    assert approved.verdict is not Verdict.ASK


@pytest.mark.heavy
@settings(max_examples=scale(200), deadline=None, derandomize=True)
@given(st.none() | NAMES, st.text(), ARGUMENTS, SESSIONS, POSTURES, WRITTEN)
def test_any_call_gets_one_and_the_same_answer(
    name: str | None,
    text: str,
    arguments: dict[str, Any],
    session: Session,
    posture: Posture,
    written: dict[str, list[str]],
) -> None:
    with_rules = house(written)
    if with_rules is None:
        return
    call = Call(name or text, arguments)
    answers = [decide(tools().get(call.tool), call, session, posture, with_rules) for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0].is_allowed or (answers[0].layer and answers[0].code and answers[0].reason and answers[0].way_out)
    assert not answers[0].is_allowed or answers[0].demand


def test_a_refusal_never_tells_the_model_to_raise_its_rights() -> None:
    for _, case in CASES:
        text = answer(case).way_out
        assert (
            "profile" not in text or "Only the user can raise the profile" in text or "No approval or profile" in text
        ), text


def broken(*_: Any) -> Any:
    raise RuntimeError("secret detail")


def said(demand: Demand, _arguments: Any) -> Demand:
    return demand


@pytest.mark.parametrize("field", ["unfit", "demand", "odd demand", "rule"])
def test_what_cannot_be_judged_is_refused(field: str) -> None:
    tool, sound = tools()["Read"], policy({"deny": ["Read(x/**)"]} if field == "rule" else {})
    if field == "unfit":
        sound = replace(sound, unfit=broken)
    elif field == "rule":
        sound = replace(sound, rules=Rules(tuple(replace(rule, applies=broken) for rule in sound.rules.every)))
    else:
        odd: Any = "everything"
        tool = dataclasses.replace(
            tool, demand=broken if field == "demand" else partial(said, Demand(odd, Profile.RESTRICTED))
        )
    got = decide(tool, Call("Read", {"file_path": "x/a"}), Session("s", "p", "swe"), Posture(), sound)
    assert got.verdict is Verdict.DENY
    assert "secret" not in got.reason


def test_a_broken_allow_rule_lifts_nothing() -> None:
    house = policy({"allow": ["Edit(src/**)"]})
    house = replace(house, rules=Rules(tuple(replace(rule, applies=broken) for rule in house.rules.every)))
    call = Call("Edit", example("Edit"))
    got = decide(tools()["Edit"], call, Session("s", "p", "swe"), Posture(work_mode=WorkMode.CHAT), house)
    assert got.verdict is Verdict.ASK


def test_a_tool_in_no_menu_is_in_no_mode_to_enter() -> None:
    lost = dataclasses.replace(tools()["Read"], name="lost")
    house = replace(policy(), tools={**tools(), "lost": lost})
    got = decide(lost, Call("lost", {}), Session("s", "p", "swe"), Posture(), house)
    assert (got.layer, got.code) == ("mode", "WRONG_MODE")
    assert "menu_enter" not in got.way_out


def test_the_order_of_rules_never_matters() -> None:
    first = policy({"deny": ["Read(a/**)", "Read(*.py)"]})
    turned = replace(first, rules=Rules(tuple(reversed(first.rules.every))))
    call = Call("Read", {"file_path": "a/b.py"})
    answers = [decide(tools()["Read"], call, Session("s", "p", "swe"), Posture(), one) for one in (first, turned)]
    assert answers[0] == answers[1]


def test_the_demand_is_granted_with_the_answer() -> None:
    tool: Tool = tools()["bash"]
    got = decide(tool, Call("bash", {"command": "ls"}), Session("s", "p", "swe"), Posture(), policy())
    assert got.demand == Demand(tool.get_demand({"command": "ls"}).effect, Profile.NORMAL)
