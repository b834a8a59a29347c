"""Which prompts does a model get without a person picking them, and on which event?

A server runs with a marker in the place of every prompt. Its events are driven one by one, and everything that reaches
a model's side is searched for the markers: what the host gets, and what a model that reviews the run is sent.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcp_server.config.prompt_checks import INVENTORY
from tests.clients.oracle import oracle
from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed
from tests.yaml_text import load_yaml

NAME = "tests/tables/prompts_delivered.yaml"
TABLE: Mapping[str, Any] = load_yaml((Path(__file__).parents[1] / "tables" / "prompts_delivered.yaml").read_text())
DELIVERED: Mapping[str, str] = TABLE["delivered"]
MISSING: list[str] = TABLE["missing"]
MACRO = "\n".join(f"{word}: x" for word in ("ANALYZE", "RESEARCH", "PLAN", "ACT", "REFLECT", "VERIFY"))


def test_every_prompt_is_delivered_or_missing() -> None:
    known = [*DELIVERED, *MISSING]
    assert [f"`{key}` is not in {NAME}" for key in INVENTORY if key not in known] == []
    assert [f"`{key}` is no prompt any more: take it out of {NAME}" for key in known if key not in INVENTORY] == []
    assert len(set(known)) == len(known), "a prompt is either delivered or missing"


def test_no_prompt_that_was_asked_for_is_deleted() -> None:
    assert [f"`{key}` was asked for: keep it" for key in TABLE["asked_for"] if key not in INVENTORY] == []


def marker(key: str) -> str:
    return f"[[{key}]]"


def drive(client: Pipe) -> dict[str, str]:
    """What comes from the server, by event: answers, requests of its own and notifications alike."""
    heard: dict[str, str] = defaultdict(str)

    def exchange(event: str, method: str, params: dict[str, Any] | None = None) -> None:
        answer, before = client.until(client.send(method, params))
        assert "result" in answer, answer
        heard[event] += json.dumps([answer, before])

    def call(event: str, tool: str, /, **arguments: Any) -> None:
        exchange(event, "tools/call", {"name": tool, "arguments": arguments})

    heard["the server introduces itself"] += json.dumps(client.hello())
    exchange("tools are listed", "tools/list")
    call("the menus are shown", "menu_list")
    call("a mode is entered", "menu_enter", mode="swe")
    call("a tool is called", "Read", file_path="notes.md")
    call("a call fails", "Read", file_path="gone.md")
    call("a call does not fit", "Read", path=1)
    call("a tool is unknown", "no_such_tool")
    call("a change is made before a thought", "Write", file_path="new.md", content="x\n")
    call("a thought is empty", "think", content="")
    call("a thought lacks a heading", "think", content="ANALYZE: x")
    call("a thought is whole", "think", content=MACRO)
    call("a unit is done", "Write", file_path="one.md", content="x\n")
    call("a unit follows another", "Write", file_path="two.md", content="x\n")
    call("a phase begins", "advance_phase")
    call("a todo is made", "TodoCreate", content="one thing")
    call("a person is asked", "message_user", message="which?", block_on_user=True)
    call("an answer is empty", "complete", final_answer="")
    call("a mode is left", "menu_exit")
    call("a run is over", "complete", final_answer="All done.")
    call("a run is over already", "Read", file_path="notes.md")
    return heard


@pytest.mark.parametrize("reasoning", ["on", "off"])
def test_what_is_delivered_is_what_the_table_says(reasoning: str, workspace: Path, home: Path) -> None:
    folder, config = home / "prompts", home / "menugate.yaml"
    for key in INVENTORY:
        path = folder / f"{key}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{marker(key)}\n")
    (workspace / "notes.md").write_text("a note\n")
    assert typed(workspace, home, "reasoning", reasoning).code == 0
    with oracle() as reviewer:
        reviewer.says({"summary": "Fine.", "issues": [], "missing_steps": [], "suggested_next_actions": []})
        config.write_text(
            f"prompts: {folder}\nreview: {{endpoint: '{reviewer.url}', model: some-model, patience: 50}}\n"
        )
        with pipe(workspace, home, "--config", str(config)) as client:
            heard = drive(client)
        assert reviewer.heard, "nobody was asked for a review"
        heard["a finished run is reviewed by a model"] = "".join(one.said + str(one.body) for one in reviewer.heard)
    events = {key: {event for event, text in heard.items() if marker(key) in text} for key in INVENTORY}
    told = {key: found for key, found in events.items() if found}
    assert [f"`{key}` reaches a model when {', '.join(told[key])}: move it to `delivered` in {NAME}"
            for key in MISSING if key in told] == []  # fmt: skip
    assert [f"`{key}` does not reach a model when {event}" for key, event in DELIVERED.items()
            if event not in events[key]] == []  # fmt: skip
