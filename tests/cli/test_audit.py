"""Does a person find in the record what they look for: by every field, and with the reason why?"""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from mcp_server.cli.export import ACTIVITY, OTHER, build_event
from mcp_server.cli.ledger import CHOICES, WORDS
from mcp_server.cli.output import KINDS
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Effect
from mcp_server.state.engine.rows import Row, RowKind
from tests.cli.conftest import Type
from tests.clients.person import choose
from tests.clients.pipe import pipe
from tests.yaml_text import load_yaml

SCHEMA: dict[str, Any] = load_yaml((Path(__file__).parents[1] / "tables" / "ocsf.yaml").read_text())
CONFIG = "rules:\n  deny: [Read(secret/**)]\n  ask: [Write(asked/**)]\n  allow: [fs_list_directory]\nwork_mode: build\n"


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two connections, one in `swe` and one in `data`: calls that ran, failed, were refused and asked about."""
    past = tmp_path_factory.mktemp("past")
    place, home = past / "work", past / "home"
    place.mkdir()
    (place / "notes.md").write_text("# Notes\n")
    folder = home / ".config" / "menugate"
    folder.mkdir(parents=True)
    (folder / "menugate.yaml").write_text(CONFIG)
    with pipe(place, home) as line:
        line.hello("opencode")
        line.call("menu_enter", mode="swe")
        line.call("Read", file_path="notes.md")
        line.call("Read", file_path="nothing.md")
        line.call("Read", file_path="secret/plan.txt")
        line.call("Write", file_path="asked/a.md", content="x")
        line.call("complete", final_answer="done")
        line.call("menu_read", tool="Read", arguments={"file_path": "notes.md"})
        line.bye()
    with pipe(place, home) as line:
        line.hello("gemini-cli-mcp-client")
        line.call("menu_enter", mode="data")
        line.call("fs_list_directory")
        line.call("fs_delete", path="notes.md")
        line.call("nobody_knows")
        line.bye()
    return past


@pytest.fixture
def lived(past: Path, place: Path, home: Path, menugate: Type) -> Type:
    """That past, in a workspace of the test's own."""
    shutil.copytree(past / "work", place, dirs_exist_ok=True)
    shutil.copytree(past / "home", home, dirs_exist_ok=True)
    return menugate


def rows(menugate: Type, flags: str = "") -> list[dict[str, Any]]:
    said = menugate(f"audit tail -n 1000 --json {flags}")
    assert said.code == 0, said.err
    return [json.loads(line) for line in said.out.splitlines()]


def test_every_kind_can_be_asked_for() -> None:
    assert set(KINDS) == set(RowKind)


@pytest.mark.parametrize(
    ("flags", "finds"),
    [
        ("--mode data --kind refusal", ["fs_delete", "nobody_knows"]),
        ("--mode swe --kind outcome", ["Read", "Read", "complete", "Read"]),
        ("--verdict ask", ["Write"]),
        ("--verdict deny --layer rules", ["Read"]),
        ("--layer profile", ["fs_delete"]),
        ("--layer find", ["nobody_knows"]),
        ("--rule 'Read(secret/**)'", ["Read"]),
        ("--code NOT_FOUND", ["Read"]),
        ("--stage act --kind question", ["Write"]),
        ("--stage warmup", []),
        ("--principal nobody", []),
        ("--mode swe --since 2h --kind refusal", ["Read"]),
        ("--until 2020-01-01", []),
        ("--until 2020-01-01 --verdict deny", []),
        ("--since 2999-01-01", []),
    ],
)
def test_rows_are_found_by_what_they_say(flags: str, finds: list[str], lived: Type) -> None:
    assert [row["tool"] for row in rows(lived, flags)] == finds


def test_the_outcome_is_found_by_what_is_known_of_its_call(lived: Type) -> None:
    for name in (*WORDS, *CHOICES):
        intent = next(row for row in rows(lived, "--kind intent") if row.get("tool") == "Read")
        if intent.get(name) is None:
            continue
        flag = f"--{name} '{intent[name]}'"
        found = [row["seq"] for row in rows(lived, flag) if row["kind"] in ("intent", "outcome")]
        outcome = next(row["seq"] for row in rows(lived) if row.get("intent") == intent["seq"])
        assert {intent["seq"], outcome} <= set(found), name


