"""N1: where the server or whoever types has no folder for keys, or has others, `menugate stop` ended nothing."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.test_h11_keys_follow_environment import Account, Variables, account, needs_an_account
from tests.attacks.test_n1_stop_does_not_stop import begin, flags, number, said, sleeping
from tests.clients.pipe import pipe
from tests.clients.served import command, environment
from tests.clients.waiting import wait_until

__all__ = ["account", "number"]
WHO = {"keyless": True, "other keys": False}


def calls(one: Account, **about: Any) -> list[dict[str, Any]]:
    return one.status(**about)["calls"]


@needs_an_account
@pytest.mark.parametrize("keyless", WHO.values(), ids=WHO)
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_stop_reaches_a_server_whatever_the_keys(
    account: Account, home: Path, tmp_path: Path, number: int, keyless: bool, era: str
) -> None:
    """`keyless`: the person who types has no keys either; else a folder is named that can be written."""
    keys: Variables = {} if keyless else {"MENUGATE_STATE_HOME": tmp_path / "named"}
    about: dict[str, Any] = {"closed": account.everywhere, "variables": keys}
    with pipe(account.work, home, *flags("trusted"), run=account.words("serve", closed=account.everywhere)) as one:
        one.hello(era=era)
        line = f"sleep {number}; echo x > src/done.txt"
        request = begin(one, line, number)
        wait_until(lambda: bool(calls(account, **about)))
        assert [call["about"] for call in calls(account, **about)] == [line]
        shown = account.says("status", **about)
        assert line in shown.stdout
        paused = account.says("pause", **about)
        if keyless:
            assert (paused.returncode, "`menugate stop`" in paused.stderr) == (1, True)
            planned = account.says("mode", "plan", **about)
            assert (planned.returncode, "`menugate stop`" in planned.stderr) == (1, True)
        else:
            assert line in paused.stdout
            assert "`menugate stop`" in paused.stdout
        assert sleeping(number)
        stopped = account.says("stop", **about)
        assert not sleeping(number), stopped
        assert line in stopped.stdout
        assert "with a signal" in stopped.stdout.lower()
        assert "nothing was changed" not in stopped.stdout + stopped.stderr
        assert "Nothing of them" not in stopped.stdout
        assert "CANCELLED" in said(one.until(request)[0]["result"])
        wait_until(lambda: "RUN_PAUSED" in said(one.call("bash", command="ls")))
        assert not calls(account, **about)
    assert not (account.work / "src" / "done.txt").exists()


@needs_an_account
def test_what_a_server_started_stops_nothing_without_keys(account: Account, home: Path, number: int) -> None:
    """Whoever takes the keys away does not speak for the person."""
    with pipe(account.work, home, *flags("unrestricted"), run=account.words("serve", closed=account.everywhere)) as one:
        one.hello()
        begin(one, f"sleep {number}", number, run_in_background=True)
        env = [f"{name}={value}" for name, value in environment(home).items()]
        line = shlex.join(["env", *env, *command("stop"), "--workspace", str(account.work)])
        (account.work / "tidy.sh").write_text(line)
        heard = json.dumps(one.call("bash", command="sh tidy.sh"))
        assert "cannot act for you" in heard
        assert sleeping(number)
