"""Does a model learn which secrets there are, without learning one? A real store and a real server, both eras."""

from pathlib import Path

import pytest

from tests.clients import warm
from tests.clients.clients import ERAS
from tests.clients.pipe import pipe
from tests.clients.raw import raw
from tests.clients.served import PATIENCE, command, environment, served
from tests.clients.tokens import hire

VALUE = "canary-5up3r-secret"


def store(workspace: Path, home: Path, name: str, *flags: str) -> None:
    line = command("secret", "set", name, *flags)
    given = f"{VALUE}\n".encode()
    warm.run(line, environment(home), input=given, cwd=workspace, check=True, timeout=PATIENCE)


@pytest.mark.parametrize("era", ERAS)
def test_names_scopes_and_last_use_are_listed_and_no_value(workspace: Path, home: Path, era: str) -> None:
    store(workspace, home, "EVERYWHERE", "--for", "https://example.org")
    store(workspace, home, "HERE", "--here")
    other = workspace.parent / "other"
    other.mkdir()
    store(other, home, "ELSEWHERE", "--here")
    with pipe(workspace, home) as one:
        one.hello(era=era)
        one.call("menu_enter", mode="integrations")
        answer = one.call("list_secrets")
    assert answer["content"][0]["text"].splitlines() == [
        "- EVERYWHERE: for servers of every folder, and on https://example.org; never used.",
        "- HERE: for servers of this folder only; never used.",
    ]
    assert [row["name"] for row in answer["structuredContent"]["secrets"]] == ["EVERYWHERE", "HERE"]
    assert VALUE not in str(answer)


def test_without_secrets_it_says_who_can_store_one(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello()
        one.call("menu_enter", mode="integrations")
        assert "`menugate secret set NAME`" in one.call("list_secrets")["content"][0]["text"]


def test_somebody_elses_session_learns_no_names(workspace: Path, home: Path) -> None:
    store(workspace, home, "MINE")
    (token,) = hire(home, guest="normal")
    with served(workspace, home) as here, raw(here, token=token) as one:
        asked = one.call("menu_call", tool="list_secrets", mode="integrations", arguments={})
        assert not asked["isError"]
        assert "MINE" not in str(asked)
