"""Do you add, disable and remove servers as you typed it, and does nobody else?"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_server.state.upstream_pins import UpstreamPins
from tests.cli.conftest import Type
from tests.clients import warm
from tests.clients.pipe import pipe
from tests.clients.served import command, environment, state_home
from tests.upstreams.ground import SERVERS
from tests.yaml_text import load_yaml

SECRET = "canary-5up3r-secret"
START = f"{sys.executable} {SERVERS / 'schemas.py'}"


@pytest.fixture
def config(home: Path, place: Path) -> Path:
    file = home / ".config" / "menugate" / "menugate.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("# mine\nprofile: trusted  # always\n")
    return file


def servers(config: Path) -> dict[str, Any]:
    return load_yaml(config.read_text()).get("mcpServers", {})


def test_a_server_is_added_tested_and_removed(config: Path, menugate: Type, place: Path, home: Path) -> None:
    said = menugate(f"upstreams add sums --env WHERE=here -- {START} x")
    assert said.code == 0, said.err
    assert config.read_text().startswith("# mine\nprofile: trusted  # always\nmcpServers:\n")
    entry = {"command": sys.executable, "args": [str(SERVERS / "schemas.py"), "x"], "env": {"WHERE": "here"}}
    assert servers(config) == {"sums": entry}
    said = menugate("upstreams test sums")
    assert said.code == 0 and "works" in said.out and "schemas 1" in said.out
    facts = json.loads(menugate("upstreams test sums --json").out)
    assert facts["tools"] == 4 and facts["tokens"] > 0 and facts["seconds"] > 0
    shown = json.loads(menugate("upstreams approve sums --json").out)
    menugate(f"upstreams approve sums --digest {shown['digest']}")
    assert menugate("upstreams disable sums").code == 0
    assert servers(config)["sums"]["disabled"] is True
    assert "is disabled" in menugate("upstreams test sums").err
    assert menugate("upstreams enable sums").code == 0
    assert servers(config)["sums"]["disabled"] is False
    said = menugate("upstreams remove sums")
    assert (said.code, servers(config)) == (0, {}), said.err
    assert "Your approval for this workspace is withdrawn" in said.out
    assert UpstreamPins(state_home(home), place).find_approval("sums") is None
    assert config.read_text().startswith("# mine\nprofile: trusted  # always\n")


NEEDS = """
import os, sys
sys.argv[1:] and open(sys.argv[1], "w").close()
os.execv(sys.executable, [sys.executable, SERVER])
"""


def test_the_narrowest_sandbox_in_which_it_starts_is_written(config: Path, menugate: Type, place: Path) -> None:
    (place / "sub").mkdir()
    script = place / "needs.py"
    script.write_text(NEEDS.replace("SERVER", repr(str(SERVERS / "schemas.py"))))
    start = f"{sys.executable} {script}"
    said = menugate(f"upstreams add sums --sandbox -- {start}")
    assert said.code == 0, said.err
    assert servers(config)["sums"]["sandbox"] == {} and "no network; your home is hidden" in said.err
    said = menugate(f"upstreams add more --sandbox --network a.example -- {start} {place / 'sub' / 'written'}")
    assert said.code == 0, said.err
    assert servers(config)["more"]["sandbox"]["write"] == ["."]
    assert servers(config)["more"]["sandbox"]["network"] == ["a.example"]
    said = menugate("upstreams show more")
    assert "writes in its own folder, .; reaches a.example" in " ".join(said.out.split())
    assert "none: it can do whatever" not in said.out
    before = config.read_text()
    said = menugate("upstreams add never --sandbox -- sh -c 'exit 1'")
    assert (said.code, "starts in no sandbox" in said.err) == (1, True), said.err
    assert config.read_text() == before
    assert menugate("upstreams add far --sandbox --url http://127.0.0.1:9/mcp").code == 2


def test_the_first_server_makes_the_file(menugate: Type, home: Path) -> None:
    assert menugate("upstreams add web --url http://127.0.0.1:9/mcp").code == 0
    file = home / ".config" / "menugate" / "menugate.yaml"
    assert (servers(file), file.stat().st_mode & 0o777) == ({"web": {"url": "http://127.0.0.1:9/mcp"}}, 0o600)


def test_passwords_go_to_the_store_and_not_into_the_file(config: Path, menugate: Type) -> None:
    said = menugate(f"upstreams add web --url http://127.0.0.1:9/mcp --header 'Authorization=Bearer {SECRET}'")
    assert said.code == 0, said.err
    assert SECRET not in config.read_text() + said.out + said.err
    assert servers(config)["web"]["headers"] == {"Authorization": "Bearer ${secret:AUTHORIZATION}"}
    said = menugate(f"upstreams add sums --env API_TOKEN={SECRET}2 -- sh")
    assert servers(config)["sums"]["env"] == {"API_TOKEN": "${secret:API_TOKEN}"}
    menugate(f"upstreams add more --env API_TOKEN={SECRET}3 -- sh")
    assert servers(config)["more"]["env"] == {"API_TOKEN": "${secret:more_API_TOKEN}"}
    menugate(f"upstreams add same --env API_TOKEN={SECRET}2 -- sh")
    assert servers(config)["same"]["env"] == {"API_TOKEN": "${secret:API_TOKEN}"}
    assert SECRET not in config.read_text()


FAULTS = {
    "upstreams add sums": (2, "write a NAME, and either"),
    "upstreams add sums --url http://a/mcp -- sh": (2, "write a NAME, and either"),
    "upstreams add sums --env TOKEN -- sh": (2, "`TOKEN` has no value"),
    "upstreams add sums -- pyhton-nowhere": (1, "there is no program `pyhton-nowhere` on the PATH"),
    "upstreams add sums -- sh ${NOT_SET_ANYWHERE}": (1, "`NOT_SET_ANYWHERE`"),
    "upstreams add sums --url ftp://a/mcp": (1, "this is not a web address"),
    "upstreams add 'a:b' -- sh": (1, "a:b"),
    "upstreams add there -- sh": (1, "there is already a server there; add `--replace`"),
    "upstreams add There -- sh": (1, "its tools would begin with `there_`"),
    "upstreams disable ther": (1, "did you mean `there`?"),
    "upstreams remove zzzzzz": (1, "there is no server zzzzzz in"),
    "upstreams remove used": (1, "there is no server `used`"),
    "upstreams add --from nowhere.json": (1, "nowhere.json cannot be read: no such file or directory"),
    "upstreams add --from x.json --url http://a/mcp": (2, "goes with names only"),
}


@pytest.mark.parametrize("line", FAULTS)
def test_what_is_wrong_is_said_and_nothing_is_written(line: str, config: Path, menugate: Type) -> None:
    config.write_text("mcpServers:\n  there: {command: sh}\n  used: {command: sh}\nmenus: [menus]\n")
    (config.parent / "menus").mkdir()
    mode = {"title": "Mixed", **dict.fromkeys(("role", "goal", "offers", "remember"), "It mixes."), "when": "to mix"}
    (config.parent / "menus" / "m.yaml").write_text(json.dumps({"name": "mixed", **mode, "tools": ["used:*"]}))
    before = config.read_text()
    said = menugate(line)
    code, words = FAULTS[line]
    assert (said.code, words in said.err) == (code, True), said.err
    assert config.read_text() == before


def test_a_program_that_a_server_started_changes_nothing(config: Path, place: Path, home: Path) -> None:
    config.write_text("mcpServers: {sums: {command: sh}}\n")
    exports = "\n".join(f"export {name}='{value}'" for name, value in environment(home).items())
    tries = ["add more -- sh", "disable sums", "enable sums", "remove sums", "test sums"]
    lines = "\n".join(f"{' '.join(command('upstreams'))} {one} 2>&1" for one in tries)
    (place / "try.sh").write_text(f"{exports}\n{lines}\n")
    with pipe(place, home, "--profile", "unrestricted", "--mode", "swe") as client:
        client.hello()
        said = json.dumps(client.call("bash", command="sh try.sh"))
        assert said.count("was started by a menugate server") >= len(tries), said
        for one in tries:
            assert "BLOCKED" in json.dumps(client.call("bash", command=f"menugate upstreams {one}"))
    assert config.read_text() == "mcpServers: {sums: {command: sh}}\n"


PROPOSED: dict[str, Any] = {
    "forge": {
        "command": "sh",
        "args": ["-c", "touch started"],
        "env": {"GIT_TOKEN": SECRET, "PLAIN": "${PLAIN_VALUE}"},
    },
    "web": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}, "autoApprove": ["x"]},
    "odd": {"command": ["sh"]},
}


@pytest.fixture
def proposal(place: Path, config: Path) -> Path:
    file = place / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": PROPOSED}))
    return file


def test_a_workspace_only_proposes(proposal: Path, menugate: Type, place: Path, config: Path, home: Path) -> None:
    said = menugate("upstreams list")
    assert said.code == 0, said.err
    for words in (
        "proposed by",
        "forge",
        "starts  sh -c 'touch started'",
        "GIT_TOKEN, PLAIN",
        "calls  http://127.0.0.1:9",
    ):
        assert words in said.out, said.out
    assert SECRET not in said.out and "`command` has another form" in said.out
    with pipe(place, home) as client:
        client.hello()
        assert "forge" not in json.dumps(client.call("menu_list"))
    assert not (place / "started").exists()
    refused = menugate("upstreams add --from .mcp.json forge")
    assert (refused.code, "add `--yes`" in refused.err, servers(config)) == (1, True, {})


def test_what_you_pick_is_added_for_this_workspace(
    proposal: Path, menugate: Type, place: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "touch started" in menugate("upstreams add --from .mcp.json").out
    said = menugate("upstreams add --from .mcp.json forge --yes")
    assert (said.code, "PLAIN_VALUE" in said.err) == (1, True), "a variable is read only now, and is not set"
    monkeypatch.setenv("PLAIN_VALUE", "x")
    said = menugate("upstreams add --from .mcp.json forge web --yes")
    assert said.code == 0, said.err
    assert "`autoApprove` is another program's key and was left out" in said.err
    added = load_yaml(config.read_text())["workspaces"][str(place)]["mcpServers"]
    assert added["forge"]["env"] == {"GIT_TOKEN": "${secret:GIT_TOKEN}", "PLAIN": "${PLAIN_VALUE}"}
    assert SECRET not in config.read_text() + said.out + said.err
    listed = menugate("upstreams list --json")
    facts = json.loads(listed.out)
    assert [one["name"] for one in facts["proposed"]["servers"]] == ["odd"]
    assert {one["name"]: one["state"] for one in facts["servers"]} == {"forge": "not approved", "web": "not approved"}
    changed = {**PROPOSED, "forge": {**PROPOSED["forge"], "args": ["-c", "other"]}}
    proposal.write_text(json.dumps({"mcpServers": changed}))
    again = {
        one["name"]: one["differs"] for one in json.loads(menugate("upstreams list --json").out)["proposed"]["servers"]
    }
    assert again == {"forge": ["args"], "odd": []}
    assert load_yaml(config.read_text())["workspaces"][str(place)]["mcpServers"] == added
    assert "add `--replace`" in menugate("upstreams add --from .mcp.json forge --yes").err
    assert menugate("upstreams add --from .mcp.json forge --yes --replace").code == 0
    assert not (place / "started").exists()


@pytest.mark.parametrize(
    "text", ["", "{", '{"mcpServers": {', "[]", '{"mcpServers": []}', '{"a": 1, "a": 2}', "\0", "[" * 100_000]
)
def test_a_half_written_proposal_harms_nothing(text: str, proposal: Path, menugate: Type, config: Path) -> None:
    config.write_text("mcpServers: {sums: {command: sh}}\n")
    proposal.write_text(text)
    said = menugate("upstreams list")
    assert (said.code, ".mcp.json" in said.out, "sums" in said.out) == (0, True, True), said.out
    refused = menugate("upstreams add --from .mcp.json forge --yes")
    assert (refused.code, ".mcp.json" in refused.err) == (1, True)
    assert config.read_text() == "mcpServers: {sums: {command: sh}}\n"


def test_other_hosts_files_are_understood(config: Path, menugate: Type, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"servers": {"a": {"type": "stdio", "command": "sh"}}}))
    (tmp_path / "config.toml").write_text('[mcp_servers.b]\ncommand = "sh"\nenabled = false\nstartup_timeout_sec = 9\n')
    assert menugate(f"upstreams add --from {tmp_path / 'mcp.json'} a --yes").code == 0
    said = menugate(f"upstreams add --from {tmp_path / 'config.toml'} b --yes")
    assert "write `start_timeout`" in said.err
    assert servers(config) == {"a": {"type": "stdio", "command": "sh"}, "b": {"command": "sh", "disabled": True}}


def test_what_a_server_wrote_is_shown(config: Path, menugate: Type, place: Path, home: Path) -> None:
    script = place / "talk.sh"
    script.write_text("echo it cannot start >&2\nexit 3\n")
    menugate(f"upstreams add talk -- sh {script}")
    assert "has written nothing" in menugate("upstreams logs talk").err
    tried = warm.run(command("upstreams", "test", "talk"), environment(home), cwd=place, text=True)
    assert tried.returncode == 1 and "talk" in tried.stderr
    assert "it cannot start" in menugate("upstreams logs talk").out
