"""Does a client get the words by name, with what completes them, and a clear answer where something is missing?"""

from pathlib import Path
from typing import Any

import pytest

from mcp_server.config.load import DATA
from mcp_server.config.prompts import PromptFolder, Prompts, compose_prompts
from mcp_server.model.posture import Posture, Stage
from tests.clients.pipe import Pipe, pipe

SHIPPED = Prompts((PromptFolder("shipped", DATA / "prompts"),))


def said(line: Pipe, name: str, **arguments: str) -> str:
    answer = line.request("prompts/get", {"name": name, "arguments": arguments})
    return answer["result"]["messages"][0]["content"]["text"]


def wrong(line: Pipe, name: str, **arguments: str) -> str:
    error = line.request("prompts/get", {"name": name, "arguments": arguments})["error"]
    assert error["code"] == -32602
    return error["message"]


def values(line: Pipe, prompt: str, argument: str, typed: str) -> list[str]:
    asked: dict[str, Any] = {
        "ref": {"type": "ref/prompt", "name": prompt},
        "argument": {"name": argument, "value": typed},
    }
    return line.request("completion/complete", asked)["result"]["completion"]["values"]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_the_words_are_there_by_name(era: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as line:
        line.hello("mcp", era)
        names = {prompt["name"] for prompt in line.request("prompts/list")["result"]["prompts"]}
        assert {"system", "words"} <= names
        assert values(line, "system", "stage", "") == list(map(str, Stage))
        assert values(line, "words", "key", "qa/re") == [
            "qa/report_schema",
            "qa/review_micro_reasoning",
            "qa/reviewer",
        ]
        root = {"project_root": str(workspace)}
        assert said(line, "system") == compose_prompts(SHIPPED, Posture(), Stage.ACT, root)
        warm = said(line, "system", stage="warmup", user_input="{{project_root}} is mine")
        assert "{{project_root}} is mine" in warm and f"`{workspace}`" in warm
        for key in SHIPPED.list_keys():
            given = dict.fromkeys(("user_input", "tool_summary", "last_step_outcome"), "given")
            assert said(line, "words", key=key, **given) == SHIPPED.render_prompt(key, given | root)
        assert "needs a value for `user_input`" in wrong(line, "system", stage="warmup")
        assert "Searched for" in wrong(line, "words", key="agent/nothing")
        assert "is not the key of a prompt" in wrong(line, "words", key="../../etc/passwd")
        assert "there is no stage" in wrong(line, "system", stage="party")
        assert "needs key" in wrong(line, "words")
