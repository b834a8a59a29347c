"""Does a model's round end in a commit, at the usual profile, in a client nobody has heard of, with one question asked?

The client does only what the answers told it: it calls what `menu_enter` names, by name where its list has it, and else
through `menu_call`, as the example it was given shows.
"""

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import MODERN
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import served
from tests.clients.typed import typed

NAME = "an-editor-nobody-knows"
BROKEN = "def add(a, b):\n    return a - b\n"
TESTS = """import unittest

from calc import add


class Adds(unittest.TestCase):
    def test_two(self):
        self.assertEqual(add(1, 1), 2)
"""
MESSAGE = "Add what is to be added"
HABITS = [
    pytest.param("stdio", "legacy", False, id="stdio, legacy, lists once"),
    pytest.param("stdio", "legacy", True, id="stdio, legacy, lists again"),
    pytest.param("stdio", MODERN, False, id="stdio, 2026, lists once"),
    pytest.param("stdio", MODERN, True, id="stdio, 2026, lists again"),
    pytest.param("http", "legacy", False, id="http, legacy, lists once"),
    pytest.param("http", "legacy", True, id="http, legacy, lists again"),
    # Here the list never changes, and no connection is a session.
    pytest.param("http", MODERN, False, id="http, 2026, carried with the handle"),
]


def said(answer: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])


def example_in(text: str) -> dict[str, Any] | None:
    """The first whole example of a carried call, as JSON somewhere in the text."""
    decoder = json.JSONDecoder()
    for start in (place for place, sign in enumerate(text) if sign == "{"):
        try:
            value, _ = decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            continue
        if {"tool", "arguments"} <= value.keys():
            return value
    return None


@dataclass
class Model:
    client: Pipe | RawClient
    lists_again: bool
    listed: list[str] = field(init=False)
    named: list[str] = field(default_factory=list[str])
    example: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.listed = self.client.names()

    @property
    def handle(self) -> dict[str, str]:
        """Given where the example gives it."""
        return {"menu": self.example["menu"]} if "menu" in self.example else {}

    def enter(self, mode: str) -> None:
        answer = self.client.call("menu_enter", mode=mode, **self.handle)
        assert not answer["isError"], said(answer)
        self.named = [tool["name"] for tool in answer["structuredContent"]["tools"]]
        assert all(f"- {name}(" in said(answer) for name in self.named)
        if self.lists_again:
            self.listed = self.client.names()
        self.example = example_in(said(answer)) or {}

    def asks(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        assert tool in self.named, f"`menu_enter` did not name {tool}: {self.named}"
        if tool in self.listed:
            return self.client.call(tool, **arguments)
        return self.client.call("menu_call", **self.example | {"tool": tool, "arguments": arguments})

    def does(self, tool: str, /, **arguments: Any) -> str:
        answer = self.asks(tool, **arguments)
        assert not answer["isError"], f"{tool}: {said(answer)}"
        return said(answer)


@dataclass(frozen=True)
class GitWorkspace:
    work: Path
    home: Path

    def git(self, *words: str) -> str:
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        ran = subprocess.run(["git", *words], cwd=self.work, env=env, capture_output=True, check=True, text=True)
        return ran.stdout

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """What the ledger has of one kind."""
        told = typed(self.work, self.home, "audit", "tail", "--json", "-n", "500", "--kind", kind)
        return [json.loads(line) for line in told.out.splitlines()]

    def approve_the_only_one(self) -> None:
        """The person at the terminal."""
        waiting = json.loads(typed(self.work, self.home, "approvals", "--json").out)
        (one,) = [each for each in waiting if each["standing"] == "waits"]
        assert one["tool"] == "git_commit"
        assert typed(self.work, self.home, "approve", one["id"]).code == 0


@pytest.fixture
def repository(tmp_path: Path) -> GitWorkspace:
    one = GitWorkspace(tmp_path / "work", tmp_path / "home")
    one.work.mkdir()
    one.home.mkdir()
    (one.home / ".gitconfig").write_text("[user]\n\tname = Grace Hopper\n\temail = grace@example.org\n")
    (one.work / "calc.py").write_text(BROKEN)
    (one.work / "test_calc.py").write_text(TESTS)
    one.git("init", "-q", "-b", "main")
    one.git("add", ".")
    one.git("commit", "-qm", "First")
    return one


@contextmanager
def connected(repository: GitWorkspace, transport: str, era: str) -> Generator[Pipe | RawClient]:
    """At whatever profile holds where nobody chose one."""
    if transport == "stdio":
        with pipe(repository.work, repository.home) as one:
            one.hello(NAME, era)
            yield one
    else:
        with served(repository.work, repository.home) as here, raw(here, name=NAME, era=era) as one:
            yield one


@pytest.mark.parametrize(("transport", "era", "lists_again"), HABITS)
def test_a_round_ends_in_a_commit_after_one_question(
    repository: GitWorkspace, transport: str, era: str, lists_again: bool
) -> None:
    with connected(repository, transport, era) as client:
        model = Model(client, lists_again)
        model.enter("swe")
        if (transport, era) == ("http", MODERN):
            assert "menu" in model.example, "`menu_enter` shows no whole example of a call with the handle"
        assert "return a - b" in model.does("Read", file_path="calc.py")
        model.does("Edit", file_path="calc.py", old_string="a - b", new_string="a + b")
        assert "OK" in model.does("bash", command="python3 -m unittest")
        model.enter("git")
        model.does("git_add", files=["calc.py"])
        refused = model.asks("git_commit", message=MESSAGE)
        assert refused["isError"]
        assert said(refused).startswith("Error APPROVAL_REQUIRED"), said(refused)
        assert repository.git("log", "--format=%s") == "First\n"
        repository.approve_the_only_one()
        model.does("git_commit", message=MESSAGE)
        ended = client.call("complete", final_answer="It adds.", **model.handle)
        assert not ended["isError"], said(ended)
    assert repository.git("log", "--format=%an %s").splitlines()[0] == f"Grace Hopper {MESSAGE}"
    assert repository.git("show", "HEAD:calc.py") == BROKEN.replace("a - b", "a + b")
    assert repository.git("diff", "--name-only", "HEAD~1", "HEAD") == "calc.py\n"
    assert [row["tool"] for row in repository.rows("question")] == ["git_commit"]
    assert [row["answer"] for row in repository.rows("answer")] == ["yes"]
    assert [row["status"] for row in repository.rows("delivery")] == ["success"]
