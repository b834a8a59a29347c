"""Does a secret that was planted everywhere come out anywhere but where it belongs?

Planted at random in arguments, the environment, files and results; looked for in every file that menugate writes, in
everything its commands say, in its logs, its summaries and what it tells a collector.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import pipe as pipes
from tests.clients import served, warm
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import PATIENCE
from tests.wire.test_telemetry import told

LETTERS = "abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789"
SAYING = (
    "audit tail -n 1000",
    "audit tail -n 1000 --json",
    "audit export",
    "audit export --format ocsf",
    "summary",
    "summary --json",
    "summary --list",
    "status",
    "status --json",
    "rules list",
    "trust --show",
)

ON_GLANCE_LINES = {"a pattern", "the path of a file that is not there"}
"""What a call is about is shown to you, if it is no known secret and does not look like one."""
GLANCED = ("audit tail", "audit show and why", "status", "the state")


class Planter:
    """Makes secrets, each of its own, and remembers where it put them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.planted: dict[str, str] = {}

    def secret(self, where: str) -> str:
        made = "".join(self._random.choices(LETTERS, k=32))
        self.planted[made] = where
        return made

    def found_in(self, text: bytes) -> list[str]:
        return [where for made, where in self.planted.items() if made.encode() in text]


def lived(line: Pipe, plant: Planter, workspace: Path) -> None:
    """Every way in which a caller's text could get somewhere, the refused and the failing ones among them."""
    (workspace / "keys.env").write_text(f"API_KEY={plant.secret('a file')}\n")
    line.hello("mcp")
    line.call("menu_enter", mode="swe")
    line.call("Read", file_path="keys.env")
    line.call("think", content=plant.secret("a thought"))
    line.call("Write", file_path="new.txt", content=plant.secret("content"))
    line.call("Read", file_path="new.txt")
    line.call("Edit", file_path="new.txt", old_string=plant.secret("old_string"), new_string=plant.secret("new_string"))
    line.call("grep", pattern=plant.secret("a pattern"))
    line.call("Read", file_path="notes.md", offset=plant.secret("an argument of the wrong type"))
    line.call("Read", **{"file_path": "notes.md", plant.secret("the name of an argument"): 1})
    line.call("menu_enter", mode="data")
    line.call("fs_delete", path="notes.md", force=plant.secret("an argument nobody knows"))
    line.call("menu_call", tool="Write", arguments={"file_path": "b.txt", "content": plant.secret("carried")})
    line.call("menu_list", menu=plant.secret("a handle"))
    line.call("fs_read_file", path=f"nothing-{plant.secret('the path of a file that is not there')}.txt")
    line.request("prompts/get", {"name": "words", "arguments": {"key": plant.secret("a key of a prompt")}})
    line.request("resources/read", {"uri": f"menugate://run/{plant.secret('a resource')}/summary"})
    line.request(plant.secret("a method"))
    line.call(f"token={plant.secret('the name of a tool, as a token')}")
    line.call("complete", final_answer=f"password={plant.secret('an answer, as a password')}")


def said(line: str, workspace: Path, home: Path) -> bytes:
    done = warm.run(served.command(*line.split()), served.environment(home), cwd=workspace, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def written(folder: Path, given: set[str]) -> Iterator[tuple[str, bytes]]:
    """Every file below, except those that a tool was asked to write or that hold a result on purpose."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in given and "spill" not in path.parts:
            name = "the state" if path.name.startswith("state.db") else "the file"
            yield f"{name} {path}", path.read_bytes()


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [1, 2])
def test_no_planted_secret_comes_out(seed: int, workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = Planter(seed)
    in_environment = plant.secret("the environment")
    with told(monkeypatch, DEPLOY_TOKEN=in_environment) as collector, pipe(workspace, home) as line:
        (workspace / "told.txt").write_text(in_environment)
        lived(line, plant, workspace)
        summary = line.request("resources/read", {"uri": "menugate://run/latest/summary"})
        from_file = line.call("fs_read_file", path="told.txt")
        line.bye()
        assert line.process.stderr is not None
        log = line.process.stderr.read()
    assert in_environment not in json.dumps(from_file), "what the environment holds is shown to nobody"
    places = {"the log": log, "the summary": json.dumps(summary).encode()}
    places |= {f"telemetry {number}": body for number, (_, body) in enumerate(collector.bodies)}
    places |= {command: said(command, workspace, home) for command in SAYING}
    for number in range(1, 60):
        places[f"audit show and why {number}"] = shown(number, workspace, home) if number % 12 == 3 else b""
    places |= dict(written(workspace, {"keys.env", "new.txt", "told.txt", "b.txt"}))
    places |= dict(written(home, set()))
    assert len(collector.bodies) >= 2 and len(plant.planted) == 18
    leaks = {(where, place) for place, text in places.items() for where in plant.found_in(text)}
    shown_to_you = {(where, place) for where in ON_GLANCE_LINES for place in places if place.startswith(GLANCED)}
    glanced = leaks & shown_to_you
    assert leaks == glanced, "\n".join(sorted(f"{where} in {place}" for where, place in leaks - glanced))
    assert {where for where, _ in glanced} == ON_GLANCE_LINES


def test_with_glance_off_not_even_the_subject_is_kept(workspace: Path, home: Path) -> None:
    plant, config = Planter(4), workspace.parent / "menugate.yaml"
    config.write_text("glance: off\n")
    with pipe(workspace, home, "--config", str(config)) as line:
        lived(line, plant, workspace)
        line.bye()
    places = {command: said(command, workspace, home) for command in SAYING}
    places |= dict(written(workspace, {"keys.env", "new.txt", "b.txt"}))
    assert [f"{where} in {place}" for place, text in places.items() for where in plant.found_in(text)] == []


def shown(number: int, workspace: Path, home: Path) -> bytes:
    found = b""
    for deed in ("show", "why"):
        done = warm.run(
            served.command("audit", deed, str(number)), served.environment(home), cwd=workspace, timeout=PATIENCE
        )
        found += done.stdout + done.stderr
    return found


def test_the_search_finds_what_is_there() -> None:
    plant = Planter(3)
    made = plant.secret("here")
    assert plant.found_in(f"x{made}x".encode()) == ["here"]
    assert pipes.environment is served.environment
