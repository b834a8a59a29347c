"""Can a model find its way in a project, and does what a run learned reach the next one? Real servers, both eras."""

import hashlib
import json
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients import warm
from tests.clients.clients import ERAS, MODERN
from tests.clients.line import Speaker
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import command, environment, served

TOOLS = ["index_search", "index_symbols", "index_read", "memory_search"]
DELIVERED = {
    "final_answer": "Sessions moved to SQLite.\n\n- **Decision:** one file, because it is easy to move.\n"
    "Fact: tests run with `make test`.\nDecision: no ORM; key sk-abcdefgh1234567890abcdef is not one.",
    "status": "success",
}


def text(answer: dict[str, Any]) -> str:
    return answer["content"][0]["text"]


@contextmanager
def inside(workspace: Path, home: Path, era: str = "legacy") -> Generator[Pipe]:
    """A client that stands in the mode `project`."""
    with pipe(workspace, home) as one:
        one.hello(era=era)
        assert not one.call("menu_enter", mode="project")["isError"]
        yield one


@pytest.mark.parametrize("era", ERAS)
def test_a_way_through_the_project(workspace: Path, home: Path, era: str) -> None:
    with inside(workspace, home, era) as one:
        assert one.names()[6:] == TOOLS
        found = text(one.call("index_search", query="def main"))
        assert found.startswith("src/main.py:1: def main():\n[")
        assert "Index of 2 files, as they are now" in found
        # What changes on the disk is found by the next call, and what is gone is not.
        (workspace / "src" / "store.py").write_text("class Store:\n    def open(self):\n        return 1\n\nx = 2\n")
        (workspace / "notes.md").unlink()
        assert text(one.call("index_symbols", query="open")).startswith("src/store.py:2-3: method Store.open: def open")
        assert "No file contains all of" in text(one.call("index_search", query="first notes"))
        outline = text(one.call("index_symbols", path="src")).splitlines()
        assert [line.split(": ")[1] for line in outline[:-1]] == [
            "function main",
            "class Store",
            "method Store.open",
            "variable x",
        ]
        shown = text(one.call("index_read", path="src/store.py", symbol="Store.open"))
        assert shown == "2\t    def open(self):\n3\t        return 1\n[`src/store.py`, lines 2-3 of 5.]"
        assert text(one.call("index_read", path="src/store.py", line=5)).startswith("5\tx = 2\n")


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "says"),
    [
        ("index_search", {"query": "((("}, "INVALID_ARGUMENTS", "contains no word"),
        ("index_search", {"query": "x", "path": "../.."}, "PATH_REFUSED", "outside the workspace"),
        ("index_search", {"query": "x", "path": "gone"}, "NOT_FOUND", "nothing at `gone`"),
        ("index_search", {"query": "x", "path": ".menugate"}, "PATH_REFUSED", "menugate's own state"),
        ("index_search", {"query": "x", "limit": 1000}, "INVALID_ARGUMENTS", "100"),
        ("index_symbols", {}, "INVALID_ARGUMENTS", "Pass a `query`"),
        ("index_symbols", {"kind": "spoon"}, "INVALID_ARGUMENTS", "spoon"),
        ("index_read", {"path": "src/main.py", "symbol": "mian"}, "NO_MATCH", "`main`"),
        ("index_read", {"path": "twice.py", "symbol": "f"}, "AMBIGUOUS_MATCH", "2 times"),
        ("index_read", {"path": "src/main.py", "line": 99}, "INVALID_ARGUMENTS", "from 1 to 2"),
        ("index_read", {"path": "binary"}, "NOT_TEXT", "binary data"),
        ("index_read", {"path": ".env"}, "APPROVAL_REQUIRED", "passwords or keys"),
        ("index_read", {"path": "harmless"}, "PATH_REFUSED", ".env"),
        ("index_read", {"path": "gone.py"}, "NOT_FOUND", "gone.py"),
        ("memory_search", {"tier": "rumour"}, "INVALID_ARGUMENTS", "rumour"),
    ],
)
def test_what_cannot_be_answered_says_what_to_do(
    tool: str, arguments: dict[str, Any], code: str, says: str, here: Pipe
) -> None:
    answer = here.call(tool, **arguments)
    assert answer["isError"]
    assert text(answer).startswith(f"Error {code}")
    assert says in text(answer)
    assert "Traceback" not in text(answer)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipe]:
    folder = tmp_path_factory.mktemp("project")
    for name in ("work/src", "home"):
        (folder / name).mkdir(parents=True)
    work = folder / "work"
    (work / "src" / "main.py").write_text("def main():\n    return 42\n")
    (work / "twice.py").write_text("def f(): pass\ndef f(): pass\n")
    (work / "binary").write_bytes(b"\0\1")
    (work / ".env").write_text("TOKEN=canary-in-a-file\n")
    (work / "harmless").symlink_to(".env")
    for number in range(30):
        (work / f"many{number:02}.txt").write_text("same words here\n" * 2)
    with inside(work, folder / "home") as one:
        yield one


