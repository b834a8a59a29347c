"""Is every fault on disk shown at once, with its place, whichever command comes upon it?"""

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.posture import Profile
from mcp_server.model.results import Done, Ending
from mcp_server.model.tool_packs import Pack
from mcp_server.model.tools import ACTING, Effect, Hints, Tool
from tests.cli.conftest import Type
from tests.clients import warm
from tests.clients.served import command, environment
from tests.config.samples import opened

SHIPPED = len(list(opened().menus))
BROKEN = """\
rules:
  deny:
    - Raed(src/**)
  aks: [Write]
max_profile: god
menus: [more]
"""
MODE = """\
name: cooking
title: Cooking
order: 5
role: You cook.
goal: Feed people.
offers: Recipes.
when: to cook
remember: Taste.
tools: [Read, stir_pot]
"""
FAULTS = [
    ("menugate.yaml:4: rules.aks:", "(did you mean `ask`?)"),
    ("menugate.yaml:5: max_profile:", "`god`"),
    ("more/cooking.yaml:9: tools[1]:", "there is no tool `stir_pot`"),
]


@pytest.fixture
def broken(place: Path) -> Path:
    (place / "more").mkdir()
    (place / "more" / "cooking.yaml").write_text(MODE)
    (place / "menugate.yaml").write_text(BROKEN)
    return place


@pytest.mark.parametrize(
    ("line", "stream"),
    [
        ("check", "out"),
        ("menus", "err"),
        ("explain Read", "err"),
        ("call Read", "err"),
        ("status", "err"),
        ("serve", "err"),
        ("serve --http 127.0.0.1:0", "err"),
    ],
)
def test_every_command_shows_every_fault_with_its_place(line: str, stream: str, broken: Path, menugate: Type) -> None:
    said = menugate(f"{line} --config menugate.yaml")
    assert said.code == 1
    text = getattr(said, stream)
    assert "3 faults; nothing runs until you fix them:" in text
    for place, message in FAULTS:
        (fault,) = [one for one in text.splitlines() if place in one]
        assert message in fault
    assert not (broken / ".menugate").exists(), "nothing was started"


def test_the_operators_usual_file_is_found(place: Path, home: Path, menugate: Type) -> None:
    folder = home / ".config" / "menugate"
    folder.mkdir(parents=True)
    (folder / "menugate.yaml").write_text("max_profile: god\n")
    assert "1 fault; nothing runs until you fix it:" in menugate("check").out
    (folder / "menugate.yaml").write_text("work_mode: review\n")
    assert f"configuration {folder / 'menugate.yaml'}" in menugate("check").out
    assert f"{folder / 'menugate.yaml'}:1" in menugate("status").out


def test_check_in_json_has_file_line_and_key(broken: Path, menugate: Type) -> None:
    said = menugate("check --config menugate.yaml --json")
    report = json.loads(said.out)
    assert (said.code, report["ok"]) == (1, False)
    first = report["faults"][0]
    assert first["file"] == str(broken / "menugate.yaml")
    assert (first["line"], first["key"], first["nearest"]) == (4, "rules.aks", "ask")


def test_a_rule_that_decides_is_named_with_its_place(place: Path, menugate: Type) -> None:
    (place / "menugate.yaml").write_text("rules:\n  deny:\n    - Read(src/**)\n  ask: [Write]\n")
    said = menugate('explain Read \'{"file_path": "src/main.py"}\' --config menugate.yaml')
    assert f"deny: Read(src/**)  ({place / 'menugate.yaml'}:3)" in said.out
    said = menugate('explain Write \'{"file_path": "x", "content": ""}\' --config menugate.yaml --json')
    rule = json.loads(said.out)["rule"]
    assert rule == {"kind": "ask", "text": "Write", "source": f"{place / 'menugate.yaml'}:4"}


def test_an_allow_rule_that_spared_a_question_is_named(place: Path, menugate: Type) -> None:
    (place / "menugate.yaml").write_text("rules:\n  allow: [Write(docs/**)]\nwork_mode: chat\n")
    call = '{"file_path": "%s/x.md", "content": ""}'
    spared = json.loads(menugate("explain Write --config menugate.yaml --json", call % "docs").out)
    assert (spared["verdict"], spared["rule"]["text"]) == ("allow", "Write(docs/**)")
    asked = json.loads(menugate("explain Write --config menugate.yaml --json", call % "src").out)
    assert (asked["verdict"], asked["rule"]) == ("ask", None)


async def stirred(_ctx: Any, _args: Any) -> Ending:
    return Done("stirred")


STIR = Tool(
    name="stir_pot",
    title="Stir",
    description="Stir the pot.",
    arguments={"type": "object", "properties": {}},
    profile=Profile.RESTRICTED,
    effect=Effect.NONE,
    hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
    stages=ACTING,
    run=stirred,
)


def kitchen(place: Path, tool: Tool = STIR, modes: int = 1) -> Pack:
    (place / "kitchen").mkdir()
    for number in range(modes):
        text = MODE.replace("[Read, stir_pot]", "[stir_pot]")
        for word in ("cooking", "Cooking"):
            text = text.replace(word, f"{word}_{number}" if number else word)
        text = text.replace("to cook", f"to cook, and to cook, and to cook once more, for {number} hours or longer")
        (place / "kitchen" / f"cooking_{number}.yaml").write_text(text)
    return Pack("kitchen", tools=(tool,), menus=(str(place / "kitchen"),))


def test_a_pack_is_part_of_what_is_checked_and_called(place: Path, menugate: Type) -> None:
    pack = kitchen(place)
    assert f"{SHIPPED + 1} modes" in menugate("check", packs=[pack]).out
    assert menugate("call stir_pot", packs=[pack]).out == "stirred\n"