def test_a_run_is_found_whole(lived: Type) -> None:
    runs = {row["run"] for row in rows(lived, "--kind intent")}
    assert len(runs) == 3
    for run in runs:
        found = rows(lived, f"--run {run}")
        assert {row["kind"] for row in found} >= {"intent", "outcome", "transition"} or len(found) == 2
        assert all(run in (row.get("run"), cast(dict[str, Any], row.get("from") or {}).get("run")) for row in found)
    assert sum(len(rows(lived, f"--run {run}")) for run in runs) == len(
        [row for row in rows(lived) if row.get("run") or "run" in (row.get("from") or {})]
    )


def test_a_decision_carries_every_field(lived: Type) -> None:
    for row in rows(lived, "--verdict allow --kind intent") + rows(lived, "--kind refusal"):
        wanted = ("principal", "conversation", "session", "run", "client", "transport", "stage", "work_mode")
        wanted += ("run_control", "profile", "model_mode", "surface", "ai_mode", "tool", "verdict", "arguments_sha256")
        assert [name for name in wanted if not row.get(name)] == []
        assert {"reasoning", "tool_count", "epoch", "arguments_bytes", "step"} <= set(row)
    for row in rows(lived, "--kind outcome"):
        assert {"latency_us", "result_bytes", "shown_bytes", "ending", "run"} <= set(row)
    (carried,) = [row for row in rows(lived, "--kind intent") if row.get("carrier")]
    assert (carried["tool"], carried["carrier"], carried["effect"], carried["needs"]) == (
        *("Read", "menu_read", "read-local", "restricted"),
    )


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (
            "--rule 'Read(secret/**)'",
            ["at the layer rules with RULE_DENIED", "the deny rule Read(secret/**)"],
        ),
        ("--layer profile", ["was refused at the layer profile", "destroy-local, which needs profile trusted"]),
        ("--kind question", ["needed your approval", "the ask rule Write(asked/**)"]),
        ("--tool nobody_knows", ["was refused at the layer find with UNKNOWN_TOOL"]),
        ("--tool complete --kind outcome", ["`complete` ran", "no layer objected", "done after"]),
        ("--code NOT_FOUND", ["`Read` ran", "problem with NOT_FOUND", "opencode over stdio"]),
    ],
)
def test_why_is_answered_from_the_record(flags: str, says: list[str], lived: Type) -> None:
    (row,) = rows(lived, flags)[-1:]
    said = lived(f"audit why {row['seq']}")
    assert said.code == 0
    for piece in says:
        assert piece in " ".join(said.out.split()), said.out
    assert "the operator's settings or the defaults" in said.out
    assert json.loads(lived(f"audit why {row['seq']} --json").out)["call"]["tool"] == row["tool"]


def test_why_names_who_allowed_it(lived: Type, place: Path, home: Path) -> None:
    principal = rows(lived, "--kind intent")[0]["principal"]
    asyncio.run(choose(place, home, principal, profile=Profile.TRUSTED))
    assert lived('call fs_write_file \'{"path": "x.txt", "content": ""}\'').code == 0
    newest = rows(lived, "--kind intent --tool fs_write_file")[-1]["seq"]
    said = " ".join(lived(f"audit why {newest}").out.split())
    assert f"chosen by {principal}, in row" in said and "-> trusted (the person chose it)" in said
    older = rows(lived, "--kind intent")[0]["seq"]
    assert "the operator's settings or the defaults" in lived(f"audit why {older}").out, (
        "what was chosen later allowed nothing earlier"
    )


def test_why_about_what_is_no_call(lived: Type) -> None:
    seq = rows(lived, "--kind start")[0]["seq"]
    assert f"is not about a call; see `menugate audit show {seq}`" in lived(f"audit why {seq}").err
    assert lived("audit why 99999").code == 1


def events(menugate: Type, flags: str = "") -> list[dict[str, Any]]:
    return [json.loads(line) for line in menugate(f"audit export --format ocsf {flags}").out.splitlines()]