def test_a_long_answer_says_which_call_goes_on(here: Pipe) -> None:
    seen: list[str] = []
    arguments: dict[str, Any] = {"query": "same words", "limit": 25}
    while arguments:
        answer = text(here.call("index_search", **arguments))
        seen += [line for line in answer.splitlines() if line.startswith("many")]
        _, _, call = answer.partition("Continue with index_search ")
        arguments = json.loads(call.partition("}")[0] + "}") if call else {}
    assert seen == [f"many{number:02}.txt:{line}: same words here" for number in range(30) for line in (1, 2)]
    assert "There are no entries from 1,000 on" in text(here.call("index_search", query="same", offset=999))


def test_no_secret_of_a_file_is_in_the_index(here: Pipe) -> None:
    assert "No file contains" in text(here.call("index_search", query='"canary-in-a-file"'))


def test_only_success_is_remembered_and_only_what_it_says(workspace: Path, home: Path) -> None:
    with inside(workspace, home) as one:
        assert "Nothing is remembered" in text(one.call("memory_search"))
        one.call("complete", final_answer="Decision: give up.", status="failure")
        one.call("complete", final_answer="Decision: half of it.", status="partial")
        assert "Nothing is remembered" in text(one.call("memory_search"))
        said = text(one.call("complete", **DELIVERED))
        assert "Remembered for later runs: 1 fact, 2 decisions, 1 outcome." in said
    # Another process, another run.
    with inside(workspace, home) as one:
        found = text(one.call("memory_search", query="sqlite"))
        assert "Sessions moved to SQLite." in found
        assert "a run that succeeded" in found
        assert "untrusted text from the project's memory" in found
        assert "one file, because it is easy to move." in text(one.call("memory_search", tier="decision"))
        everything = text(one.call("memory_search"))
        assert "sk-abcdefgh" not in everything
        assert "[redacted]" in everything
        one.call("complete", **DELIVERED)
        assert text(one.call("memory_search")).count("make test") == 1
    file = sqlite3.connect(workspace / ".menugate" / "state.db")
    assert not any("sk-abcdefgh" in str(row) for table in ("records", "ledger") for row in rows(file, table))
    file.close()


def test_what_a_run_changed_is_remembered_with_how_it_ended(workspace: Path, home: Path) -> None:
    with inside(workspace, home) as one:
        one.call("menu_call", mode="data", tool="fs_write_file", arguments={"path": "new/plan.md", "content": "x"})
        one.call("complete", final_answer="Wrote the plan.", status="success")
        one.call("menu_enter", mode="project")
        assert "Wrote the plan. Changed `new/plan.md`." in text(one.call("memory_search", tier="outcome"))


def rows(file: sqlite3.Connection, table: str) -> list[Any]:
    return file.execute(f"SELECT * FROM {table}").fetchall()


def typed(workspace: Path, home: Path, *words: str) -> str:
    return warm.run(command(*words, "--workspace", str(workspace)), environment(home), check=True, text=True).stdout


