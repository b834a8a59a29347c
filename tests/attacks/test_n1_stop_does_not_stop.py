"""N1: `menugate stop` did not end what ran: a command went on to its end and was recorded as done, a loop in the
background went on, and nobody was told of either.

Processes are looked for from outside, by a number that nobody else sleeps for.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from mcp_server.state.engine.rows import LedgerFilter
from mcp_server.state.reader import Reader
from tests.clients import warm
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import PATIENCE, command, environment, served
from tests.clients.typed import Typed, typed
from tests.clients.waiting import wait_until

WITHOUT_BUBBLEWRAP = 'mount --bind /dev/null /usr/bin/bwrap && exec "$0" "$@"'
ERAS = ("legacy", "modern")


@pytest.fixture
def number() -> Generator[int, None, None]:
    """Of seconds; nothing that sleeps for so long is left behind, whatever fails."""
    chosen = random.randrange(10_000_000, 99_999_999)
    yield chosen
    for pid in sleeping(chosen):
        os.kill(pid, signal.SIGKILL)


def sleeping(number: int) -> list[int]:
    """Who sleeps for so long, or for the same with a digit more, on the whole machine."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0") if folder.name.isdigit() else []
            if words[:1] == [b"sleep"] and words[1].startswith(str(number).encode()):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def said(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def flags(profile: str) -> list[str]:
    return ["--mode", "swe", "--profile", profile, "--max-profile", profile]


def run_words(sandbox: str) -> list[str]:
    """How the server is started where it finds that sandbox."""
    if sandbox == "landlock" and Path("/usr/bin/bwrap").exists():
        if os.geteuid() != 0:
            pytest.skip("only root can take bubblewrap away")
        return ["unshare", "--mount", "sh", "-c", WITHOUT_BUBBLEWRAP, *command("serve")]
    return command("serve")


def begin(one: Pipe, line: str, number: int, count: int = 1, **more: Any) -> int:
    """A command that goes on: the number of its request, once so many sleep."""
    request = one.send("tools/call", {"name": "bash", "arguments": {"command": line, "timeout": 500, **more}})
    wait_until(lambda: len(sleeping(number)) >= count)
    return request


def rows(workspace: Path, home: Path, kind: str) -> list[dict[str, Any]]:
    secrets = home / ".local" / "state" / "menugate"
    with Reader.open(f"sqlite:///{workspace / '.menugate' / 'state.db'}", secrets=secrets) as state:
        return [dict(row.fields) for row in state.read_rows(LedgerFilter(kinds=(kind,)))]


def outcomes(workspace: Path, home: Path) -> list[tuple[str, str]]:
    return [(row["tool"], row["ending"]) for row in rows(workspace, home, "outcome")]


EVERYWHERE = [("bubblewrap", "trusted"), ("landlock", "trusted"), ("none", "unrestricted")]


@pytest.mark.parametrize(("sandbox", "profile"), EVERYWHERE)
@pytest.mark.parametrize("era", ERAS)
def test_pause_names_a_command_and_stop_ends_it(
    workspace: Path, home: Path, number: int, sandbox: str, profile: str, era: str
) -> None:
    with pipe(workspace, home, *flags(profile), run=run_words(sandbox)) as one:
        one.hello(era=era)
        line = f"sleep {number}; echo x > src/done.txt"
        request = begin(one, line, number)
        paused = typed(workspace, home, "pause")
        assert paused.code == 0
        assert line in paused.out
        assert "running" in paused.out
        assert sleeping(number)
        stopped = typed(workspace, home, "stop")
        assert stopped.code == 0
        # Whoever is told that it ended may rely on it.
        assert not sleeping(number)
        assert "Ended" in stopped.out
        assert line in stopped.out
        assert "`bash`" in stopped.out
        assert "pid " in stopped.out
        answer, _ = one.until(request)
        assert answer["result"]["isError"]
        assert "CANCELLED" in said(answer["result"])
        assert "the user stopped it" in said(answer["result"])
        assert "RUN_PAUSED" in said(one.call("bash", command="ls"))
        wait_until(lambda: ("bash", "cancelled") in outcomes(workspace, home))
        again = typed(workspace, home, "stop")
        assert "Ended" not in again.out
        assert line not in again.out
        typed(workspace, home, "next")
        wait_until(lambda: not one.call("bash", command="ls")["isError"])
    assert ("bash", "done") not in outcomes(workspace, home)[:1]
    assert not (workspace / "src" / "done.txt").exists()


LINGERING = """
trap '' TERM INT HUP
setsid sh -c 'trap "" TERM HUP; sleep {0}1' &
(setsid sh -c '(trap "" TERM HUP; sleep {0}2 &)' &)
nohup sh -c 'sleep {0}3' > /dev/null 2>&1 &
(while true; do sleep {0}4; done) &
sleep {0}5
echo x > src/done.txt
"""


@pytest.mark.parametrize(("sandbox", "profile"), EVERYWHERE)
@pytest.mark.parametrize("behind", [False, True])
def test_stop_ends_what_left_its_family_and_hears_no_signal(
    workspace: Path, home: Path, number: int, sandbox: str, profile: str, behind: bool
) -> None:
    with pipe(workspace, home, *flags(profile), run=run_words(sandbox)) as one:
        one.hello()
        begin(one, LINGERING.format(number), number, 5, **({"run_in_background": True} if behind else {}))
        stopped = typed(workspace, home, "stop")
        assert sleeping(number) == []
        assert "`bash` `trap '' TERM INT HUP setsid" in stopped.out, stopped.out
    assert not (workspace / "src" / "done.txt").exists()


def test_stop_ends_shells_of_every_kind_and_says_so_once(workspace: Path, home: Path, number: int) -> None:
    with pipe(workspace, home, *flags("trusted")) as one:
        one.hello()
        begin(one, f"sleep {number}1", number, 1, run_in_background=True)
        begin(one, f"sleep {number}2 & sleep 0", number, 2, bash_id="mine")
        one.call("bash", command=f"sleep {number}3", timeout=1)
        assert len(sleeping(number)) == 3
        paused = typed(workspace, home, "pause")
        assert all(f"{number}{last}" in paused.out for last in (1, 3)), paused.out
        stopped = typed(workspace, home, "stop")
        assert sleeping(number) == []
        assert all(stopped.out.count(f"{number}{last}") == 1 for last in (1, 3)), stopped.out
        assert "Nothing was running." in typed(workspace, home, "stop").out


@pytest.mark.parametrize("era", ERAS)
def test_the_prompt_stops_and_names_as_well(workspace: Path, home: Path, number: int, era: str) -> None:
    with pipe(workspace, home, *flags("trusted")) as one:
        # A host that is known to keep prompts for its user.
        one.hello("claude-code", era)
        line = f"sleep {number}; echo x > src/done.txt"
        request = begin(one, line, number)
        read = one.send("prompts/get", {"name": "pause", "arguments": {"when": "now", "reason": "lunch"}})
        paused, before = one.until(read)
        assert line in json.dumps(paused)
        assert not [message for message in before if message.get("id") == request]
        begun = one.send("prompts/get", {"name": "stop", "arguments": {"when": "now", "reason": "wrong"}})
        seen: dict[Any, dict[str, Any]] = {}
        while begun not in seen or request not in seen:
            message = one.message()
            seen[message.get("id")] = message
        assert "CANCELLED" in said(seen[request]["result"])
        text = json.dumps(seen[begun])
        assert line in text
        assert "Ended" in text
        assert not sleeping(number)


def test_stop_reaches_every_server_and_one_session_alone(workspace: Path, home: Path, number: int) -> None:
    with pipe(workspace, home, *flags("trusted")) as one, pipe(workspace, home, *flags("trusted")) as two:
        begun: list[int] = []
        for index, client in enumerate((one, two)):
            client.hello()
            begun.append(begin(client, f"sleep {number}{index}", number, index + 1))
        paused = typed(workspace, home, "pause")
        (session,) = [
            line.rsplit("session ")[-1].rstrip(")") for line in paused.out.splitlines() if f"{number}0" in line
        ]
        assert f"{number}1" in paused.out
        stopped = typed(workspace, home, "stop", "--session", session)
        assert f"{number}0" in stopped.out
        assert len(sleeping(number)) == 1
        assert "CANCELLED" in said(one.until(begun[0])[0]["result"])
        assert f"{number}1" in typed(workspace, home, "stop").out
        assert sleeping(number) == []
        assert "CANCELLED" in said(two.until(begun[1])[0]["result"])


def test_stop_at_the_terminal_is_about_everybody_and_in_a_host_about_its_own(
    workspace: Path, home: Path, tmp_path: Path, number: int
) -> None:
    import hashlib

    token = "guest-token-of-thirty-two-characters"
    config = tmp_path / "menugate.yaml"
    digest = hashlib.sha256(token.encode()).hexdigest()
    config.write_text(f"tokens:\n  - {{principal: guest, sha256: {digest}, max_profile: trusted}}\n")
    call = {"name": "bash", "arguments": {"command": f"sleep {number}", "run_in_background": True}}
    with served(workspace, home, *flags("trusted"), "--config", str(config)) as here, raw(here, token=token) as guest:
        assert not guest.request("tools/call", call)["result"]["isError"]
        with raw(here) as mine:
            text = json.dumps(mine.request("prompts/get", {"name": "stop", "arguments": {"reason": "now"}}))
            assert str(number) not in text
        assert sleeping(number)
        paused = typed(workspace, home, "pause", "--config", str(config))
        assert "guest" in paused.out
        assert str(number) in paused.out
        ended = typed(workspace, home, "stop", "--config", str(config))
        assert str(number) in ended.out
        assert sleeping(number) == []
        assert "RUN_PAUSED" in json.dumps(guest.request("tools/call", call))
        assert "Resumed" in typed(workspace, home, "next", "--config", str(config)).out
        # What lets more happen is heard of within half a second.
        wait_until(lambda: not guest.request("tools/call", call)["result"]["isError"])
        typed(workspace, home, "stop", "--config", str(config))
        assert sleeping(number) == []


def test_a_secret_in_a_command_is_not_shown(workspace: Path, home: Path, number: int) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    with pipe(workspace, home, *flags("trusted")) as one:
        one.hello()
        begin(one, f"T={secret} sleep {number}", number, 1, run_in_background=True)
        assert secret not in typed(workspace, home, "pause").out
        stopped = typed(workspace, home, "stop")
        assert secret not in stopped.out
        assert str(number) in stopped.out


def test_a_server_that_does_not_answer_is_named_and_obeys_later(workspace: Path, home: Path, number: int) -> None:
    with pipe(workspace, home, *flags("trusted")) as one:
        one.hello()
        begin(one, f"sleep {number}", number)
        os.kill(one.process.pid, signal.SIGSTOP)
        stopped = typed(workspace, home, "stop")
        assert stopped.code == 1
        assert str(one.process.pid) in stopped.out
        assert "did not answer" in stopped.out
        os.kill(one.process.pid, signal.SIGCONT)
        wait_until(lambda: not sleeping(number))


def test_a_server_that_was_killed_is_not_waited_for(workspace: Path, home: Path, number: int) -> None:
    with pipe(workspace, home, *flags("trusted")) as one:
        one.hello()
        begin(one, f"sleep {number}", number)
        one.process.kill()
        one.process.wait()
    wait_until(lambda: not sleeping(number))
    stopped = typed(workspace, home, "stop")
    assert stopped.code == 0
    assert "did not answer" not in stopped.out


def test_a_call_that_waits_and_starts_nothing_ends_as_well(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, *flags("trusted")) as one:
        one.hello()
        assert not one.call("bash", command="ls")["isError"]
        request = one.send("tools/call", {"name": "wait", "arguments": {"seconds": 300}})
        wait_until(lambda: "wait" in [row["tool"] for row in rows(workspace, home, "intent")])
        assert "`wait`" in typed(workspace, home, "pause").out
        assert "`wait`" in typed(workspace, home, "stop").out
        assert "CANCELLED" in said(one.until(request)[0]["result"])


@pytest.mark.heavy
@pytest.mark.heavy
@pytest.mark.parametrize(("sandbox", "profile"), EVERYWHERE)
def test_all_of_it_has_ended_within_two_seconds(
    workspace: Path, home: Path, number: int, sandbox: str, profile: str
) -> None:
    with pipe(workspace, home, *flags(profile), run=run_words(sandbox)) as one:
        one.hello()
        begin(one, LINGERING.format(number), number, 5, run_in_background=True)
        begin(one, f"sleep {number}6", number, 6)
        found: list[Typed] = []
        stopping = threading.Thread(target=lambda: found.append(typed(workspace, home, "stop")))
        begun = time.monotonic()
        stopping.start()
        wait_until(lambda: not sleeping(number))
        took = time.monotonic() - begun
        stopping.join()
        assert found[0].code == 0
        assert took < 2.0, took


def test_nobody_outlives_a_stop_by_stopping_what_stays_beside_it(workspace: Path, home: Path, number: int) -> None:
    """Without a sandbox a command may signal the process that is to end it, and ignore everything else itself."""
    line = (
        f"(env -i /usr/bin/setsid /bin/bash -c 'trap \"\" TERM HUP INT; exec sleep {number}' &) ; "
        "sleep .3; kill -STOP $PPID"
    )
    with pipe(workspace, home, *flags("unrestricted")) as one:
        one.hello()
        begin(one, line, number, 1)
        stopped = typed(workspace, home, "stop")
        assert sleeping(number) == []
        assert stopped.code == 0, stopped.out
        assert one.bye() == 0


def test_a_call_typed_at_a_terminal_is_named_as_ended_and_not_as_silent(
    workspace: Path, home: Path, number: int
) -> None:
    words = command("call", "bash", json.dumps({"command": f"sleep {number}"}), "--workspace", str(workspace))
    # Nobody hears of its end before the test does: what is left of it until then is no server.
    with subprocess.Popen([*words, *flags("trusted")[2:]], env=environment(home), cwd=home) as one:
        wait_until(lambda: bool(sleeping(number)))
        stopped = typed(workspace, home, "stop")
        assert sleeping(number) == []
        assert stopped.code == 0, stopped.out
        assert f"sleep {number}" in stopped.out
        assert "did not answer" not in stopped.out
        assert one.wait(PATIENCE) == 1


@pytest.fixture
def small(workspace: Path) -> Generator[list[str], None, None]:
    """The workspace as a disk of 6 MB, for whoever is started with these words before his own."""
    script = f'mount -t tmpfs -o size=6m none "{workspace}" && echo made && read -r _'
    words = ["unshare", "-rm", "sh", "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as one:
        assert one.stdin is not None
        assert one.stdout is not None
        if one.stdout.readline() != b"made\n":
            pytest.skip("no small disk can be made here")
        yield ["nsenter", "-t", str(one.pid), "-U", "-m", "--preserve-credentials", "--", *command("serve")]
        one.stdin.close()


def on_it(small: list[str], workspace: Path, home: Path, *words: str) -> Typed:
    line = [*small[:-1], *words, "--workspace", str(workspace)]
    ran = warm.run(line, environment(home), cwd=home, text=True, timeout=PATIENCE)
    return Typed(ran.returncode, ran.stdout, ran.stderr)


def fill(small: list[str], workspace: Path) -> Path:
    """Full to the last byte; the file to delete for there to be room."""
    ballast = Path(f"/proc/{small[2]}/root{workspace}") / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
    return ballast


@pytest.mark.parametrize("profile", ["trusted", "unrestricted"])
def test_stop_on_a_full_disk_ends_what_runs_and_lets_nothing_begin(
    small: list[str], workspace: Path, home: Path, number: int, profile: str
) -> None:
    with (
        pipe(workspace, home, *flags(profile), run=small) as one,
        pipe(workspace, home, *flags(profile), run=small) as two,
    ):
        one.hello()
        two.hello()
        begin(one, LINGERING.format(number), number, 5, run_in_background=True)
        request = begin(one, f"sleep {number}6", number, 6)
        assert not two.call("bash", command="ls")["isError"]
        ballast = fill(small, workspace)
        while not one.call("bash", command="ls")["isError"]:
            fill(small, workspace)
        fill(small, workspace)
        assert len(sleeping(number)) == 6
        alone = on_it(small, workspace, home, "stop", "--principal", "guest")
        assert alone.code == 1
        assert len(sleeping(number)) == 6, "one that is about less ends no more than that"
        stopped = on_it(small, workspace, home, "stop")
        assert sleeping(number) == [], stopped
        assert stopped.code == 1
        assert "is full" in stopped.out
        assert "nothing ran" not in stopped.out
        ended = next(line for line in stopped.out.splitlines() if "with a signal" in line)
        assert {str(one.process.pid), str(two.process.pid)} == set(ended.rstrip(".").split(": ")[1].split(", "))
        assert "did not answer" not in stopped.out
        assert "CANCELLED" in said(one.until(request)[0]["result"])
        assert one.call("bash", command="ls")["isError"]
        assert "is full" in on_it(small, workspace, home, "status").out
        assert "is full" in on_it(small, workspace, home, "doctor").out
        ballast.unlink()
        # It is put on record as soon as that can be, and held by that; nothing begins in between.
        assert one.call("bash", command="ls")["isError"]
        wait_until(lambda: "the user stopped it" in said(one.call("bash", command="ls")))
        assert two.call("bash", command="ls")["isError"]
        typed_next = on_it(small, workspace, home, "next")
        assert "the user stopped it" in typed_next.out
        wait_until(lambda: not one.call("bash", command="ls")["isError"])
        assert one.bye() == 0


def test_a_server_that_does_not_hear_the_signal_either_is_named(
    small: list[str], workspace: Path, home: Path, number: int
) -> None:
    with pipe(workspace, home, *flags("trusted"), run=small) as one:
        one.hello()
        begin(one, f"sleep {number}", number)
        fill(small, workspace)
        while not one.call("bash", command="ls")["isError"]:
            fill(small, workspace)
        fill(small, workspace)
        os.kill(one.process.pid, signal.SIGSTOP)
        stopped = on_it(small, workspace, home, "stop")
        os.kill(one.process.pid, signal.SIGCONT)
        assert stopped.code == 1
        assert f"`kill -9 {one.process.pid}`" in stopped.out
        assert "ended everything" not in stopped.out
        wait_until(lambda: not sleeping(number))


def test_stop_is_obeyed_where_nobody_met_the_full_disk_before(
    small: list[str], workspace: Path, home: Path, number: int
) -> None:
    """What room was kept for such a day may do for the order, or for the answer, or for neither."""
    with pipe(workspace, home, *flags("trusted"), run=small) as one:
        one.hello()
        begin(one, f"sleep {number}", number)
        ballast = fill(small, workspace)
        stopped = on_it(small, workspace, home, "stop")
        assert sleeping(number) == [], stopped
        assert "ended everything" in stopped.out or f"sleep {number}" in stopped.out, stopped
        assert one.call("bash", command="ls")["isError"]
        ballast.unlink()
        assert one.call("bash", command="ls")["isError"]
        wait_until(lambda: "the user stopped it" in said(one.call("bash", command="ls")))


def standing(workspace: Path, home: Path) -> dict[str, Any]:
    return json.loads(typed(workspace, home, "status", "--json").out)


@pytest.mark.parametrize("era", ERAS)
def test_status_names_what_runs_in_every_server(workspace: Path, home: Path, number: int, era: str) -> None:
    with pipe(workspace, home, *flags("trusted")) as one, pipe(workspace, home, *flags("trusted")) as two:
        secret = "ghp_" + "a1B2c3D4e5F6" * 3
        request = 0
        for index, client in enumerate((one, two)):
            client.hello("a-host", era)
            request = begin(client, f"T={secret} sleep {number}{index}", number, index + 1)
        begin(one, f"sleep {number}2", number, 3, run_in_background=True)
        wait_until(lambda: len(standing(workspace, home)["calls"]) == 3)
        said = standing(workspace, home)
        assert [call["tool"] for call in said["calls"]] == ["bash"] * 3
        assert {call["server"] for call in said["calls"]} == {one.process.pid, two.process.pid}
        assert {call["client"] for call in said["calls"]} == {"a-host"}
        assert all(call["since"] and call["session"] and call["processes"] for call in said["calls"])
        wait_until(
            lambda: [call["in_background"] for call in standing(workspace, home)["calls"]] == [False, False, True]
        )
        shown = typed(workspace, home, "status").out
        assert all(f"sleep {number}{last}" in shown for last in range(3)), shown
        assert secret not in shown + json.dumps(said)
        typed(workspace, home, "stop", "--session", said["calls"][1]["session"])
        two.until(request)
        wait_until(lambda: f"{number}1" not in typed(workspace, home, "status").out)
        typed(workspace, home, "stop")
        wait_until(lambda: standing(workspace, home)["calls"] == [])
    assert standing(workspace, home)["calls"] == []


def test_a_client_that_makes_calls_is_a_session_also_in_no_mode(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("a-host")
        one.call("menu_list")
        wait_until(lambda: standing(workspace, home)["sessions"] == 1)
        assert [client["name"] for client in standing(workspace, home)["clients"]] == ["a-host"]
    assert standing(workspace, home)["clients"] == []


def test_a_killed_server_runs_nothing_in_status(workspace: Path, home: Path, number: int) -> None:
    with pipe(workspace, home, *flags("trusted")) as one:
        one.hello()
        begin(one, f"sleep {number}", number)
        wait_until(lambda: bool(standing(workspace, home)["calls"]))
        one.process.kill()
        one.process.wait()
    assert standing(workspace, home)["calls"] == []
