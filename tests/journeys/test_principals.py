"""Do two people on one server ever get in each other's way? Each with a token of their own, and a ceiling."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.menus import META_TOOLS
from mcp_server.model.posture import Profile
from mcp_server.settings import read_settings
from mcp_server.state.reader import Reader
from tests.clients import warm
from tests.clients.clients import ERAS, MODERN, held, over_sse
from tests.clients.form import FORM, question
from tests.clients.person import choose
from tests.clients.raw import RawClient, raw
from tests.clients.served import Served, command, environment, served
from tests.clients.shipped import READING, SWE
from tests.clients.tokens import hire

CHANGED = "notifications/tools/list_changed"
LISTEN: dict[str, Any] = {"notifications": {"toolsListChanged": True}}

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Both:
    work: Path
    home: Path
    here: Served
    tokens: dict[str, str]

    def raw(self, who: str, **about: Any) -> Any:
        return raw(self.here, token=self.tokens[who], name="codex-mcp-client", **about)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Generator[Both]:
    folder = tmp_path_factory.mktemp("people")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    (work / "notes.md").write_text("first\n")
    alice, bob = hire(home, alice="normal", bob="restricted")
    with served(work, home) as here:
        yield Both(work, home, here, {"alice": alice, "bob": bob})


@pytest.mark.parametrize("token", ["", "wrong", "x" * 200])
def test_nobody_comes_in_without_a_token(both: Both, token: str) -> None:
    one = RawClient(both.here, token=token)
    for stream in (one.send("tools/list")[1], one.listening()):
        assert stream.status == 401
    one.close()


@pytest.mark.parametrize("era", ERAS)
def test_each_has_the_ceiling_the_operator_set(both: Both, era: str) -> None:
    for who, tools in (("alice", SWE), ("bob", READING)):
        with both.raw(who, era=era, path="/swe") as one:
            assert one.names() == [*META_TOOLS, *tools]
            wrote = one.call("Write", file_path=f"{who}-{era}.txt", content="x")
            assert wrote["isError"] is (who == "bob")
            entered = one.call("menu_enter", mode="swe")["structuredContent"]
            assert [tool["name"] for tool in entered["tools"]] == tools
    assert (both.work / f"alice-{era}.txt").exists()
    assert not (both.work / f"bob-{era}.txt").exists()


async def test_a_choice_above_the_ceiling_counts_as_the_ceiling_and_below_it_for_its_own(both: Both) -> None:
    with both.raw("alice", era=MODERN, path="/swe") as alice, both.raw("bob", era=MODERN, path="/swe") as bob:
        await choose(both.work, both.home, "bob", profile=Profile.UNRESTRICTED)
        assert bob.names() == [*META_TOOLS, *READING]
        hearing = {one: one.send("subscriptions/listen", LISTEN)[1] for one in (alice, bob)}
        for stream in hearing.values():
            stream.message()
        await choose(both.work, both.home, "alice", profile=Profile.RESTRICTED)
        try:
            assert hearing[alice].message()["method"] == CHANGED
            assert alice.names() == [*META_TOOLS, *READING]
            assert hearing[bob].quiet()
        finally:
            await choose(both.work, both.home, "alice", profile=Profile.NORMAL)
        assert hearing[alice].message()["method"] == CHANGED
        assert alice.names() == [*META_TOOLS, *SWE]
        assert hearing[bob].quiet()


def test_a_session_answers_to_its_own_token_alone(both: Both) -> None:
    with both.raw("alice") as alice, both.raw("bob") as bob:
        alice.call("menu_enter", mode="swe")
        own, bob.session = bob.session, alice.session
        assert bob.send("tools/list")[1].status == 404
        assert bob.listening().status == 404
        assert bob.bye() == 404
        bob.session = own
        # It is still where it was, and so is the one who tried.
        assert alice.names()[-len(SWE) :] == SWE
        assert bob.call("menu_list")["structuredContent"]["mode"] is None


async def test_a_stream_of_the_older_transport_takes_posts_of_its_own_token_alone(both: Both) -> None:
    alice = Served(both.here.url, both.tokens["alice"], both.work, both.here.process)
    ends: list[str] = []
    async with held(over_sse(alice, ends.append), "legacy", "codex-mcp-client") as one:
        await one.call("menu_enter", mode="swe")
        (session,) = ends
        path = f"/../messages/?session_id={session}"
        intruding = RawClient(both.here, token=both.tokens["bob"], path=path)
        _, stream = intruding.send("tools/call", {"name": "menu_exit", "arguments": {}})
        assert stream.status in (403, 404)
        intruding.close()
        assert (await one.names())[-len(SWE) :] == SWE


def test_a_question_put_to_one_is_not_answered_by_the_other(both: Both) -> None:
    ask: dict[str, Any] = {"name": "message_user", "arguments": {"message": "Which?", "block_on_user": True}}
    with both.raw("alice", era=MODERN, able=FORM) as alice, both.raw("bob", era=MODERN, able=FORM) as bob:
        asked = question(alice, ask)
        asked.read()
        answers = {"message": {"action": "accept", "content": {"answer": "this"}}}
        given = ask | {"inputResponses": answers, "requestState": asked.state}
        assert bob.request("tools/call", given)["error"]["code"] == -32602
        assert alice.request("tools/call", given)["result"]["structuredContent"]["answer"] == "this"


def test_moves_and_handles_stay_with_whom_they_belong_to(both: Both) -> None:
    with both.raw("alice") as alice, both.raw("alice") as again, both.raw("bob") as bob:
        hearing = {one: one.listening() for one in (again, bob)}
        menu = alice.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        assert all(stream.quiet(0.05) for stream in hearing.values())
        assert again.call("menu_list")["structuredContent"]["mode"] is None
        assert again.call("menu_list", menu=menu)["structuredContent"]["mode"] == "swe"
        assert "UNKNOWN_HANDLE" in bob.call("menu_list", menu=menu)["content"][0]["text"]
        mine = bob.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        assert mine != menu
        # What one has read the other has not, in the same mode and the same file.
        again.call("menu_read", tool="Read", arguments={"file_path": "notes.md"}, menu=menu)
        with both.raw("alice") as third:
            edit = {"file_path": "notes.md", "old_string": "first", "new_string": "second"}
            assert "NOT_READ" in third.call("menu_call", tool="Edit", arguments=edit, mode="swe")["content"][0]["text"]


def test_the_record_and_the_messages_say_whose_they_are(both: Both) -> None:
    left: dict[str, str] = {}
    for who in ("alice", "bob"):
        with both.raw(who) as one:
            left[who] = one.call("message_user", message=f"from {who}")["structuredContent"]["id"]
    settings = read_settings({"workspace": str(both.work)}, environment(both.home))
    with Reader.open(settings.url, secrets=settings.secrets) as state:
        messages = {one.id: one for one in state.load_messages()}
        callers = {
            row.fields["session"]: row.fields["principal"]
            for row in state.read_rows()
            if row.kind == "intent" and row.fields["tool"] == "message_user"
        }
    for who, id in left.items():
        assert (messages[id].principal, messages[id].text) == (who, f"from {who}")
        assert callers[messages[id].session] == who
    page = warm.run(
        command("messages", "--keep", "--all", "--workspace", str(both.work)),
        environment(both.home),
        text=True,
        check=True,
    ).stdout
    assert "  bob  " in page
    assert "  alice  " in page
