"""Does a program in a command end where nobody reads what it prints, as it does in every shell?

Where the sandbox has a way to the network SIGPIPE was ignored in it: `while :; do echo x; done | head -1` never ended,
pipes failed with `pipefail`, and a loop before `head` filled the answer with "Broken pipe".
"""

import os
import re
import shutil
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.pipe import Pipe, pipe
from tests.clients.served import command

PROFILES = ["normal", "trusted", "unrestricted"]
WITHOUT_BUBBLEWRAP = 'mount --bind /dev/null /usr/bin/bwrap && exec "$0" "$@"'
IGNORED = "X=1; grep SigIgn /proc/self/status"
PYTHONS = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
"""What Python ignores. Whoever started the server may have had it ignore others, as a shell does in the background."""


@pytest.fixture(params=["bubblewrap", "landlock"])
def run(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "bubblewrap":
        if shutil.which("bwrap") is None:
            pytest.skip("there is no bubblewrap here")
        return command("serve")
    if os.geteuid() != 0:
        pytest.skip("only root can hide bubblewrap")
    return ["unshare", "--mount", "sh", "-c", WITHOUT_BUBBLEWRAP, *command("serve")]


@pytest.fixture(params=PROFILES)
def at(request: pytest.FixtureRequest, run: list[str], workspace: Path, home: Path) -> Generator[Pipe]:
    config = home / "menugate.yaml"
    config.write_text("rules:\n  allow:\n    - bash\n")
    with pipe(workspace, home, "--profile", request.param, "--config", str(config), run=run) as one:
        one.hello()
        one.call("menu_enter", mode="swe")
        yield one


def said(answer: dict[str, Any]) -> str:
    assert not answer["isError"], answer
    return str(answer["content"][0]["text"])


WAYS: list[dict[str, Any]] = [{}, {"bash_id": "kept"}, {"run_in_background": True}]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_no_signal_is_ignored_that_python_ignores(way: dict[str, Any], at: Pipe) -> None:
    (ignored,) = re.findall(r"SigIgn:\s*([0-9a-f]{16})", said(at.call("bash", command=IGNORED, **way)))
    assert int(ignored, 16) & PYTHONS == 0


def test_who_prints_for_nobody_ends(at: Pipe) -> None:
    assert said(at.call("bash", command="while :; do echo x; done | head -1", timeout=60)) == "x"
    assert said(at.call("bash", command="set -o pipefail; seq 1 1000000 | head -1; echo $?")) == "1\n141"
    assert said(at.call("bash", command="for i in $(seq 1 20000); do echo line $i; done | head -2")) == "line 1\nline 2"