@pytest.mark.parametrize(
    ("modes", "finds"),
    [
        (9, []),
        (16, ["menu_enter: its description has"]),
        (24, ["menu_enter: its description has", "the instructions for ROOT are longer than 2048 bytes"]),
    ],
)
def test_what_hosts_cut_off_is_a_fault(modes: int, finds: list[str], place: Path, menugate: Type) -> None:
    said = menugate("check", packs=[kitchen(place, modes=modes - SHIPPED)])
    assert said.code == (1 if finds else 0), said.out
    assert len(said.out.splitlines()) == len(finds) + 1
    for piece in finds:
        assert piece in said.out


def test_a_schema_the_protocol_cannot_carry_is_a_fault(place: Path, menugate: Type) -> None:
    odd = replace(STIR, result={"type": "object", "properties": "none"})
    said = menugate("check", packs=[kitchen(place, odd)])
    assert (said.code, "stir_pot" in said.out) == (1, True), said


def test_a_tool_that_raises_shows_its_error_and_where_the_log_is(place: Path, menugate: Type) -> None:
    async def spilled(_context: Any, _arguments: Any) -> Ending:
        raise RuntimeError("the pot is cracked")

    said = menugate("call stir_pot", packs=[kitchen(place, replace(STIR, run=spilled))])
    log = place / ".menugate" / "call.log"
    assert said.code == 1
    assert "Traceback" not in said.err
    assert "RuntimeError: the pot is cracked" in said.err and str(log) in said.err
    assert "Traceback" in log.read_text() and log.stat().st_mode & 0o077 == 0


def test_a_folder_that_is_gone_is_said(place: Path) -> None:
    gone = place / "gone"
    gone.mkdir()
    ran = run_in(gone, "rmdir ../gone && {} status")
    assert ran.returncode == 1
    assert ran.stderr == "menugate: the current folder no longer exists; change to another one.\n"


def test_a_link_that_leads_to_itself_is_said(place: Path) -> None:
    (place / "loop").symlink_to("loop")
    ran = run_in(place, "{} status --workspace loop")
    assert ran.returncode == 1
    assert ran.stderr == f"menugate: '{place / 'loop'}' is a link that leads back to itself; remove it.\n"


@pytest.mark.parametrize("words", ["memory add x", "index find x", "index build"])
def test_a_workspace_where_nothing_can_be_kept_is_said(place: Path, words: str) -> None:
    (place / ".menugate").symlink_to("elsewhere")
    ran = run_in(place, f"{{}} {words}")
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"menugate: {place / '.menugate'} is a link, "), ran.stderr


def run_in(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, whose folder may go."""
    words, home = ["sh", "-c", line.format(shlex.join(command()))], folder.parents[1] / "home"
    return warm.run(words, environment(home), cwd=folder, text=True)


SERVERS = """\
mcpServers:
  sound: {command: sh}
  broken: {command: no-such-program-at-all}
  unwise: {command: sh, args: ["${secret:TOKEN}"]}
"""


@pytest.fixture
def servers(place: Path, home: Path) -> Path:
    """Three servers: one is sound, one is broken, and one shows a secret to everybody on this machine."""
    stored = warm.run(command("secret", "set", "TOKEN"), environment(home), cwd=place, input=b"canary-5up3r")
    assert stored.returncode == 0
    file = home / ".config" / "menugate" / "menugate.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(SERVERS)
    return file


def test_a_broken_server_fails_the_check_and_a_warning_does_not(servers: Path, menugate: Type) -> None:
    said = menugate("check")
    assert said.code == 1
    assert "1 fault; until you fix it, menugate runs without broken:" in said.out
    assert f"{servers}:3: mcpServers.broken.command: there is no program" in said.out
    assert f"1 warning:\n{servers}:4: mcpServers.unwise.args[0]: the secret `TOKEN`" in said.out
    assert "Everything else is valid" in said.out
    report = json.loads(menugate("check --json").out)
    assert (report["ok"], [one["server"] for one in report["faults"]]) == (False, ["broken"])
    assert [(one["server"], one["line"]) for one in report["warnings"]] == [("unwise", 4)]
    servers.write_text(SERVERS.replace("no-such-program-at-all", "sh"))
    said = menugate("check")
    assert (said.code, "1 warning:" in said.out, "All valid" in said.out) == (0, True, True)
    report = json.loads(menugate("check --json").out)
    assert (report["ok"], report["faults"], len(report["warnings"])) == (True, [], 1)


def test_status_and_doctor_name_the_servers_that_are_missing(servers: Path, menugate: Type) -> None:
    line = "2 servers, 1 left out because of a fault (broken), 1 warning; see `menugate check`"
    assert line in " ".join(menugate("status").out.split())
    facts = json.loads(menugate("status --json").out)["upstreams"]
    assert (facts["mounted"], facts["broken"], facts["warnings"]) == (["sound", "unwise"], ["broken"], 1)
    report = json.loads(menugate("doctor --json").out)
    found = [(one["grade"], one["says"]) for one in report["findings"] if one["what"] == "upstreams"]
    assert found == [("fault", line)]
    assert menugate("doctor").code == 1
    servers.write_text("rules: {}\n")
    assert json.loads(menugate("status --json").out)["upstreams"] is None


def test_the_log_says_at_the_start_which_server_is_left_out(servers: Path, place: Path, home: Path) -> None:
    servers.write_text("mcpServers: {a: {command: no-such}, b: {command: '${secret:TOKEN}'}}\n")
    said = warm.run(command("serve"), environment(home), cwd=place, text=True, input="")
    assert "the server a is left out: " in said.stderr
    assert "there is no program `no-such`" in said.stderr
    assert "the server b is left out: " in said.stderr
    assert "canary" not in said.stderr, "a fault quotes no secret"
