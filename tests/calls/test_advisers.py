"""Does what a model says about a run count only in the shape that was asked for, and is nothing sent but the record?"""

import dataclasses
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_server.calls.advisers import MAX_CALLS, MAX_LINE_CHARS, MAX_RECORD_CHARS, MAX_REPLY_BYTES, ModelAdviser
from mcp_server.calls.reviews import MAX_NAMED, CheckResult, FinishedRun
from mcp_server.config.load import DATA
from mcp_server.config.prompts import PromptFolder as Folder
from mcp_server.config.prompts import Prompts
from mcp_server.guards.network.network import build_single_place_network
from mcp_server.guards.redaction import Redactor
from mcp_server.model.destinations import parse_destinations
from mcp_server.model.network import Request
from mcp_server.model.parts import asdict
from mcp_server.model.policy import Reviewing
from mcp_server.model.posture import Profile
from mcp_server.model.reports import LISTS, AdviserOpinion, RunReport, parse_report
from mcp_server.model.results import Refusal
from mcp_server.model.sessions import Session
from mcp_server.state.engine.rows import Row
from mcp_server.state.store import Store
from tests.clients.oracle import Oracle, oracle
from tests.state.parts import Hands, Place
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.anyio
CASES: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables" / "reviews.yaml").read_text())
KEY, SECRET = "key-of-the-endpoint-1", "canary-in-the-answer-1"
VARIABLE = "the environment variable `REVIEW_KEY`"
EMPTY: dict[str, list[str]] = {name: [] for name in LISTS}
SESSION = Session("s1", "me", run="r1")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    hands = Hands()
    yield await hands.open(Place(tmp_path))
    await hands.close()


def reviewer(store: Store, one: Oracle, **changed: Any) -> ModelAdviser:
    wish = Reviewing(one.url, "127.0.0.1", one.port, "some-model", "REVIEW_KEY", patience=10.0)
    asks = ModelAdviser(
        reviewing=wish,
        key=KEY,
        network=build_single_place_network(wish.place, parse_destinations(())),
        store=store,
        redactor=Redactor((KEY, SECRET)),
        render_prompt=Prompts((Folder("shipped", DATA / "prompts"),)).render_prompt,
    )
    return replace(asks, **changed)


def run(*rows: dict[str, Any], answer: str = "All is well.", profile: Profile = Profile.NORMAL) -> FinishedRun:
    found = [Row(number, "", "", fields) for number, fields in enumerate(rows, 1)]
    return FinishedRun(SESSION, "success", found, answer, profile)


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
async def test_what_becomes_of_an_answer(case: dict[str, Any], store: Store) -> None:
    with oracle() as one:
        one.status, one.headers = case.get("status", 200), case.get("headers", {})
        if "said" in case:
            one.says(case["said"])
        else:
            one.body = case.get("body", "").encode()
        seen = await reviewer(store, one).review_run(run())
        assert len(one.heard) == 1
    assert (seen.issues, seen.missing, seen.suggested) == ((), (), ()), "its words never stand among what was checked"
    assert seen.opinion is not None and seen.opinion.sent == len(one.heard[0].body)
    if "unchecked" in case:
        assert seen.unchecked[0].startswith(f"a model's review: {case['unchecked']}")
        assert not seen.opinion.answered
        assert "secret-of" not in repr(seen)
        return
    assert (seen.unchecked, seen.opinion.answered, seen.opinion.summary) == ((), True, case.get("summary", ""))
    assert {name: list(getattr(seen.opinion, name)) for name in LISTS} == {name: case.get(name, []) for name in LISTS}


