"""Do the slash commands change what holds, for who typed them alone, and can a client raise anything unnoticed?"""

import json
import re
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.form import FORM, question
from tests.clients.person import typed
from tests.clients.raw import RawClient, raw
from tests.clients.served import Served, served
from tests.clients.tokens import hire
from tests.clients.waiting import wait_until

COMMANDS = {
    *("mode", "control", "permission-profile", "model-mode", "autonomous", "steer", "status", "doctor", "repair"),
    *("next", "pause", "stop"),
}
PUSHING = re.compile(
    r"\b(you (should|must|may|can)|please|try|ask the user to|switch|change (the|your) (mode|profile)|raise)\b",
    re.IGNORECASE,
)
"""Words that would have a model do something about a mode the person owns."""


@dataclass(frozen=True)
class Here:
    work: Path
    home: Path
    served: Served
    tokens: dict[str, str]

    def speaker(self, who: str = "me", **about: Any) -> Any:
        return raw(self.served, token=self.tokens.get(who), name="claude-code", **about)

    def posture(self, who: str = "") -> dict[str, Any]:
        """As the terminal has it: values by axis, and what is to come."""
        flags = ["--for", who] if who else []
        return json.loads(typed(self.work, self.home, "steer", "--json", *flags))

    def value(self, axis: str, who: str = "") -> Any:
        return self.posture(who)["posture"][axis]["value"]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Generator[Here]:
    folder = tmp_path_factory.mktemp("commands")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    alice, bob = hire(home, alice="trusted", bob="restricted")
    with served(work, home) as one:
        yield Here(work, home, one, {"alice": alice, "bob": bob})


def get(one: RawClient, name: str, **arguments: str) -> dict[str, Any]:
    return one.request("prompts/get", {"name": name, "arguments": arguments})


def words(answer: dict[str, Any]) -> str:
    messages = answer["result"]["messages"]
    assert [message["role"] for message in messages] == ["user"]
    return messages[0]["content"]["text"]


@pytest.mark.parametrize("era", ERAS)
def test_they_are_listed_and_their_arguments_complete(here: Here, era: str) -> None:
    with here.speaker(era=era) as one:
        listed = one.request("prompts/list")["result"]["prompts"]
        assert {prompt["name"] for prompt in listed} == COMMANDS | {"system", "words"}
        assert not any(PUSHING.search(prompt["description"]) for prompt in listed)
        for name, argument, begun, values in [
            ("mode", "value", "re", ["review", "repair", "research"]),
            ("permission-profile", "value", "", ["restricted", "normal", "trusted", "unrestricted"]),
            ("steer", "axis", "m", ["mode", "model-mode"]),
            ("steer", "scope", "after", ["after-current-tool", "after-current-unit"]),
            ("mode", "options", "--a", ["--autonomous", "--ai-mode"]),
            ("doctor", "what", "", ["fix"]),
            ("pause", "when", "", ["now"]),
        ]:
            about = {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": argument, "value": begun}}
            answer = one.request("completion/complete", about)["result"]["completion"]
            assert answer["values"] == values, (name, argument)


@pytest.mark.parametrize("era", ERAS)
def test_a_command_holds_for_who_typed_it_alone(here: Here, era: str) -> None:
    with here.speaker("alice", era=era, path="/swe") as alice, here.speaker("bob", era=era, path="/swe") as bob:
        # What the one before gave back at the terminal holds here within half a second.
        wait_until(lambda: not alice.call("Write", file_path=f"{era}.txt", content="x")["isError"])
        said = words(get(alice, "mode", value="plan"))
        assert "The user chose work mode plan; it is in force." in said
        assert "In force: plan | autonomous | normal | smart" in said
        refused = alice.call("Write", file_path=f"{era}-2.txt", content="x")
        assert "READ_ONLY_WORK" in refused["content"][0]["text"]
        assert "In force: build | autonomous | restricted | smart" in words(get(bob, "status"))
        # Back to what allows more, it is asked about.
        assert "menugate steer --confirm" in words(get(alice, "mode", value="build"))
        assert here.value("work_mode", "alice") == "plan"
    assert here.value("work_mode", "bob") == "build"
    typed(here.work, here.home, "steer", "--cancel", "all", "--for", "alice")
    reset(here, "alice")
    assert here.value("work_mode", "alice") == "build"


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("mode", {"value": "repair", "options": "--autonomous --permission-profile normal"}, "repair | autonomous"),
        ("mode", {"value": "repair --autonomous"}, "repair | autonomous | normal"),
        ("repair", {"scope": "now", "options": "--autonomous"}, "repair | autonomous"),
        ("repair", {"scope": "now --autonomous"}, "repair | autonomous"),
        ("control", {"value": "assisted"}, "| assisted |"),
        ("autonomous", {"scope": "now"}, "| autonomous |"),
        ("model-mode", {"value": "deep"}, "| deep"),
        ("steer", {"axis": "ai-mode", "value": "chat"}, "AI mode chat"),
        ("steer", {"axis": "reasoning", "value": "on"}, "reasoning on"),
        (
            "steer",
            {"axis": "model-mode", "value": "fast", "scope": "next-milestone"},
            "will be in force next-milestone",
        ),
        ("mode", {"value": "building"}, "Did you mean `build`?"),
        ("mode", {"value": "plan", "scope": "later"}, "Nothing was changed"),
        ("steer", {"axis": "mood", "value": "good"}, "Did you mean `mode`?"),
        ("mode", {"value": "plan", "options": "chat"}, "Nothing was changed"),
        ("mode", {"value": " "}, "`mode` needs a value"),
        ("mode", {"value": "$1", "scope": "$2", "options": "$3"}, "`mode` needs a value"),
        ("autonomous", {"scope": "$1", "options": "$2"}, "Nothing was changed: type `autonomous` alone"),
        ("doctor", {"what": "$1"}, "Everything is in order."),
        ("pause", {"when": "$1", "reason": "$2"}, "Nothing was changed: type `pause` alone, or `pause now`"),
        ("stop", {"when": "soon"}, "Nothing was changed: type `stop` alone, or `stop now`"),
        ("next", {"units": "$1"}, "Nothing was changed: `next` needs the number of units"),
        ("next", {"units": "1"}, "The user resumed the run."),
        ("status", {}, "In force: "),
        ("doctor", {}, "Everything is in order."),
        ("doctor", {"what": "everything"}, "takes `fix` or no argument"),
    ],
)
def test_what_each_says(here: Here, name: str, arguments: dict[str, str], says: str) -> None:
    with here.speaker("alice") as one:
        said = words(get(one, name, **arguments))
        assert says in said
        assert not PUSHING.search(said), said
    reset(here, "alice")


