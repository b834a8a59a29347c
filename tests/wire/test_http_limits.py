"""What does a client get that asks for something wrong? The error of the protocol, or the refusal a model can read."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.menus import CARRIERS
from tests.clients.line import Speaker
from tests.clients.pipe import Pipe, pipe
from tests.wire.conftest import WireWorkspace
from tests.wire.test_jsonrpc import INSIDES, seen
from tests.yaml_text import load_yaml

TABLES = Path(__file__).parents[1] / "tables"
REQUESTS: list[dict[str, Any]] = load_yaml((TABLES / "bad_requests.yaml").read_text())
TOOLS = ("Read", "grep", "fs_delete")
CALLS: list[dict[str, Any]] = load_yaml((TABLES / "bad_calls.yaml").read_text())


def filled(value: Any, row: dict[str, Any], handles: dict[str, str]) -> Any:
    """What stands in the table for what cannot well be written there."""
    if isinstance(value, dict):
        return {key: filled(one, row, handles) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]  # from YAML
    if value == "@DEEP@":
        nested: list[Any] = []
        for _ in range(row["deep"]):
            nested = [nested]
        return nested
    texts = {"@HALF@": "\ud800"}
    if "fill" in row:
        texts["@FILL@"] = row["fill"][0] * row["fill"][1]
    if "handle" in row:
        texts["@HANDLE@"] = handles[row["handle"]]
    return texts.get(value, value) if isinstance(value, str) else value


def code(row: dict[str, Any], modern: bool) -> int | None:
    found = row["code"]
    return found.get("modern" if modern else "legacy") if isinstance(found, dict) else found  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  # from YAML


def rows(table: list[dict[str, Any]], *transports: str) -> list[Any]:
    wanted = [row for row in table if not row.get("over") or set(row["over"]) & set(transports)]
    return [pytest.param(row, id=row["what"]) for row in wanted]


def refused(result: dict[str, Any], row: dict[str, Any]) -> None:
    text = result["content"][0]["text"]
    assert result["isError"] is True, result
    assert text.startswith(f"Error {row['refused']}: "), text
    assert result["_meta"]["menugate/refusal"]["code"] == row["refused"]
    assert not INSIDES.search(text.replace("example.py", "")), text
    assert len(text) < 9000


@pytest.mark.parametrize("row", rows(REQUESTS, "stdio"))
def test_a_wrong_request_over_stdio(line: Pipe, row: dict[str, Any]) -> None:
    expected = code(row, line.era != "legacy")
    if expected is None:
        return
    sent = line.send(row["method"], filled(row["params"], row, {}))
    good = line.send("tools/call", {"name": "think", "arguments": {"content": "still there?"}})
    answer, before = line.until(good)
    assert [seen(message) for message in before] == [{"id": sent, "code": expected}]
    assert answer["result"]["isError"] is False


def test_what_one_client_follows_is_bounded(ground: WireWorkspace) -> None:
    uris = [f"x://{number}" for number in range(1001)]
    with pipe(ground.work, ground.home) as older:
        older.hello("somebody")
        answers = [older.request("resources/subscribe", {"uri": uri}) for uri in uris]
        assert ["error" in answer for answer in answers] == [False] * 1000 + [True]
        assert "unsubscribe" in answers[-1]["error"]["message"]
        assert "result" in older.request("resources/subscribe", {"uri": uris[0]})
        older.request("resources/unsubscribe", {"uri": uris[0]})
        assert "result" in older.request("resources/subscribe", {"uri": uris[-1]})
    with pipe(ground.work, ground.home) as newer:
        newer.hello("somebody", "2026-07-28")
        for asked in (uris, ["x" * 2001]):
            answer = newer.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": asked}})
            assert seen(answer) == {"id": answer["id"], "code": -32602}


@pytest.mark.parametrize("row", rows(REQUESTS, "http"))
def test_a_wrong_request_over_http(speaker: Speaker, row: dict[str, Any]) -> None:
    expected = code(row, speaker.modern)
    if expected is None:
        return
    params = filled(row["params"], row, {})
    sent = json.loads(speaker.body(row["method"]))["id"] + 1
    answer = speaker.ask(row["method"], params)
    assert answer.status == row.get("status", {True: 404 if expected == -32601 else 400, False: 200}[speaker.modern])
    assert seen(answer.message) == {"id": sent, "code": expected}
    assert speaker.call("think", content="still there?")["isError"] is False


@pytest.mark.parametrize("row", rows(CALLS, "stdio"))
def test_a_call_that_must_not_run_over_stdio(line: Pipe, handles: dict[str, str], row: dict[str, Any]) -> None:
    line.call("menu_enter", mode="swe")
    refused(line.call(filled(row["tool"], row, handles), **filled(row["arguments"], row, handles)), row)
    assert line.call("think", content="still there?")["isError"] is False


@pytest.mark.parametrize("row", rows(CALLS, "http", "modern"))
def test_a_call_that_must_not_run_over_http(speaker: Speaker, handles: dict[str, str], row: dict[str, Any]) -> None:
    if not speaker.modern and row.get("over"):
        return
    tool, arguments = filled(row["tool"], row, handles), filled(row["arguments"], row, handles)
    if not speaker.modern:
        speaker.call("menu_enter", mode="swe")
    elif tool in CARRIERS and "menu" not in arguments:
        arguments = {"mode": "swe"} | arguments
    elif tool in TOOLS:
        tool, arguments = "menu_call", {"mode": "swe", "tool": tool, "arguments": arguments}
    refused(speaker.call(tool, **arguments), row)
    assert speaker.call("think", content="still there?")["isError"] is False


def test_every_handle_that_opens_nothing_gets_the_same_words(speaker: Speaker, handles: dict[str, str]) -> None:
    """Whoever guesses must not learn that there was something to be guessed."""
    answers = {name: speaker.call("menu_list", menu=handle)["content"][0]["text"] for name, handle in handles.items()}
    assert len(set(answers.values())) == 1, answers
