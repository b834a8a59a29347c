"""Does a call that destroys wait for the person, and run exactly once after a yes? In both eras, by every door."""

import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult

from tests.clients.clients import ERAS, MODERN, Held, held, over_http, over_stdio, text
from tests.clients.form import FORM, READING_TAKES, FormQuestion, code_in, question
from tests.clients.person import choose
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import Served, served
from tests.clients.tuned import tuned
from tests.clients.typed import Typed, typed

pytestmark = pytest.mark.anyio
WAYS = ["stdio legacy", f"stdio {MODERN}", "http legacy", f"http {MODERN}"]
DATA = ("--mode", "data", "--profile", "trusted")


@dataclass
class Ground:
    work: Path
    home: Path

    def file(self, name: str) -> Path:
        path = self.work / name
        path.write_text("keep me\n")
        return path

    def menugate(self, *words: str) -> Typed:
        return typed(self.work, self.home, *words)

    def waiting(self, *words: str) -> list[dict[str, Any]]:
        return json.loads(self.menugate("approvals", "--json", *words).out)

    def kinds(self, *kinds: str) -> list[dict[str, Any]]:
        """The ledger's rows of these kinds, in their order."""
        flags = [word for kind in kinds for word in ("--kind", kind)]
        shown = self.menugate("audit", "tail", "--json", "-n", "500", *flags).out
        return [json.loads(line) for line in shown.splitlines()]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    folder = tmp_path_factory.mktemp("approvals")
    for name in ("work", "home"):
        (folder / name).mkdir()
    return Ground(folder / "work", folder / "home")


@pytest.fixture(scope="module")
def here(ground: Ground) -> Generator[Served]:
    with served(ground.work, ground.home, *DATA) as one:
        yield one


@dataclass
class Human:
    """Reads what it is asked, answers in this order, and keeps what it read. `cancel` comes from a program, at once."""

    answers: list[Any]
    read: list[ElicitRequestParams] = field(default_factory=list[ElicitRequestParams])

    async def __call__(self, _ctx: Any, params: ElicitRequestParams) -> ElicitResult:
        self.read.append(params)
        answer = self.answers.pop(0)
        if answer != "cancel":
            await anyio.sleep(READING_TAKES)
        return ElicitResult(action=answer, content={"code": code_in(params.message)} if answer == "accept" else None)


@asynccontextmanager
async def through(way: str, ground: Ground, here: Served, **callbacks: Any) -> AsyncGenerator[Held]:
    transport, era = way.split(" ")
    target = over_stdio(ground.work, ground.home, *DATA) if transport == "stdio" else over_http(here)
    async with held(target, era, **callbacks) as one:
        yield one


def refused(result: CallToolResult, code: str) -> bool:
    return bool(result.is_error) and text(result).startswith(f"Error {code}")


