"""Does a client read what its run came to, and is it told when the run has grown long?"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Type
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import PATIENCE, served

CONFIG = "summary: {messages: 8, keep: 4}\n"
LATEST = "menugate://run/latest/summary"


def read(line: Pipe, uri: str) -> str:
    return line.request("resources/read", {"uri": uri})["result"]["contents"][0]["text"]


def complete(line: Pipe, ref: dict[str, Any], name: str, value: str) -> list[str]:
    asked = {"ref": ref, "argument": {"name": name, "value": value}}
    return line.request("completion/complete", asked)["result"]["completion"]["values"]


def work(line: Pipe) -> None:
    line.call("menu_enter", mode="data")
    line.call("think", content="canary of a thought")
    line.call("fs_write_file", path="new.txt", content="canary of a file")
    line.call("fs_read_file", path="new.txt")
    line.call("fs_read_file", path="nothing.txt")
    line.call("fs_delete", path="new.txt")
    line.call("message_user", message="half way")


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_run_is_read_as_a_resource(era: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as line:
        line.hello("mcp", era)
        work(line)
        template = "menugate://run/{run}/summary"
        listed = line.request("resources/templates/list")["result"]["resourceTemplates"]
        assert template in [one["uriTemplate"] for one in listed]
        latest, *runs = complete(line, {"type": "ref/resource", "uri": template}, "run", "")
        assert latest == "latest" and len(runs) == 1
        text = read(line, LATEST)
        assert text == read(line, template.replace("{run}", runs[0]))
        for said in (
            "Went from ROOT to `data`.",
            "Changed `new.txt`.",
            "`fs_read_file` failed (NOT_FOUND)",
            "`fs_delete` was refused (PROFILE_TOO_LOW)",
            "Messaged the user: half way",
        ):
            assert said in text
        assert "canary" not in text
        assert line.request("resources/read", {"uri": "menugate://run/none/summary"})["error"]["code"] == -32602
        line.call("complete", final_answer="All of it is done.")
        assert "Final answer: All of it is done." in read(line, template.replace("{run}", runs[0]))
        assert "Delivered as success." in read(line, template.replace("{run}", runs[0]))


def test_a_long_run_is_folded_and_whoever_follows_is_told(
    workspace: Path, home: Path, menugate: Type, tmp_path: Path
) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    with pipe(workspace, home, "--config", str(tmp_path / "c.yaml")) as line:
        line.hello("mcp")
        line.request("resources/subscribe", {"uri": LATEST})
        told: list[int] = []
        for number in range(28):
            _, before = line.until(
                line.send("tools/call", {"name": "think", "arguments": {"content": f"canary {number}"}})
            )
            told += [number for one in before if one["method"] == "notifications/resources/updated"]
        line.bye()
    # A call and its answer are two messages, and four stay out; each time it takes twice as many as the time before.
    assert told == [4, 11, 26]
    rows = [json.loads(one) for one in menugate("audit tail --kind summary --json").out.splitlines()]
    assert [row["messages"] for row in rows] == [10, 18, 34]
    intents = [json.loads(one)["seq"] for one in menugate("audit tail --kind intent --json -n 100").out.splitlines()]
    assert [row["upto"] for row in rows] == [intents[number - 2] for number in told]
    for row in rows:
        again = menugate(f"summary {row['run']} --upto {row['upto']}").out
        assert hashlib.sha256(again.encode()).hexdigest() == row["sha256"]
        assert len(again.encode()) == row["bytes"]
        assert "canary" not in again


def test_many_tokens_fold_too(workspace: Path, home: Path, menugate: Type, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("summary: {messages: 1000, tokens: 2000, keep: 2}\n")
    with pipe(workspace, home, "--config", str(tmp_path / "c.yaml")) as line:
        line.hello("mcp")
        for _ in range(6):
            line.call("think", content="x" * 4000)
        line.bye()
    rows = [json.loads(one) for one in menugate("audit tail --kind summary --json").out.splitlines()]
    assert [row["tokens"] // 2000 for row in rows] == [1, 2]


def test_runs_are_named_and_shown_on_the_command_line(menugate: Type) -> None:
    assert menugate("summary").code == 1
    menugate('call fs_read_file \'{"path": "notes.md"}\'')
    menugate('call fs_read_file \'{"path": "nothing.md"}\'')
    listed = json.loads(menugate("summary --list --json").out)
    assert len(listed) == 2 and listed[0]["rows"] > listed[1]["rows"]
    newest = json.loads(menugate("summary --json").out)
    assert newest["run"] == listed[0]["run"] and newest["issues"] == ["`fs_read_file` failed (NOT_FOUND)"]
    assert menugate(f"summary {listed[1]['run']}").out.startswith(f"# Summary of run {listed[1]['run']}")
    said = menugate("summary nobody")
    assert (said.code, "there is no run `nobody`" in said.err) == (1, True)


@pytest.mark.heavy
def test_nobody_reads_another_ones_run(workspace: Path, home: Path, tmp_path: Path) -> None:
    import httpx2

    token = "t" * 40
    config = tmp_path / "c.yaml"
    config.write_text(f"tokens:\n  - {{principal: other, sha256: {hashlib.sha256(token.encode()).hexdigest()}}}\n")
    with served(workspace, home, "--config", str(config)) as house:

        def ask(bearer: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
            meta: dict[str, Any] = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            name = params.get("name") or params.get("uri")
            headers = {
                "Authorization": f"Bearer {bearer}",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": method,
                **({"Mcp-Name": name} if name else {}),
            }
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
            text = httpx2.post(house.url, json=body, headers=headers, timeout=PATIENCE).text
            return json.loads(text[text.index("{") :])

        ask(house.token, "tools/call", {"name": "think", "arguments": {"content": "x"}})
        mine = ask(house.token, "resources/read", {"uri": LATEST})["result"]["contents"][0]["text"]
        run = mine.splitlines()[0].rpartition(" ")[2]
        uri = f"menugate://run/{run}/summary"
        assert "result" in ask(house.token, "resources/read", {"uri": uri})
        assert ask(token, "resources/read", {"uri": uri})["error"]["code"] == -32602
        others = ask(token, "resources/read", {"uri": LATEST})["result"]["contents"][0]["text"]
        assert others.startswith("Nothing is recorded for you yet")
        ref = {"type": "ref/resource", "uri": "menugate://run/{run}/summary"}
        asked = {"ref": ref, "argument": {"name": "run", "value": ""}}
        assert ask(token, "completion/complete", asked)["result"]["completion"]["values"] == ["latest"]
