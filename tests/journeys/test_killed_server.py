"""Is a server that was killed over for the others, also while nobody has asked how it ended?"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.clients.form import FORM, question
from tests.clients.person import typed
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import PATIENCE, command, environment


def test_its_question_ends_with_the_run(workspace: Path, home: Path) -> None:
    (workspace / "notes.txt").write_text("1")
    typed(workspace, home, "profile", "trusted")
    # Started by this test itself: until it waits for the process, that stays a zombie.
    started = command("serve", "--workspace", str(workspace), "--mode", "data")

    with subprocess.Popen(
        started,
        env=environment(home),
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        one = Pipe(process)
        one.able = FORM
        one.hello("some-client")
        question(one, {"name": "fs_delete", "arguments": {"path": "notes.txt"}})
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert [row["standing"] for row in questions(workspace, home)] == ["waits"]
        with pipe(workspace, home) as other:
            other.hello("some-client")
            assert not other.call("complete", final_answer="done")["isError"]
        assert [row["void"] for row in questions(workspace, home)] == ["the run it was asked in was completed"]
        assert json.loads(typed(workspace, home, "status", "--json"))["servers"] == []
        process.wait(timeout=PATIENCE)


def questions(workspace: Path, home: Path) -> list[dict[str, Any]]:
    return json.loads(typed(workspace, home, "approvals", "--all", "--json"))