async def test_it_is_bounded_whatever_comes(store: Store) -> None:
    with oracle() as one:
        one.says(EMPTY | {"issues": ["x" * 10_000, *(f"issue {number}" for number in range(50))]})
        opinion = (await reviewer(store, one).review_run(run())).opinion
        assert opinion is not None and len(opinion.issues) == MAX_NAMED + 1
        assert len(opinion.issues[0]) <= MAX_LINE_CHARS
        assert opinion.issues[-1] == "and 41 more"
        one.body = b'{"choices": "' + b"x" * MAX_REPLY_BYTES + b'"}'
        assert "longer than 256 KB" in (await reviewer(store, one).review_run(run())).unchecked[0]
        one.body = b"[" * 200_000
        assert "is not JSON" in (await reviewer(store, one).review_run(run())).unchecked[0]
        one.says("[" * 60_000)
        assert "is not JSON" in (await reviewer(store, one).review_run(run())).unchecked[0]


async def test_a_secret_that_comes_back_is_not_shown(store: Store) -> None:
    with oracle() as one:
        one.says(EMPTY | {"summary": f"they use {KEY}", "missing_steps": [f"rotate {SECRET}"]})
        opinion = (await reviewer(store, one).review_run(run())).opinion
    assert opinion is not None
    assert (opinion.summary, opinion.missing_steps) == ("they use [redacted]", ("rotate [redacted]",))


async def test_what_is_sent_is_the_record_without_secrets_and_bounded(store: Store) -> None:
    rows = [
        {"kind": "intent", "tool": "Read", "effect": "read-local"},
        {"kind": "outcome", "intent": 1, "ending": "done", "tested": None, "code": None},
        {"kind": "intent", "tool": "bash", "effect": "run-command"},
        {"kind": "outcome", "intent": 3, "ending": "problem", "code": "TOOL_FAILED", "tested": "failed"},
        {"kind": "refusal", "tool": "fs_delete", "effect": "destroy-local", "code": "DENIED", "reason": SECRET},
        {"kind": "question", "tool": "fs_move", "effect": "write-local"},
        {"kind": "intent", "tool": "wait", "effect": "read-local"},
    ]
    with oracle() as one:
        one.says(EMPTY)
        await reviewer(store, one).review_run(run(*rows, answer=f"done with {SECRET} and {KEY}"))
        (heard,) = one.heard
        body = json.loads(heard.body)
        assert body.keys() == {"model", "messages", "stream"}
        assert (body["model"], body["stream"]) == ("some-model", False)
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert body["messages"][0]["content"] == Prompts((Folder("shipped", DATA / "prompts"),)).render_prompt(
            "qa/reviewer"
        )
        assert heard.said.startswith("\u27e6untrusted text from the record of a run")
        for line in (
            "- Read (read-local): done",
            "- bash (run-command): problem, TOOL_FAILED, tests failed",
            "- fs_delete (destroy-local): did not run, DENIED: [redacted]",
            "- fs_move (write-local): the user was asked first",
            "- wait (read-local): outcome unknown",
            "done with [redacted] and [redacted]",
        ):
            assert f"\n{line}\n" in heard.said
        assert KEY.encode() not in heard.body and SECRET.encode() not in heard.body
        assert heard.headers["authorization"] == f"Bearer {KEY}"
        many = [{"kind": "intent", "tool": f"tool_{number}", "effect": "read-local"} for number in range(10_000)]
        await reviewer(store, one).review_run(run(*many, answer="long " * 100_000))
        said = one.heard[1].said
        assert len(said) < MAX_RECORD_CHARS + 500
        assert f"({10_000 - MAX_CALLS} earlier ones left out)" in said
        assert "tool_9799 " not in said


@pytest.mark.parametrize(
    ("profile", "key", "why"),
    [
        (Profile.RESTRICTED, KEY, "not asked, because nothing is sent out at profile `restricted`"),
        (Profile.NORMAL, "", "not asked, because the environment variable `REVIEW_KEY` holds no key"),
        (
            Profile.NORMAL,
            "two\nlines",
            "not asked, because the environment variable `REVIEW_KEY` does not hold a valid key",
        ),
        (
            Profile.NORMAL,
            "schlüssel",
            "not asked, because the environment variable `REVIEW_KEY` does not hold a valid key",
        ),
    ],
)
async def test_where_nobody_is_asked_nothing_is_sent(profile: Profile, key: str, why: str, store: Store) -> None:
    with oracle() as one:
        seen = await reviewer(store, one, key=key).review_run(run(profile=profile))
        assert one.heard == []
    assert seen == CheckResult(unchecked=(f"a model's review: {why}",))


