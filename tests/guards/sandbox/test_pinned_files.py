"""Does an approved script run to its end as it was approved, although something else writes in the workspace?"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed
from tests.clients.waiting import wait_until

SCRIPT = "#!/bin/bash\ntouch begun\nuntil [ -f go ]; do sleep 0.02; done\necho it said {0} # {1}\n"
FINE, EVIL = SCRIPT.format("fine", "x" * 9000), SCRIPT.format("evil", "x" * 9000)
LINES = ("bash run.sh", "./run.sh", "bash ./run.sh a b", "timeout 60 ./run.sh", "sh sub/../run.sh")


def said(one: Pipe, line: str) -> str:
    return one.call("bash", command=line, timeout=60_000)["content"][0]["text"]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("how", ["in place", "another file"])
def test_the_rest_of_a_script_stays_what_was_approved(workspace: Path, home: Path, line: str, how: str) -> None:
    sandbox = json.loads(typed(workspace, home, "status", "--json").out)["guards"]["sandbox"]
    if sandbox != "bubblewrap":
        pytest.skip("only bubblewrap can put a copy in a script's place")
    script = workspace / "run.sh"
    (workspace / "sub").mkdir()
    script.write_text(FINE)
    script.chmod(0o755)
    with pipe(workspace, home, "--mode", "swe") as one, ThreadPoolExecutor() as beside:
        one.hello()
        id = said(one, line).partition("menugate approve ")[2].split("`")[0]
        assert typed(workspace, home, "approve", id).code == 0
        running = beside.submit(said, one, line)
        wait_until((workspace / "begun").exists)
        if how == "in place":
            script.write_text(EVIL)
        else:
            (workspace / "new").write_text(EVIL)
            (workspace / "new").chmod(0o755)
            (workspace / "new").replace(script)
        (workspace / "go").touch()
        answer = running.result()
    assert "it said fine" in answer and "evil" not in answer, answer
    assert script.read_text() == EVIL, "the workspace keeps what was written there"
