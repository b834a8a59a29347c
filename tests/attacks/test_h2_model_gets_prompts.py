"""H2: what does a model get that is handed prompts as tools? mcp-use, Semantic Kernel, Hermes and Qwen Code do that."""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.form import FORM, question
from tests.clients.person import typed
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import served

HOSTS = ["mcp", "mcp-use", "hermes", "qwen-code-mcp-client-menugate", "claude-code-but-not-quite", ""]
WIDENING: dict[str, tuple[str, dict[str, str]]] = {
    "plan to build": ("mode", {"value": "build"}),
    "plan to repair": ("repair", {"scope": "now"}),
    "plan to chat": ("steer", {"axis": "mode", "value": "chat"}),
    "manual to autonomous": ("autonomous", {"scope": "now"}),
    "manual to assisted": ("control", {"value": "assisted"}),
    "among others": ("mode", {"value": "plan", "options": "--autonomous"}),
    "for later": ("control", {"value": "autonomous", "scope": "next-milestone"}),
    "for a unit": ("steer", {"axis": "mode", "value": "build", "scope": "for-next-unit"}),
    "chat to agent": ("steer", {"axis": "ai-mode", "value": "agent"}),
    "no thought before": ("steer", {"axis": "reasoning", "value": "off"}),
    "the profile": ("permission-profile", {"value": "trusted"}),
}
NARROWING: dict[str, tuple[str, dict[str, str], str]] = {
    "to plan": ("mode", {"value": "plan"}, "plan | autonomous"),
    "to manual": ("control", {"value": "manual"}, "build | manual"),
    "to restricted": ("permission-profile", {"value": "restricted"}, "| restricted |"),
    "no wider": ("model-mode", {"value": "deep"}, "| deep"),
}
HALTING: list[tuple[str, dict[str, str]]] = [
    ("pause", {"when": "now"}),
    ("stop", {"when": "now"}),
    ("next", {"units": "9"}),
]
NEXT: dict[str, Any] = {"name": "next", "arguments": {"units": "1"}}
NOTHING: dict[str, Any] = {}
STRICT = "mode plan --control manual --ai-mode chat --reasoning on"


def posture(workspace: Path, home: Path) -> Any:
    return json.loads(typed(workspace, home, "steer", "--json"))["posture"]


def to_come(workspace: Path, home: Path) -> list[Any]:
    return json.loads(typed(workspace, home, "steer", "--json"))["to_come"]


def get(one: Any, name: str, arguments: dict[str, str]) -> dict[str, Any]:
    return one.request("prompts/get", {"name": name, "arguments": arguments})


def said(answer: dict[str, Any]) -> str:
    return answer["result"]["messages"][0]["content"]["text"] if "result" in answer else answer["error"]["message"]


@contextmanager
def client(workspace: Path, home: Path, era: str, name: str = "claude-code", able: Any = None) -> Generator[Pipe]:
    with pipe(workspace, home) as one:
        one.able = able or {}
        one.hello(name, era=era)
        yield one


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("host", HOSTS)
def test_a_model_that_gets_prompts_changes_nothing(workspace: Path, home: Path, host: str, era: str) -> None:
    typed(workspace, home, *STRICT.split())
    before = posture(workspace, home)
    with client(workspace, home, era, host, FORM) as one:
        listed = {prompt["name"] for prompt in one.request("prompts/list")["result"]["prompts"]}
        assert listed == {"status", "doctor", "system", "words"}
        every = [*WIDENING.values(), *((name, arguments) for name, arguments, _ in NARROWING.values()), *HALTING]
        for name, arguments in every:
            answer = get(one, name, arguments)
            assert "error" in answer, said(answer)
            assert f"`{name}` is not offered" in said(answer)
            assert re.search(r"type `menugate \w+", said(answer))
        assert "`menugate doctor fix`" in said(get(one, "doctor", {"what": "fix"}))
        assert "In force: plan | manual" in said(get(one, "status", {}))
        about = {"ref": {"type": "ref/prompt", "name": "mode"}, "argument": {"name": "value", "value": "b"}}
        assert one.request("completion/complete", about)["result"]["completion"]["values"] == []
    assert posture(workspace, home) == before
    assert to_come(workspace, home) == []