def test_the_export_keeps_to_the_schema(lived: Type) -> None:
    lived("trust")
    found = events(lived)
    assert {one["class_uid"] for one in found} == {6003, 6002, 3004}
    for one in found:
        assert list(breaches(one)) == []
    calls = [one for one in found if one["class_uid"] == 6003]
    intents, outcomes = rows(lived, "--kind intent"), rows(lived, "--kind outcome")
    denied = rows(lived, "--kind refusal") + rows(lived, "--kind question")
    assert len(calls) == len(intents) + len(denied), "one event for each call"
    assert len(intents) == len(outcomes)
    assert sum(one["action_id"] == 2 for one in calls) == len(denied)
    (refused,) = [one for one in calls if one.get("policy") == {"name": "Read(secret/**)"}]
    assert (refused["status_code"], refused["disposition_id"], refused["actor"]["app_name"]) == (
        *("RULE_DENIED", 2, "opencode"),
    )
    (failed,) = [one for one in calls if one.get("status_code") == "NOT_FOUND"]
    assert (failed["status_id"], failed["action_id"], failed["activity_name"]) == (2, 1, "Read")
    assert failed["unmapped"]["menugate"]["mode"] == "swe"


def test_a_call_without_an_end_is_an_event_too(lived: Type) -> None:
    found = [one for one in events(lived, "--kind intent") if one["class_uid"] == 6003]
    assert len(found) == len(rows(lived, "--kind intent"))
    assert {one["status_id"] for one in found} == {0}


def test_an_alarm_is_a_finding() -> None:
    one = build_event(Row(7, "ab" * 32, "", {"kind": "alarm", "at": 1, "reason": "the ledger's anchor is missing"}))
    assert list(breaches(one)) == []
    assert (one["class_uid"], one["severity_id"]) == (2004, 4)


@pytest.mark.parametrize("broken", ["actor", "api", "src_endpoint", "time", "metadata", "type_uid"])
def test_the_excerpt_notices_what_is_missing(broken: str, lived: Type) -> None:
    one = next(one for one in events(lived) if one["class_uid"] == 6003)
    assert list(breaches({key: value for key, value in one.items() if key != broken}))
    assert list(breaches(one | {broken: {} if isinstance(one[broken], dict) else -1}))


def test_every_effect_that_is_none_of_the_four_is_meant_so() -> None:
    others = {effect for effect, activity in ACTIVITY.items() if activity == OTHER}
    assert others == {Effect.SPEND, Effect.EXEC, Effect.BROWSER_ACT, Effect.DELEGATE}


def breaches(one: dict[str, Any]) -> Any:
    """Whatever of an event does not keep to the excerpt of the schema."""
    kind = SCHEMA["classes"].get(one.get("class_uid"), {"required": [], "activities": {}, "category_uid": None})
    yield from (f"{name} is missing" for name in SCHEMA["base"]["required"] + kind["required"] if name not in one)
    if one.get("category_uid") != kind["category_uid"]:
        yield "the category is not the class's"
    if kind["activities"].get(one.get("activity_id")) != one.get("activity_name"):
        yield "the activity is not the class's"
    if one.get("type_uid") != one.get("class_uid", 0) * 100 + one.get("activity_id", 0):
        yield "the type is not class and activity"
    if not isinstance(one.get("time"), int) or one["time"] < 0:
        yield "the time is no time"
    numbers = {**SCHEMA["security_control"], "severity_id": SCHEMA["base"]["severity_id"]}
    yield from (f"{name} is no such number" for name, known in numbers.items() if one.get(name, known[0]) not in known)
    yield from objects(one)


def objects(node: dict[str, Any]) -> Any:
    for name, value in node.items():
        if not isinstance(value, dict) or name == "unmapped":
            continue
        below = cast(dict[str, Any], value)
        shape = SCHEMA["objects"].get(name, {})
        yield from (f"{name}.{key} is missing" for key in shape.get("required", ()) if key not in below)
        if (any_of := shape.get("at_least_one")) and not any(below.get(key) for key in any_of):
            yield f"{name} has none of {any_of}"
        yield from objects(below)