@pytest.mark.parametrize("profile", [one for one in Profile if one is not Profile.RESTRICTED])
async def test_above_restricted_it_is_asked(profile: Profile, store: Store) -> None:
    with oracle() as one:
        one.says(EMPTY)
        seen = await reviewer(store, one).review_run(run(profile=profile))
    assert seen.opinion is not None and seen.opinion.answered


async def test_who_does_not_answer_or_is_not_there_is_named(store: Store) -> None:
    with oracle() as one:
        one.silent = True
        asks = reviewer(store, one)
        late = await replace(asks, reviewing=replace(asks.reviewing, patience=0.2)).review_run(run())
    assert late.unchecked == ("a model's review: The server did not send its whole response within 0.2 s.",)
    gone = await reviewer(store, one).review_run(run())
    assert gone.unchecked[0].startswith(f"a model's review: `127.0.0.1:{one.port}` cannot be reached: ")
    assert gone.opinion is not None and not gone.opinion.answered


async def test_the_door_leads_to_the_endpoint_alone(store: Store) -> None:
    with oracle() as one, oracle() as other:
        asks = reviewer(store, one)
        seen = await replace(asks, reviewing=replace(asks.reviewing, endpoint=other.url)).review_run(run())
        assert (one.heard, other.heard) == ([], [])
    assert "are not allowed here" in seen.unchecked[0]


@pytest.mark.parametrize(
    ("place", "opened", "open_"),
    [
        ("localhost", (), True),
        ("127.0.0.1", (), True),
        ("models.example.org", (), False),
        ("models.example.org", ("127.0.0.1:{port}",), True),
        ("models.example.org", ("127.0.0.1:1",), False),
    ],
)
async def test_a_name_leads_inside_only_where_the_operator_wrote_that_down(
    place: str, opened: tuple[str, ...], open_: bool
) -> None:
    with oracle() as one:
        one.says(EMPTY)
        written = parse_destinations(entry.format(port=one.port) for entry in opened)
        network = build_single_place_network(f"{place}:{one.port}", written)
        here = dataclasses.replace(network, egress=replace(network.egress, resolve=this_machine))
        url = one.url.replace("127.0.0.1", place)
        if open_:
            assert (await here.fetch(Request(url, "POST", body=b"{}"))).status == 200
        else:
            with pytest.raises(Refusal, match=r"resolves to 127\.0\.0\.1"):
                await here.fetch(Request(url, "POST", body=b"{}"))
        assert len(one.heard) == open_


async def this_machine(_host: str, _port: int) -> Sequence[str]:
    """Where every name leads, as one that somebody else owns may."""
    return ["127.0.0.1"]


def test_a_report_comes_back_as_it_was_written_down() -> None:
    opinion = AdviserOpinion("m", "h:1", 9, True, "s", ("i",), ("m",), ("n",))
    for report in (
        RunReport("r", "me", "s", "success", "so"),
        RunReport("r", "me", "s", "success", "so", opinion=opinion),
    ):
        assert parse_report(json.loads(json.dumps(asdict(report)))) == report
    older = {"run": "r", "principal": "me", "session": "s", "status": "success", "summary": "so"}
    assert parse_report(older).opinion is None
    text = RunReport("r", "me", "s", "success", "so", opinion=opinion).format_text()
    assert text.index("## Suggested next actions") < text.index("## A model's opinion, unchecked (m)")
    assert "- issue: i\n- missing step: m\n- suggested next action: n" in text
    assert (
        "words" not in RunReport("r", "me", "s", "success", "so", opinion=AdviserOpinion("m", "h:1", 9)).format_text()
    )