@pytest.mark.parametrize("era", ERAS)
def test_under_a_name_that_is_trusted_it_waits_for_the_terminal(workspace: Path, home: Path, era: str) -> None:
    """The name is the client's own word: whoever borrows one is asked for the person's yes all the same."""
    with client(workspace, home, era) as one:
        for what, (name, arguments) in WIDENING.items():
            typed(workspace, home, *STRICT.split())
            before = posture(workspace, home)
            answer = said(get(one, name, arguments))
            found = re.search(r"`menugate steer --confirm (\w+)`", answer)
            assert found is not None, (what, answer)
            assert "The user chose" not in answer
            assert posture(workspace, home) == before, what
            typed(workspace, home, "steer", "--confirm", found[1])
            coming = to_come(workspace, home)
            assert posture(workspace, home) != before or coming, what
            if coming:
                typed(workspace, home, "steer", "--cancel", "all")


@pytest.mark.parametrize("era", ERAS)
def test_a_form_that_answers_itself_widens_nothing(workspace: Path, home: Path, era: str) -> None:
    typed(workspace, home, *STRICT.split())
    before = posture(workspace, home)
    with client(workspace, home, era, able=FORM) as one:
        for what, (name, arguments) in WIDENING.items():
            for action in ("accept", "cancel", "decline", "accept what it read"):
                asked = question(one, {"name": name, "arguments": arguments}, "prompts/get")
                content = {"content": {"code": asked.code} if "read" in action else {}}
                reply = {"action": action.split()[0], **(content if "accept" in action else {})}
                assert "`menugate steer --confirm " in said(asked.answer(reply)), (what, action)
                assert posture(workspace, home) == before, (what, action)
                # A client that answered by itself is not asked about the same again.
                again = one.request("prompts/get", {"name": name, "arguments": arguments})
                assert "`menugate steer --confirm " in said(again), (what, action)
                typed(workspace, home, "steer", "--cancel", "all")


@pytest.mark.parametrize("era", ERAS)
def test_who_reads_and_types_widens_it_and_finds_a_message(workspace: Path, home: Path, era: str) -> None:
    typed(workspace, home, *STRICT.split())
    wish = {"name": "mode", "arguments": {"value": "build", "options": "--autonomous"}}
    with client(workspace, home, era, able=FORM) as one:
        asked = question(one, wish, "prompts/get")
        assert "work mode from plan to build, run control from manual to autonomous" in " ".join(
            asked.params["message"].split()
        )
        assert asked.code not in json.dumps(asked.params["requestedSchema"])
        asked.read()
        # A wrong word, and then a no.
        assert "--confirm" in said(asked.answer({"action": "accept", "content": {"code": "0000"}}))
        assert "the user declined" in said(question(one, wish, "prompts/get").decline())
        assert posture(workspace, home)["work_mode"]["value"] == "plan"
        assert "In force: build | autonomous" in said(question(one, wish, "prompts/get").accept())
    assert "More is allowed than before: work mode build, run control autonomous" in typed(workspace, home, "messages")


def test_each_question_is_answered_once(workspace: Path, home: Path) -> None:
    """The sealed question and its answer, sent again after the person took it back, or after a first wrong answer."""
    typed(workspace, home, *STRICT.split())
    wish = {"name": "control", "arguments": {"value": "autonomous"}}
    with client(workspace, home, MODERN, able=FORM) as one:
        asked = question(one, wish, "prompts/get")
        asked.read()
        yes = {"action": "accept", "content": {"code": asked.code}}
        asked.answer({"action": "accept", "content": {"code": "0000"}})
        assert asked.answer(yes)["result"]["resultType"] == "input_required"
        again = question(one, wish, "prompts/get")
        again.accept()
        assert posture(workspace, home)["run_control"]["value"] == "autonomous"
        typed(workspace, home, "control", "manual")
        assert again.answer(yes)["result"]["resultType"] == "input_required"
        assert posture(workspace, home)["run_control"]["value"] == "manual"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("what", NARROWING)
def test_narrowing_holds_at_once(workspace: Path, home: Path, what: str, era: str) -> None:
    name, arguments, says = NARROWING[what]
    with client(workspace, home, era, able=FORM) as one:
        assert says in said(get(one, name, arguments))