USUAL = "mode build --autonomous --permission-profile normal --model-mode smart --ai-mode agent --reasoning off"


def reset(here: Here, who: str) -> None:
    typed(here.work, here.home, *USUAL.split(), "--for", who)


NOBODYS: list[dict[str, Any]] = [
    {"action": "decline"},
    {"action": "cancel"},
    {"action": "accept", "content": {"profile": "trusted"}},
    {"action": "accept", "content": {}},
]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("scope", ["now", "next-milestone"])
def test_raising_asks_and_only_what_was_typed_raises(here: Here, era: str, scope: str) -> None:
    wish = {"name": "permission-profile", "arguments": {"value": "trusted", "scope": scope}}
    with here.speaker("alice", era=era, able=FORM) as one:
        for reply in NOBODYS:
            asked = question(one, wish, "prompts/get")
            assert f"profile from normal to trusted ({scope})" in " ".join(asked.params["message"].split())
            said = words(asked.answer(reply))
            assert "Nothing changes until the user confirms it at a terminal" in said
            assert "The user chose this" not in said
            assert not PUSHING.search(said), said
            assert here.value("profile", "alice") == "normal"
            assert len(here.posture("alice")["to_come"]) == 1, "what nobody answered waits for the terminal"
            assert "confirms it at a terminal" in words(one.request("prompts/get", wish)), "not asked again"
            typed(here.work, here.home, "steer", "--cancel", "all", "--for", "alice")
        said = words(question(one, wish, "prompts/get").decline())
        assert "Nothing was changed: the user declined." in said
        assert here.posture("alice")["to_come"] == []
        question(one, wish, "prompts/get").accept()
        after = here.posture("alice")
        assert (after["posture"]["profile"]["value"] == "trusted") is (scope == "now")
        assert len(after["to_come"]) == (scope != "now")
        # Lowering, or what is no raise, asks nobody.
        assert "messages" in get(one, "permission-profile", value="restricted")["result"]
    told = typed(here.work, here.home, "messages", "--all")
    assert f"More is allowed than before: profile trusted, {scope}. This was requested in claude-code" in told
    typed(here.work, here.home, "steer", "--cancel", "all", "--for", "alice")
    reset(here, "alice")