@pytest.mark.parametrize("carried", [False, True], ids=["by name", "carried"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_call_that_destroys_asks_and_runs_once_after_a_yes(
    ground: Ground, here: Served, way: str, carried: bool
) -> None:
    # A name of its own: the last question of each of these stays open for its file.
    path = ground.file(f"asked {way}, {carried}.txt")
    human = Human(["decline", "accept", "cancel"])

    async def delete(one: Held) -> CallToolResult:
        if carried:
            return await one.call("menu_call", tool="fs_delete", arguments={"path": path.name})
        return await one.call("fs_delete", path=path.name)

    async with through(way, ground, here, elicitation_callback=human) as one:
        assert refused(await delete(one), "APPROVAL_DENIED")
        assert path.exists()
        done = await delete(one)
        assert not done.is_error, text(done)
        assert not path.exists()
        ground.file(path.name)
        assert refused(await delete(one), "APPROVAL_REQUIRED")
        assert path.exists()
    assert len(human.read) == 3
    message = human.read[0].message
    assert "menugate asks" in message
    assert "`fs_delete`" in message
    assert "destroy-local" in message
    assert f'"path": "{path.name}"' in message
    assert ".." not in message
    rows = ground.kinds("question", "answer", "redeemed")[-7:]
    kinds = ["question", "answer", "question", "answer", "redeemed", "question", "answer"]
    assert [row["kind"] for row in rows] == kinds
    assert [row["answer"] for row in rows if row["kind"] == "answer"] == ["no", "yes", "open"]
    assert len({row["question"] for row in rows[2:5]}) == 1


@pytest.mark.parametrize("way", WAYS)
async def test_a_client_that_cannot_ask_is_told_what_the_person_types(ground: Ground, here: Served, way: str) -> None:
    name = f"typed{WAYS.index(way)}.txt"
    path = ground.file(name)
    async with through(way, ground, here) as one:
        first = await one.call("fs_delete", path=name)
        assert refused(first, "APPROVAL_REQUIRED")
        waiting = [entry for entry in ground.waiting() if name in entry["message"]]
        assert len(waiting) == 1
        id = waiting[0]["id"]
        assert f"`menugate approve {id}`" in text(first)
        # Asked again before it is answered, it is the same question.
        assert id in text(await one.call("fs_delete", path=name))
        assert ground.menugate("approve", id).code == 0
        other = ground.file("other.txt")
        assert refused(await one.call("fs_delete", path="other.txt"), "APPROVAL_REQUIRED")
        assert other.exists()
        assert not (await one.call("fs_delete", path=name)).is_error
        assert not path.exists()
        ground.file(name)
        again = await one.call("fs_delete", path=name)
        assert refused(again, "APPROVAL_REQUIRED")
        assert id not in text(again)
        assert path.exists()
        asked_anew = next(entry for entry in ground.waiting() if name in entry["message"])["id"]
        assert ground.menugate("deny", asked_anew, "--reason", "it is mine").code == 0
        denied = await one.call("fs_delete", path=name)
        assert refused(denied, "APPROVAL_DENIED")
        assert "it is mine" in text(denied)
        assert path.exists()
    assert ground.menugate("approve", id).code == 1


@pytest.mark.parametrize("way", ["silent", "failing"])
async def test_who_does_not_answer_has_not_said_yes(workspace: Path, home: Path, way: str) -> None:
    async def nobody(_ctx: Any, _params: ElicitRequestParams) -> ElicitResult:
        if way == "silent":
            await anyio.sleep_forever()
        raise ValueError("the form broke")

    one = over_stdio(workspace, home)
    flags = [*tuned(answer=0.2)[1:], "--workspace", str(workspace), *DATA]
    target = one.model_copy(update={"args": flags})
    async with held(target, "legacy", elicitation_callback=nobody) as client:
        assert refused(await client.call("fs_delete", path="notes.md"), "APPROVAL_REQUIRED")
        assert (workspace / "notes.md").exists()
        assert not (await client.call("fs_read_file", path="notes.md")).is_error


def test_a_call_from_the_command_line_is_redeemed_by_the_next(workspace: Path, home: Path) -> None:
    ground = Ground(workspace, home)
    line = ("call", "fs_delete", '{"path": "notes.md"}', "--profile", "trusted")
    assert ground.menugate(*line).code == 1
    (waiting,) = ground.waiting()
    assert "once" in ground.menugate("approve", waiting["id"]).out
    assert ground.menugate(*line).code == 0
    assert not (workspace / "notes.md").exists()
    assert ground.waiting() == []
    assert [entry["standing"] for entry in ground.waiting("--all")] == ["used"]


# What a modern question carries back and forth.


def deleting(name: str) -> dict[str, Any]:
    return {"name": "fs_delete", "arguments": {"path": name}}


def read(one: Any, call: dict[str, Any]) -> FormQuestion:
    """The question as a person has it who took the time to read it."""
    asked = question(one, call)
    asked.read()
    return asked


def answered(asked: FormQuestion, call: dict[str, Any], action: str = "accept") -> dict[str, Any]:
    """The call as it comes back with an answer; another call than the one asked about, where somebody tries that."""
    reply = {"action": action, "content": {"code": asked.code}}
    return call | {"requestState": asked.state, "inputResponses": {asked.key: reply}}


def said(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


def test_a_sealed_yes_runs_one_call_once(ground: Ground, here: Served) -> None:
    path, other = ground.file("sealed.txt"), ground.file("unsealed.txt")
    with raw(here, era=MODERN, able=FORM) as one:
        call = deleting("sealed.txt")
        asked = read(one, call)
        # Other arguments do not open the seal, and an answer without it is to no question.
        assert one.request("tools/call", answered(asked, deleting("unsealed.txt")))["error"]["code"] == -32602
        bare = {name: value for name, value in answered(asked, call).items() if name != "requestState"}
        assert one.request("tools/call", bare)["result"]["resultType"] == "input_required"
        assert path.exists()
        yes = answered(asked, call)
        assert "Deleted" in said(one.request("tools/call", yes))
        assert not path.exists()
        # The very file is back: another one of this name would be asked about.
        (trashed,) = (ground.work / ".menugate" / "trash").glob("*/sealed.txt")
        trashed.rename(path)
        twice = one.request("tools/call", yes)
        assert "already used" in said(twice)
        assert twice["result"]["isError"]
        assert path.exists()
        assert other.exists()


def test_an_answer_after_another_connections_complete_is_told_so(workspace: Path, home: Path) -> None:
    (workspace / "late.txt").write_text("1")
    with served(workspace, home, *DATA) as here, raw(here, era=MODERN, able=FORM) as one, raw(here) as other:
        asked = read(one, deleting("late.txt"))
        assert not other.call("complete", final_answer="done")["isError"]
        late = one.request("tools/call", answered(asked, deleting("late.txt")))
        assert "does not count: the run it was asked in was completed. Nothing ran." in said(late)
        assert (workspace / "late.txt").exists()


def test_a_no_is_not_turned_into_a_yes(ground: Ground, here: Served) -> None:
    path = ground.file("no.txt")
    with raw(here, era=MODERN, able=FORM) as one:
        call = deleting("no.txt")
        asked = read(one, call)
        assert "APPROVAL_DENIED" in said(one.request("tools/call", answered(asked, call, "decline")))
        assert "APPROVAL_DENIED" in said(one.request("tools/call", answered(asked, call)))
        assert path.exists()


@pytest.mark.parametrize("axes", [{"run_control": "manual"}, {"profile": "unrestricted"}])
async def test_a_yes_dies_with_the_posture_it_was_given_under(
    workspace: Path, home: Path, axes: dict[str, Any]
) -> None:
    await choose(workspace, home, profile="trusted")
    with pipe(workspace, home, "--mode", "data") as one:
        one.able = FORM
        one.hello(era=MODERN)
        call = deleting("notes.md")
        asked = read(one, call)
        await choose(workspace, home, **axes)
        late = one.request("tools/call", answered(asked, call))
        assert "APPROVAL_REQUIRED" in said(late)
        assert (workspace / "notes.md").exists()


async def test_a_yes_given_while_the_posture_changes_runs_nothing(workspace: Path, home: Path) -> None:
    """The person narrows at a terminal while the question stands on the client's screen."""
    await choose(workspace, home, profile="trusted")

    async def slow(_ctx: Any, params: ElicitRequestParams) -> ElicitResult:
        await choose(workspace, home, profile="restricted")
        await anyio.sleep(READING_TAKES)
        return ElicitResult(action="accept", content={"code": code_in(params.message)})

    target = over_stdio(workspace, home, "--mode", "data")
    async with held(target, "legacy", elicitation_callback=slow) as one:
        late = await one.call("fs_delete", path="notes.md")
        assert refused(late, "PROFILE_TOO_LOW") or refused(late, "APPROVAL_REQUIRED")
        assert (workspace / "notes.md").exists()


@pytest.mark.parametrize("by_client", [True, False])
def test_a_restart_between_question_and_answer_keeps_it(workspace: Path, home: Path, by_client: bool) -> None:
    ground = Ground(workspace, home)
    call: dict[str, Any] = {"name": "menu_call", "arguments": {"tool": "fs_delete", "arguments": {"path": "notes.md"}}}

    def opened(one: Pipe) -> None:
        one.able = FORM if by_client else {}
        one.hello(era=MODERN)

    with pipe(workspace, home, "--profile", "trusted") as one:
        opened(one)
        call["arguments"]["menu"] = one.call("menu_enter", mode="data")["structuredContent"]["menu"]
        if by_client:
            call = answered(read(one, call), call)
        else:
            assert "APPROVAL_REQUIRED" in said(one.request("tools/call", call))
    if not by_client:
        (waiting,) = ground.waiting()
        assert ground.menugate("approve", waiting["id"]).code == 0
    with pipe(workspace, home, "--profile", "trusted") as again:
        opened(again)
        assert "Deleted" in said(again.request("tools/call", call))
        assert not (workspace / "notes.md").exists()


def test_a_question_lives_an_hour(workspace: Path, home: Path, tmp_path: Path) -> None:
    ground = Ground(workspace, home)
    hours = tmp_path / "hours"
    hours.write_text("0")
    with pipe(workspace, home, *DATA, run=tuned(hours=hours)) as one:
        one.hello()
        assert "APPROVAL_REQUIRED" in one.call("fs_delete", path="notes.md")["content"][0]["text"]
        (waiting,) = ground.waiting()
        assert ground.menugate("approve", waiting["id"]).code == 0
        hours.write_text("1.01")
        late = one.call("fs_delete", path="notes.md")["content"][0]["text"]
        assert "APPROVAL_REQUIRED" in late
        assert waiting["id"] not in late
        assert (workspace / "notes.md").exists()
        hours.write_text("0")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("chosen", ["out_of_band", "{out_of_band: [destroy-local]}", "{out_of_band: [fs_delete]}"])
def test_no_client_answers_what_the_operator_kept_for_the_person(
    workspace: Path, home: Path, tmp_path: Path, era: str, chosen: str
) -> None:
    config = tmp_path / "menugate.yaml"
    config.write_text(f"approvals: {chosen}\n")
    with pipe(workspace, home, *DATA, "--config", str(config)) as one:
        one.able = FORM
        one.hello(era=era)
        answer = one.call("fs_delete", path="notes.md")
        assert "menugate approve" in answer["content"][0]["text"]
        assert (workspace / "notes.md").exists()


async def test_two_answers_at_once_run_one_call(ground: Ground, here: Served) -> None:
    ground.file("race.txt")
    with raw(here, era=MODERN, able=FORM) as one:
        call = deleting("race.txt")
        yes = answered(read(one, call), call)
    found: list[str] = []

    def send() -> None:
        with raw(here, era=MODERN, able=FORM) as line:
            found.append(said(line.request("tools/call", yes)))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(anyio.to_thread.run_sync, send)
    assert len([answer for answer in found if "Deleted" in answer]) == 1, found
    late = [answer for answer in found if "Deleted" not in answer]
    # A call that arrives after the first one ended finds no file to delete, and says so before it looks at the answer.
    assert all("APPROVAL_REQUIRED" in answer or "NOT_FOUND" in answer for answer in late), found


async def test_nobody_elses_yes_counts(workspace: Path, home: Path) -> None:
    """A yes for one session is none for another, of the same person and about the same arguments."""
    ground = Ground(workspace, home)
    deleting: dict[str, Any] = {"tool": "fs_delete", "arguments": {"path": "notes.md"}}
    with pipe(workspace, home, "--profile", "trusted") as one, pipe(workspace, home, "--profile", "trusted") as other:
        places: list[dict[str, Any]] = []
        for each in (one, other):
            each.hello()
            places.append(deleting | {"menu": each.call("menu_enter", mode="data")["structuredContent"]["menu"]})
        mine, theirs = places
        assert "APPROVAL_REQUIRED" in one.call("menu_call", **mine)["content"][0]["text"]
        (waiting,) = ground.waiting()
        assert ground.menugate("approve", waiting["id"]).code == 0
        assert other.call("menu_call", **theirs)["isError"]
        assert (workspace / "notes.md").exists()
        assert not one.call("complete", final_answer="over", menu=mine["menu"])["isError"]
        # Nor does it outlive the run it was given in.
        assert one.call("menu_call", **mine)["isError"]
        assert (workspace / "notes.md").exists()


async def test_for_the_session_covers_the_tool_and_no_more(workspace: Path, home: Path) -> None:
    ground = Ground(workspace, home)
    await choose(workspace, home, run_control="manual", profile="trusted")
    with pipe(workspace, home, "--mode", "data") as one:
        one.hello()
        for path in ("a.txt", "b.txt"):
            (workspace / path).write_text("x")
        assert "APPROVAL_REQUIRED" in one.call("fs_read_file", path="a.txt")["content"][0]["text"]
        (waiting,) = ground.waiting()
        assert waiting["may_be_for_session"]
        assert ground.menugate("approve", waiting["id"], "--for-session").code == 0
        for path in ("a.txt", "b.txt", "a.txt"):
            assert not one.call("fs_read_file", path=path)["isError"]
        assert one.call("fs_list_directory", path=".")["isError"]
        # What destroys is asked about one call at a time.
        assert one.call("fs_delete", path="a.txt")["isError"]
        destroying = next(entry for entry in ground.waiting() if entry["tool"] == "fs_delete")
        assert ground.menugate("approve", destroying["id"], "--for-session").code == 1
        # And the person may think better of it.
        assert "Approval withdrawn" in ground.menugate("deny", waiting["id"]).out
        assert "APPROVAL_REQUIRED" in one.call("fs_read_file", path="a.txt")["content"][0]["text"]
        assert ground.menugate("approve", waiting["id"]).code == 1
        (denied,) = (entry for entry in ground.waiting("--all") if entry["id"] == waiting["id"])
        assert denied["standing"] == "no"


async def test_the_record_of_a_question_says_why_and_quotes_no_argument(workspace: Path, home: Path) -> None:
    ground = Ground(workspace, home)
    (workspace / "canary.md").write_text("x")
    await choose(workspace, home, profile="trusted")
    with pipe(workspace, home, "--profile", "trusted") as one:
        one.hello()
        for mode, tool, arguments in [
            ("swe", "Write", {"file_path": ".vscode/canary `one`.json", "content": "x"}),
            ("data", "fs_delete", {"path": "canary.md"}),
            ("git", "git_add", {"files": ["notes.md", "canary.pem"]}),
        ]:
            one.call("menu_enter", mode=mode)
            assert "canary" in one.call(tool, **arguments)["content"][0]["text"]
    asked = ground.kinds("question")
    assert [row["tool"] for row in asked] == ["Write", "fs_delete", "git_add"]
    assert "`…` decides what other programs run" in asked[0]["reason"]
    assert "It moves `…` to the trash" in asked[1]["reason"]
    assert "canary" not in ground.menugate("audit", "export").out
