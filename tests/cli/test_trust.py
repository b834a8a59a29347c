"""What does the workspace's own file do before the person trusts it, and after?"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Type
from tests.clients.pipe import pipe

NARROW = "rules:\n  deny:\n    - rule: Read(secret/**)\n      match: [secret/a.txt]\n      not_match: [open/a.txt]\n"
WIDE = NARROW + "  allow:\n    - Write(docs/**)\nmax_profile: trusted\nbudget: {calls: 7}\n"
WRITE = 'explain Write \'{"file_path": "docs/a.md", "content": ""}\' --config chat.yaml --quiet'


@pytest.fixture
def own(place: Path) -> Path:
    (place / "menugate.yaml").write_text(WIDE)
    (place / "chat.yaml").write_text("work_mode: chat\n")
    (place / "menugate.prompts" / "base").mkdir(parents=True)
    (place / "menugate.prompts" / "base" / "system.md").write_text("The workspace's own words.\n")
    return place


def words(place: Path, home: Path) -> str:
    with pipe(place, home) as line:
        line.hello()
        answer = line.request("prompts/get", {"name": "words", "arguments": {"key": "base/system"}})
    return answer["result"]["messages"][0]["content"]["text"]


def test_untrusted_it_narrows_and_no_more(own: Path, home: Path, menugate: Type) -> None:
    assert menugate('explain Read \'{"file_path": "secret/a.txt"}\' --quiet').code == 1
    assert menugate('explain Read \'{"file_path": "open/a.txt"}\' --quiet').code == 0
    assert json.loads(menugate("status --json").out)["ceiling"] == "trusted"
    assert menugate(WRITE).code == 1
    assert "set aside" in menugate("rules list").out
    assert "Not in force until you trust this folder: 2 allow rules and prompts" in menugate("check").out
    assert "own words" not in words(own, home)


def test_trusted_it_counts_and_is_on_record(own: Path, home: Path, menugate: Type) -> None:
    shown = json.loads(menugate("trust --show --json").out)
    assert (shown["trusted"], shown["allow"], shown["prompts"]) == (False, ["Write(docs/**)"], ["base/system"])
    assert menugate(WRITE).code == 1, "showing is not trusting"
    given = menugate("trust --json")
    assert (given.code, json.loads(given.out)) == (0, {**shown, "trusted": True})
    assert menugate("trust --show").out.startswith(f"{own}: trusted\n")
    assert menugate(WRITE).code == 0
    assert "set aside" not in menugate("rules list").out
    assert words(own, home) == "The workspace's own words."
    assert menugate("untrust").code == 0
    assert menugate(WRITE).code == 1
    rows = [json.loads(line) for line in menugate("audit tail --kind trust --json").out.splitlines()]
    assert [(row["trusted"], row["folder"]) for row in rows] == [(True, str(own)), (False, str(own))]
    assert rows[0]["sha256"] == shown["sha256"]
    assert menugate("untrust").out == "This folder was not trusted.\n"


CHANGES: dict[str, Callable[[Path], object]] = {
    "another byte": lambda place: (place / "menugate.yaml").write_text(WIDE + "# one more line\n"),
    "another prompt's words": lambda place: (place / "menugate.prompts/base/system.md").write_text("Other words."),
    "a prompt more": lambda place: (place / "menugate.prompts/base/more.md").write_text("More words."),
    "a prompt less": lambda place: (place / "menugate.prompts/base/system.md").unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_trust_ends_with_the_content(change: Callable[[Path], object], own: Path, menugate: Type) -> None:
    menugate("trust")
    assert menugate(WRITE).code == 0
    change(own)
    assert menugate(WRITE).code == 1
    menugate("trust")
    assert menugate(WRITE).code == 0


def test_trust_that_somebody_else_wrote_is_none(own: Path, home: Path, menugate: Type) -> None:
    menugate("trust")
    (kept,) = (home / ".local" / "state" / "menugate" / "trusted").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    sealed = json.loads(kept.read_text())
    (own / "menugate.yaml").write_text(WIDE.replace("docs/**", "**"))
    digest = json.loads(menugate("trust --show --json").out)["sha256"]
    for forged in ({**sealed, "sha256": digest}, {"sha256": digest}, [digest], {**sealed, "mac": 1}, None):
        kept.write_text(json.dumps(forged))
        assert menugate(WRITE).code == 1
    kept.write_text("{" * 100_000)
    assert menugate(WRITE).code == 1


def test_trust_is_for_one_folder(own: Path, home: Path, menugate: Type, tmp_path: Path) -> None:
    menugate("trust")
    other = tmp_path / "other"
    other.mkdir()
    (other / "menugate.yaml").write_text(WIDE)
    assert json.loads(menugate(f"trust --show --json --workspace {other}").out)["trusted"] is False


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tokens: []\n", "menugate.yaml:1: tokens: only the operator may set `tokens`"),
        ("profile: unrestricted\n", "only the operator may set `profile`"),
        ("work_mode: build\n", "only the operator may set `work_mode`"),
        ("menus: [more]\n", "only the operator may set `menus`"),
        ("rulez: {}\n", "did you mean `rules`?"),
        ("rules:\n  deny: [Raed]\n", "menugate.yaml:2: rules: deny rule `Raed`: there is no tool `Raed`"),
        ("rules:\n  deny: [Write, Write(docs/**)]\n", "because the deny rule `Write`"),
        ("rules:\n  allow: [Raed]\n", "there is no tool `Raed`"),
        ("- a list\n", "a mapping"),
        ("max_profile: god\n", "god"),
    ],
)
def test_a_fault_in_it_is_told_with_its_line(text: str, says: str, place: Path, menugate: Type) -> None:
    (place / "menugate.yaml").write_text(text)
    said = menugate("check")
    assert (said.code, says in said.out) == (1, True), said.out


@pytest.mark.parametrize("text", ["oops: [", "rules: {deny: [Raed]}", "max_profile: god"])
def test_a_fault_in_it_keeps_nobody_from_choosing(text: str, own: Path, home: Path, menugate: Type) -> None:
    """A server that runs goes on under what it read; whoever can write there must not lock the person out."""
    with pipe(own, home) as line:
        line.hello()
        line.call("menu_enter", mode="swe")
        assert "Write" in line.names()
        (own / "menugate.yaml").write_text(text + "\n")
        said = menugate("profile restricted")
        assert (said.code, said.out.splitlines()[0]) == (0, "profile restricted: in force")
        # A choice is measured by the ceilings, whatever the rules say.
        ignored = "has faults and is ignored here; `menugate check` shows them" in said.err
        assert ignored is not text.startswith("rules")
        assert line.message()["method"] == "notifications/tools/list_changed"
        assert "Write" not in line.names()
        assert menugate("steer mode plan").code == menugate("mode").code == 0
        assert menugate("check").code == 1
        said = menugate("explain Read")
        assert said.code == 0
        assert "keeps using the last valid rules" in said.err


def test_the_lower_limit_counts(place: Path, menugate: Type) -> None:
    (place / "menugate.yaml").write_text("max_profile: restricted\nbudget: {calls: 1}\n")
    (place / "more.yaml").write_text("budget: {calls: 5, minutes: 9}\n")
    assert "PROFILE_TOO_LOW" in menugate("explain Write --config more.yaml --profile trusted").out
    (place / "menugate.yaml").write_text("max_profile: unrestricted\n")
    assert "PROFILE_TOO_LOW" in menugate("explain fs_delete --profile trusted --max-profile normal").out


def test_what_both_files_say_is_no_fault(place: Path, home: Path, menugate: Type) -> None:
    folder = home / ".config" / "menugate"
    folder.mkdir(parents=True)
    (folder / "menugate.yaml").write_text("rules:\n  deny: [Read(secret/**)]\n")
    (place / "menugate.yaml").write_text(NARROW)
    assert menugate("check").code == 0
    assert [row["whose"] for row in json.loads(menugate("rules list --json").out)] == ["operator", "workspace"]


def test_a_prompt_of_the_operators_that_speaks_of_modes_is_refused_by_check(place: Path, menugate: Type) -> None:
    (place / "mine" / "agent").mkdir(parents=True)
    (place / "mine" / "agent" / "warmup.md").write_text("Look.\nSwitch to agent mode.\n")
    (place / "op.yaml").write_text("prompts: mine\n")
    said = menugate("check --config op.yaml")
    assert said.code == 1
    assert "mine/agent/warmup.md:2: agent/warmup: it mentions changing what only the user may change" in said.out


def test_examples_are_run_and_say_which_rule_decides(own: Path, menugate: Type) -> None:
    said = menugate("rules test")
    assert said.code == 0
    assert "holds  deny Read(secret/**)  matches  Read(secret/a.txt)" in said.out
    assert "decided by deny: Read(secret/**)" in said.out
    assert "does not match  Read(open/a.txt)" in said.out and "decided by no rule" in said.out
    tried = json.loads(menugate("rules test --json").out)
    assert (tried["ok"], [one["holds"] for one in tried["examples"]]) == (True, [True, True])


def test_an_example_may_be_decided_by_a_stronger_rule(place: Path, menugate: Type) -> None:
    (place / "menugate.yaml").write_text(
        "rules:\n  block: [Read(secret/x/**)]\n  deny:\n    - {rule: Read(secret/**), match: [secret/x/y, secret/z]}\n"
    )
    found = json.loads(menugate("rules test --json").out)["examples"]
    assert [(one["example"], one["decided_by"]["kind"]) for one in found] == [
        ("secret/x/y", "block"),
        ("secret/z", "deny"),
    ]
