"""Is disorder found, mended where the cure is certain, and does work turn to repair as the operator said?"""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.cli.conftest import Type, menugate, place
from tests.clients import warm
from tests.clients.pipe import pipe
from tests.clients.served import PATIENCE, command, environment
from tests.clients.waiting import wait_until

__all__ = ["menugate", "place"]
Plant: TypeAlias = Callable[[Path, Path], object]
DAYS = 3 * 24 * 3600


def sql(work: Path, statement: str) -> None:
    link = sqlite3.connect(work / ".menugate" / "state.db")
    link.execute(statement)
    link.commit()
    link.close()


def old(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    os.utime(path, (time.time() - DAYS, time.time() - DAYS))
    path.parent.chmod(0o700)


def damaged(work: Path, _home: Path) -> None:
    for one in (work / ".menugate").glob("state.db-*"):
        one.unlink()
    (work / ".menugate" / "state.db").write_bytes(b"not a database" * 500)


def findings(said: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in json.loads(said)["findings"]:
        found.setdefault(one["what"], []).append(one)
    return found


CONFIG = ".config/menugate/menugate.yaml"


def config(home: Path, text: str) -> None:
    (home / CONFIG).parent.mkdir(parents=True, exist_ok=True)
    (home / CONFIG).write_text(text)


FAULTS: list[tuple[str, str, Plant, bool]] = [
    # what is examined, what it says, how it is planted, whether `fix` mends it
    ("ledger", "does not match the chain", lambda work, _: sql(work, TAMPER), False),
    ("ledger", "the end of the ledger was cut off", lambda work, _: sql(work, CUT), False),
    ("ledger", "the anchor is missing", lambda work, _: (work / ".menugate" / "ledger.anchor").unlink(), False),
    ("ledger", "the key is missing", lambda _, home: key(home).unlink(), False),
    ("state file", "is damaged", damaged, True),
    ("state file", "its anchor is still there", lambda work, _: gone(work), True),
    ("state folder", "can be read or written by other users", lambda work, _: (work / ".menugate").chmod(0o777), True),
    ("state folder", "can be read or written by other users", lambda _, home: key(home).chmod(0o644), True),
    ("menus and rules", "menugate.yaml:1", lambda _, home: config(home, "oops: 1\n"), False),
]
CUT = "DELETE FROM ledger WHERE seq > 2"
TAMPER = "UPDATE ledger SET body = replace(body, 'typed', 'wiped') WHERE seq = 2"


def key(home: Path) -> Path:
    return home / ".local" / "state" / "menugate" / "ledger.key"


def gone(work: Path) -> None:
    for one in (work / ".menugate").glob("state.db*"):
        one.unlink()


@pytest.mark.parametrize(("what", "says", "plant", "mends"), FAULTS, ids=[f"{one[0]}: {one[1]}" for one in FAULTS])
def test_a_planted_fault_is_found_and_mended_only_where_the_cure_is_certain(
    menugate: Type, place: Path, home: Path, what: str, says: str, plant: Plant, mends: bool
) -> None:
    menugate("mode plan")
    assert menugate("doctor").code == 0
    plant(place, home)
    said = menugate("doctor --json")
    assert said.code == 1
    assert any(says in one["says"] and one["grade"] == "fault" for one in findings(said.out)[what]), said.out
    fixed = menugate("doctor fix --json")
    assert (fixed.code == 0) is mends, fixed.out
    assert "Traceback" not in said.err + fixed.err
    assert bool(json.loads(fixed.out)["mended"]) is mends


def test_where_no_server_could_keep_its_state_things_are_not_in_order(menugate: Type, place: Path) -> None:
    (place / ".menugate").write_text("no folder")
    said = menugate("doctor fix --json")
    assert said.code == 1
    (found,) = findings(said.out)["state file"]
    assert f"{place / '.menugate'} is not a folder that you can read and write" in found["says"]


def cannot_be_used(_: object) -> bool:
    return False


def test_an_account_that_can_keep_no_keys_is_told_what_to_set(
    menugate: Type, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_server.state.account.is_usable", cannot_be_used)
    said = menugate("doctor --json")
    assert said.code == 1
    (found,) = findings(said.out)["keys"]
    assert "MENUGATE_STATE_HOME" in found["says"]


LEFT: list[tuple[str, Plant]] = [
    ("saved result older than a day", lambda work, _: old(work / ".menugate" / "spill" / "grep.txt")),
    ("half-written file", lambda work, _: old(work / ".menugate" / ".http.token-0123")),
    ("half-written file", lambda _, home: old(key(home).with_name(".ledger.key-abcd"))),
]


@pytest.mark.parametrize(("says", "plant"), LEFT)
def test_leftovers_are_noted_and_tidied_away(menugate: Type, place: Path, home: Path, says: str, plant: Plant) -> None:
    menugate("mode plan")
    plant(place, home)
    said = menugate("doctor --json")
    assert said.code == 0
    assert any(says in one["says"] and one["mendable"] for one in findings(said.out)["leftovers"])
    menugate("doctor fix")
    assert [one["says"] for one in findings(menugate("doctor --json").out)["leftovers"]] == ["none"]


def test_a_server_that_was_killed_is_noted(menugate: Type, place: Path, home: Path) -> None:
    with pipe(place, home) as one:
        one.hello("mcp")
        one.call("menu_enter", mode="swe")
        one.process.kill()
        one.process.wait()
        assert f"process {one.process.pid} ended unexpectedly" in menugate("doctor").out


HOLDING = """
import fcntl, sys
file = open(sys.argv[1])
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_state_that_somebody_holds_is_a_fault(menugate: Type, place: Path) -> None:
    menugate("mode plan")
    lock = place / ".menugate" / "state.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline()
        said = menugate("doctor --json")
        assert said.code == 1
        assert "locked this workspace's state" in findings(said.out)["lock"][0]["says"]
    finally:
        holder.communicate()


# What follows.


@pytest.mark.parametrize("policy", ["auto", "ask", "log-only", None])
def test_what_follows_is_what_the_operator_said(menugate: Type, place: Path, home: Path, policy: str | None) -> None:
    config(home, f"health: {policy}\n" if policy else "")
    menugate("profile trusted")
    sql(place, TAMPER)
    assert menugate("doctor fix").code == 1
    stands = json.loads(menugate("status --json").out)
    work, profile = (stands["posture"][axis]["value"] for axis in ("work_mode", "profile"))
    (health,) = [json.loads(line) for line in menugate("audit tail --kind health --json").out.splitlines()]
    assert "does not match the chain" in health["reason"]
    if policy == "auto":
        assert (work, profile) == ("repair", "normal")
        *_, turned = [json.loads(line) for line in menugate("audit tail --kind transition --json").out.splitlines()]
        assert (turned["door"], turned["to"]["work_mode"], turned["scope"]) == ("doctor", "repair", "now")
        assert turned["reason"].startswith("health gate failed: ledger")
        return
    assert (work, profile) == ("build", "trusted")
    if policy == "log-only":
        assert stands["to_come"] == [] and "No new messages" in menugate("messages").out
        return
    (asked,) = stands["to_come"]
    assert f"menugate steer --confirm {asked['id']}" in menugate("messages").out
    assert menugate("doctor fix").code == 1
    assert len(json.loads(menugate("status --json").out)["to_come"]) == 1, "it is asked once"
    assert "repair | autonomous | normal" in menugate(f"steer --confirm {asked['id']}").out


@pytest.mark.parametrize("profile", ["restricted", "normal", "trusted", "unrestricted"])
def test_the_gate_never_raises_the_profile(menugate: Type, place: Path, home: Path, profile: str) -> None:
    config(home, "health: auto\n")
    menugate(f"profile {profile}")
    sql(place, TAMPER)
    menugate("doctor fix")
    value = json.loads(menugate("profile --json").out)["value"]
    assert value == ("restricted" if profile == "restricted" else "normal")


@pytest.mark.parametrize("mode", ["plan", "review", "chat"])
def test_the_gate_never_allows_more_than_the_work_mode(menugate: Type, place: Path, home: Path, mode: str) -> None:
    config(home, "health: auto\n")
    menugate(f"mode {mode} --permission-profile trusted")
    sql(place, TAMPER)
    menugate("doctor fix")
    assert f"{mode} | autonomous | normal" in menugate("status").out


def test_a_server_that_finds_its_ledger_cut_turns_to_repair(menugate: Type, place: Path, home: Path) -> None:
    config(home, "health: auto\n")
    menugate("profile trusted")
    sql(place, CUT)
    with pipe(place, home) as one:
        one.hello("mcp")
        one.call("menu_enter", mode="swe")
        wait_until(lambda: "repair | autonomous | normal" in menugate("status").out)
    assert "health gate failed: rows" in menugate("audit tail --kind transition").out


def test_a_served_folder_is_examined_from_the_client(menugate: Type, place: Path, home: Path) -> None:
    config(home, "health: auto\n")
    with pipe(place, home) as one:
        one.hello("mcp")
        one.call("menu_enter", mode="swe")
        sql(place, "UPDATE ledger SET body = replace(body, 'pid', 'pix') WHERE seq = 1")
        answer = one.request("prompts/get", {"name": "doctor", "arguments": {}})
        said = answer["result"]["messages"][0]["content"]["text"]
        assert "fault: ledger: row 1" in said and "Found 1 fault." in said
        assert "`menugate doctor fix`" not in said and "`repair`" not in said, "it only reads"
    assert "repair" not in menugate("status").out


def test_the_real_command_ends_with_one_where_something_is_wrong(place: Path, home: Path, menugate: Type) -> None:
    menugate("mode plan")
    sql(place, TAMPER)
    said = warm.run(command("doctor"), environment(home), cwd=place, text=True, timeout=PATIENCE)
    assert said.returncode == 1
    assert "Found 1 fault." in said.stdout