@pytest.mark.parametrize("scope", ["now", "next-milestone"])
def test_an_old_yes_raises_nothing_again(here: Here, scope: str) -> None:
    """The person took it back; the client sends the sealed question and its answer once more."""
    wish: dict[str, Any] = {"name": "permission-profile", "arguments": {"value": "trusted", "scope": scope}}
    with here.speaker("alice", era=MODERN, able=FORM) as one:
        asked = question(one, wish, "prompts/get")
        assert "messages" in asked.accept()["result"]
        if scope == "now":
            typed(here.work, here.home, "profile", "normal", "--for", "alice")
        else:
            typed(here.work, here.home, "steer", "--cancel", "all", "--for", "alice")
        assert asked.accept()["result"]["resultType"] == "input_required"
        bare = {asked.key: {"action": "accept", "content": {"code": asked.code}}}
        assert one.request("prompts/get", wish | {"inputResponses": bare})["result"]["resultType"] == "input_required"
    after = here.posture("alice")
    assert after["posture"]["profile"]["value"] == "normal"
    assert [change["what"] for change in after["to_come"]] == [f"profile trusted, {scope}, once you confirm it"]
    typed(here.work, here.home, "steer", "--cancel", "all", "--for", "alice")


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_cannot_ask_leaves_it_to_the_terminal(here: Here, era: str) -> None:
    with here.speaker("alice", era=era) as one:
        said = words(get(one, "permission-profile", value="trusted"))
        assert here.value("profile", "alice") == "normal"
        found = re.search(r"menugate steer --confirm (\w+)", said)
        assert found is not None, said
        typed(here.work, here.home, "steer", "--confirm", found[1], code=1)
        assert "trusted" in typed(here.work, here.home, "steer", "--confirm", found[1], "--for", "alice")
        typed(here.work, here.home, "steer", "--confirm", found[1], "--for", "alice", code=1)
    reset(here, "alice")


LENT = {
    "a trial": (["profile trusted --scope for-next-unit"], {"value": "trusted"}),
    "another trial": (["profile trusted --scope for-next-unit"], {"value": "trusted", "scope": "for-next-unit"}),
    "a lowering": (
        ["profile trusted", "profile normal --scope next-milestone"],
        {"value": "trusted", "scope": "next-milestone"},
    ),
}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("lent", LENT)
def test_keeping_a_profile_beyond_its_time_is_raising_it(here: Here, era: str, lent: str) -> None:
    lines, wish = LENT[lent]
    for line in lines:
        typed(here.work, here.home, *line.split(), "--for", "alice")
    before = here.posture("alice")["to_come"]
    with here.speaker("alice", era=era, able=FORM) as one:
        asked = question(one, {"name": "permission-profile", "arguments": wish}, "prompts/get")
        assert "the user declined" in words(asked.decline())
        assert here.posture("alice")["to_come"] == before
    with here.speaker("alice", era=era) as one:
        assert "menugate steer --confirm" in words(get(one, "permission-profile", **wish))
    typed(here.work, here.home, "steer", "--cancel", "all", "--for", "alice")
    reset(here, "alice")


@pytest.mark.parametrize("era", ERAS)
def test_no_prompt_goes_beyond_the_ceiling_or_even_asks(here: Here, era: str) -> None:
    with here.speaker("bob", era=era, able=FORM) as one:
        said = words(get(one, "mode", value="build", options="--permission-profile unrestricted"))
        assert "above the ceiling `restricted`, which is set by the token of bob" in said
    assert here.value("profile", "bob") == "restricted"


def test_pause_and_next_are_for_the_clients_own_run(here: Here) -> None:
    with here.speaker("alice", path="/swe", able=FORM) as one, here.speaker("alice", path="/swe") as other:
        assert "The user paused the run" in words(get(one, "pause", when="now", reason="lunch"))
        refused = one.call("Read", file_path="x")
        assert "lunch" in refused["content"][0]["text"]
        assert "lunch" not in other.call("Read", file_path="x")["content"][0]["text"]
        going = {"name": "next", "arguments": {"units": "1"}}
        asked = question(one, going, "prompts/get")
        assert "lunch" in asked.params["message"]
        assert "lunch" in words(asked.accept())
        assert "lunch" not in one.call("Read", file_path="x")["content"][0]["text"]
        assert "The user stopped the run" in words(get(one, "stop", when="now"))
        assert "`menugate steer --confirm " in words(question(one, going, "prompts/get").answer({"action": "cancel"}))
        typed(here.work, here.home, "steer", "--cancel", "all", "--for", "alice")
        question(one, going, "prompts/get").accept()
        assert "Nothing was changed" in words(get(one, "next", units="many"))


@pytest.mark.parametrize("era", ERAS)
def test_where_the_operator_distrusts_clients_none_is_asked(workspace: Path, home: Path, era: str) -> None:
    folder = home / ".config" / "menugate"
    folder.mkdir(parents=True)
    (folder / "menugate.yaml").write_text("approvals: out_of_band\n")
    with served(workspace, home) as one, raw(one, era=era, able=FORM, name="claude-code") as client:
        said = words(get(client, "permission-profile", value="trusted"))
        assert "Nothing changes until the user confirms it at a terminal" in said
        assert "In force: build | autonomous | normal | smart" in said
        assert "menugate steer --confirm" in typed(workspace, home, "status")