COMING: dict[str, tuple[str, tuple[str, dict[str, str]]]] = {
    "dropped": ("mode plan --scope next-milestone", ("mode", {"value": "build"})),
    "put off": ("mode plan --scope after-current-unit", ("mode", {"value": "plan", "scope": "next-milestone"})),
    "shortened": ("control manual --scope next-milestone", ("control", {"value": "manual", "scope": "for-next-unit"})),
    "kept beyond its unit": ("control manual", ("control", {"value": "autonomous"})),
    "a lowering": ("profile restricted --scope next-milestone", ("permission-profile", {"value": "trusted"})),
}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("what", COMING)
def test_what_is_to_be_taken_away_stays_to_come(workspace: Path, home: Path, what: str, era: str) -> None:
    line, (name, arguments) = COMING[what]
    with client(workspace, home, era) as one:
        if what == "kept beyond its unit":
            typed(workspace, home, *line.split())
            typed(workspace, home, "control", "autonomous", "--scope", "for-next-unit")
        else:
            # A unit is open, whose end the change waits for.
            one.call("menu_enter", mode="swe")
            typed(workspace, home, *line.split())
        before = to_come(workspace, home)
        assert before
        assert "`menugate steer --confirm" in said(get(one, name, arguments))
        after = to_come(workspace, home)
        assert [change for change in after if change in before] == before
        assert len(after) == len(before) + 1


@pytest.mark.parametrize("era", ERAS)
def test_a_spent_budget_stays_spent(workspace: Path, home: Path, tmp_path: Path, era: str) -> None:
    config = tmp_path / "menugate.yaml"
    config.write_text("budget:\n  calls: 1\n")
    for able in (NOTHING, FORM):
        with pipe(workspace, home, "--config", str(config)) as one:
            one.able = able
            one.hello("claude-code", era=era)
            one.call("menu_enter", mode="swe")
            one.call("Read", file_path="src/main.py")
            spent = one.call("Read", file_path="src/main.py")
            assert "BUDGET_SPENT" in spent["content"][0]["text"]
            if able:
                asked = question(one, NEXT, "prompts/get")
                assert "budget" in asked.params["message"]
                answer = asked.answer({"action": "accept", "content": {}})
            else:
                answer = one.request("prompts/get", NEXT)
            assert "`menugate steer --confirm " in said(answer)
            assert "RUN_PAUSED" in one.call("Read", file_path="src/main.py")["content"][0]["text"]


@pytest.mark.parametrize("era", ERAS)
def test_a_pause_ends_by_what_the_person_typed_alone(workspace: Path, home: Path, era: str) -> None:
    with client(workspace, home, era, able=FORM) as one:
        one.call("menu_enter", mode="swe")
        assert "The user paused the run, keeping its state: the user paused it: lunch" in said(
            get(one, "pause", {"when": "now lunch"})
        )
        assert "lunch" in one.call("Read", file_path="src/main.py")["content"][0]["text"]
        asked = question(one, NEXT, "prompts/get")
        assert "`menugate steer --confirm " in said(asked.answer({"action": "accept", "content": {"code": asked.code}}))
        assert "lunch" in one.call("Read", file_path="src/main.py")["content"][0]["text"]
        # The client answered by itself, so it is not asked again until the person has closed that request.
        assert "`menugate steer --confirm " in said(one.request("prompts/get", NEXT))
        typed(workspace, home, "steer", "--cancel", "all")
        assert "The user resumed the run" in said(question(one, NEXT, "prompts/get").accept())
        assert "lunch" not in one.call("Read", file_path="src/main.py")["content"][0]["text"]
        # Nothing waits, so nothing is asked.
        assert "The user resumed the run" in said(one.request("prompts/get", NEXT))
    assert "Resumed the run. It was paused because: the user paused it: lunch" in typed(workspace, home, "messages")


def test_the_operator_vouches_for_a_host_of_their_own_with_evidence(workspace: Path, home: Path) -> None:
    folder = home / ".config" / "menugate"
    folder.mkdir(parents=True)
    row = "  - {client: my-host, listing: masked, relists: false, commands: person"
    (folder / "menugate.yaml").write_text(f"hosts:\n{row}}}\n")
    assert "needs `evidence`" in typed(workspace, home, "check", code=1)
    (folder / "menugate.yaml").write_text(f"hosts:\n{row}, evidence: I wrote it.}}\n")
    with served(workspace, home) as here, raw(here, name="my-host", era=MODERN) as one:
        assert "In force: plan" in said(get(one, "mode", {"value": "plan"}))
        with raw(here, name="my-host-2", era=MODERN) as other:
            assert "not offered" in said(get(other, "mode", {"value": "plan"}))