@pytest.mark.heavy
def test_the_person_sees_and_takes_away_what_is_remembered(workspace: Path, home: Path) -> None:
    with inside(workspace, home) as one:
        one.call("complete", **DELIVERED)
        kept = json.loads(typed(workspace, home, "memory", "list", "--json"))
        assert [entry["tier"] for entry in kept] == ["fact", "decision", "decision", "outcome"]
        assert all(entry["by"] == "run" and entry["run"] for entry in kept)
        assert kept[0]["text"] in typed(workspace, home, "memory", "show", kept[0]["id"])
        typed(workspace, home, "memory", "forget", kept[0]["id"], kept[1]["id"])
        typed(workspace, home, "memory", "add", "--tier", "decision", "Ship on Fridays")
        # The server that runs beside it knows at once.
        assert "Nothing is remembered" in text(one.call("memory_search", tier="fact"))
        found = text(one.call("memory_search", query="fridays"))
        assert "from the user: Ship on Fridays" in found
        assert "one file" not in text(one.call("memory_search"))
    told = [json.loads(line) for line in typed(workspace, home, "audit", "tail", "-n", "99", "--json").splitlines()]
    events = [row["event"] for row in told if row.get("record") == "memory"]
    assert events == ["learned"] * 4 + ["forgotten"] * 2 + ["learned"]
    assert "The record is intact" in typed(workspace, home, "audit", "verify")
    assert not any("Fridays" in json.dumps(row) for row in told)


@pytest.mark.parametrize("era", ["legacy", MODERN])
def test_over_http_each_principal_has_a_memory_of_its_own(workspace: Path, home: Path, era: str) -> None:
    config = home / "menugate.yaml"
    tokens = "".join(
        f"  - principal: {name}\n    sha256: {hashlib.sha256(name.encode()).hexdigest()}\n" for name in ("ada", "bob")
    )
    config.write_text(f"tokens:\n{tokens}")
    with served(workspace, home, "--config", str(config)) as house:
        ada, bob = (Speaker(house, era, token=name).hello() for name in ("ada", "bob"))
        ada.call("complete", final_answer="Decision: ada's own.", status="success")

        def remembered(one: Speaker) -> str:
            return text(one.call("menu_read", tool="memory_search", mode="project"))

        assert "ada's own" in remembered(ada)
        assert "Nothing is remembered" in remembered(bob)
        found = text(bob.call("menu_read", tool="index_search", mode="project", arguments={"query": "main"}))
        assert found.startswith("src/main.py:1: def main():")


def test_the_cache_may_go_at_any_time_and_two_servers_share_it(workspace: Path, home: Path) -> None:
    with inside(workspace, home) as one, inside(workspace, home) as other:
        for turn in range(4):
            (workspace / f"new{turn}.py").write_text(f"def fresh{turn}(): pass\n")
            assert f"new{turn}.py:1" in text((one, other)[turn % 2].call("index_symbols", query=f"fresh{turn}"))
            if turn == 1:
                for path in (workspace / ".menugate").glob("index.db*"):
                    path.unlink()
        assert "new0.py:1" in text(other.call("index_search", query="fresh0"))


@pytest.mark.heavy
def test_a_first_look_at_a_large_project_tells_how_far_it_is_and_can_be_taken_back(workspace: Path, home: Path) -> None:
    for number in range(3000):
        folder = workspace / f"part{number % 50}"
        folder.mkdir(exist_ok=True)
        (folder / f"file{number}.py").write_text(f"def function{number}():\n    return {number}\n" * 3)
    with inside(workspace, home) as one:
        meta = {"progressToken": "far"}
        call = {"name": "index_search", "arguments": {"query": "function2999"}}
        request = one.send("tools/call", call | {"_meta": meta})
        told = one.message()
        assert told["params"]["progressToken"] == "far"
        assert "files checked" in told["params"]["message"]
        one.raw(
            json.dumps(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}}
            ).encode()
            + b"\n"
        )
        # The server answers meanwhile and afterwards; the next look goes on where this one stopped.
        assert one.request("ping")["result"] == {}
        found = text(one.call("index_search", query="function2999"))
        assert "file2999.py:1: def function2999():" in found
        assert "Index of 3,002 files, as they are now" in found


def test_a_server_answers_while_it_reads(workspace: Path, home: Path) -> None:
    (workspace / "wide.py").write_text("x = (" + "[1, 2, 'a'], " * 70_000 + ")\n")
    (workspace / "deep.py").write_text("f(" * 300_000)
    with inside(workspace, home) as one:
        number = one.send("tools/call", {"name": "index_search", "arguments": {"query": "x"}})
        ping = one.send("ping")
        first = one.message()
        assert first["id"] in (ping, number)
        one.until(ping if first["id"] == number else number)
