"""Is everything that is no message answered as the table says, and does the server go on?"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.clients.line import Speaker
from tests.clients.pipe import Pipe, pipe
from tests.wire.conftest import WireWorkspace
from tests.yaml_text import load_yaml

TABLE: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables" / "bad_messages.yaml").read_text())
INSIDES = re.compile(r"Traceback|\.py\b|Exception|Error\(|pydantic|validation error|RecursionError|sqlite3", re.I)
"""What an answer must never show of how we are made."""


def written(row: dict[str, Any]) -> bytes:
    text = row["send"]
    if "fill" in row:
        opening, times, *closing = row["fill"]
        core = "1" if closing and opening == '{"x":' else ""
        text = text.replace("@FILL@", opening * times + core + "".join(closing) * times)
    return text.encode(row.get("encoded", "utf-8"))


def told(row: dict[str, Any], request_id: int | None) -> dict[str, Any]:
    return {"id": request_id, "code": row["code"]}


def seen(message: dict[str, Any]) -> dict[str, Any]:
    """Of an answer what the table speaks about; it is looked through for our insides on the way."""
    assert set(message) == {"jsonrpc", "id", "error"}, message
    assert not INSIDES.search(message["error"]["message"]), message
    assert len(json.dumps(message)) < 400
    return {"id": message["id"], "code": message["error"]["code"]}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["what"])
def test_over_stdio(line: Pipe, row: dict[str, Any]) -> None:
    line.raw(written(row) + b"\n")
    good = line.send("tools/call", {"name": "think", "arguments": {"content": "still there?"}})
    answer, before = line.until(good)
    assert answer["result"]["isError"] is False
    expected = {"silence": [], "twice": [told(row, None), told(row, row["id"])]}
    assert [seen(message) for message in before] == expected.get(row.get("stdio", ""), [told(row, row["id"])])


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["what"])
def test_over_http(speaker: Speaker, row: dict[str, Any]) -> None:
    status = row.get("http", 400)
    answer = speaker.post(written(row))
    assert answer.status == status, answer
    assert seen(answer.message) == told(row, None if status == 413 else row["id"])
    assert speaker.call("think", content="still there?")["isError"] is False


def test_a_key_twice_behind_many_others_keeps_nobody_waiting(speaker: Speaker) -> None:
    keys = ",".join(f'"key{number}":1' for number in (*range(200_000), 199_999))
    answer = speaker.post(f'{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{{keys}}}}}'.encode())
    assert seen(answer.message) == {"id": 7, "code": -32700}
    assert "`key199999` appears twice" in answer.message["error"]["message"]


@pytest.mark.parametrize(("last", "code"), [('{"jsonrpc":"2.0","id":7,"method":"ping"}', None), ('{"jsonrpc"', -32700)])
def test_the_last_line_may_end_with_the_stream(ground: WireWorkspace, last: str, code: int | None) -> None:
    with pipe(ground.work, ground.home) as one:
        one.hello("somebody")
        one.raw(last.encode())
        assert one.bye() == 0
        answer = one.message()
    assert answer.get("error", {}).get("code") == code


def test_a_line_that_never_ends_is_answered_and_not_kept(ground: WireWorkspace) -> None:
    with pipe(ground.work, ground.home) as one:
        one.hello("somebody")
        for _ in range(40):
            one.raw(b"x" * 1_000_000)
        assert seen(one.message()) == {"id": None, "code": -32600}
        size = next(row for row in Path(f"/proc/{one.process.pid}/status").read_text().splitlines() if "VmHWM" in row)
        assert int(size.split()[1]) < 120_000, "kilobytes"
        one.raw(b"\n")
        assert one.call("think", content="still there?")["isError"] is False
