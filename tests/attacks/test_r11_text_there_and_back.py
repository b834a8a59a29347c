"""R11 and R1: what `Read` shows could not always be given to `Edit`, `grep` sent raw controls, and a question could not
be read back.

A model gets text that it can type again, byte for byte; a person sees every character, and can read the arguments back.
"""

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from mcp_server.calls.approval_text import format_question
from mcp_server.calls.form_text import WIDTH, fence_text
from mcp_server.guards.redaction import Redactor
from mcp_server.model.policy import Call
from mcp_server.model.posture import Posture, Profile, RunControl
from mcp_server.model.sessions import Session
from mcp_server.policy.decision import decide
from tests.clients.pipe import pipe
from tests.clients.question_reader import QuestionReader
from tests.clients.typed import typed
from tests.policy.world import policy, tools
from tests.sizes import scale

TEXTS = 10_000
LETTERS = "ab Zß界あक한مע\t\"'\\`{}$"
CLASSES: Mapping[str, str] = {
    "joiners": "\u200d\u200c\u2060\u200b\ufeff\u034f",
    "direction": "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    "marks": "\u0301\u0300\u0338\u20dd\u0489\u0e31\u093f\u064b\u0336",
    "separators": "\u2028\u2029\u00a0\u3000\u2003\u1680\u202f\u205f",
    "blanks": "\u3164\u115f\u1160\uffa0\u2800\u180e\u00ad",
    "variation": "\ufe0e\ufe0f\ufe00\U000e0100\U000e0041\U000e007f",
    "emoji": "👩💻👨🏽🏳🌈",
    "odd planes": "\U0001d173\U00013430\U000f0000\ue000\uffff\U0010ffff",
}
CONTROLS = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0)))) + "\ud800"
"""Half a character alone: JSON reads two halves as a whole one."""


def write_text(chance: random.Random, more: str = "") -> str:
    """A short text with characters of every class in it, in any order."""
    pool = [LETTERS, LETTERS, *CLASSES.values(), *([more] if more else [])]
    return "".join(chance.choice(chance.choice(pool)) for _ in range(chance.randrange(1, 40)))


def said(answer: Mapping[str, Any]) -> str:
    assert not answer.get("isError"), answer
    return "\n".join(block["text"] for block in answer["content"])


@pytest.mark.heavy
def test_what_read_shows_goes_back_through_edit_and_write_byte_for_byte(workspace: Path, home: Path) -> None:
    chance = random.Random(11)
    path = workspace / "text.txt"
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello("opencode")
        for turn in range(scale(TEXTS)):
            lines = [write_text(chance) for _ in range(chance.randrange(1, 4))]
            data = ("\n".join(lines) + "\n").encode()
            path.write_bytes(data)
            shown = [line.partition("\t")[2] for line in said(one.call("Read", file_path="text.txt")).split("\n")]
            assert shown == ["\n".join(lines).removeprefix("\ufeff").split("\n")[0], *lines[1:]], (turn, data)
            old = "\n".join(shown)
            # A file of nothing but a byte order mark shows no text that an edit could replace.
            if old:
                said(one.call("Edit", file_path="text.txt", old_string=old, new_string=f"{old}!"))
                assert path.read_bytes() == data[:-1] + b"!\n", (turn, data)
            said(one.call("Write", file_path="text.txt", content=f"{old}\n"))
            assert path.read_bytes() == data, (turn, data)


HIDDEN = frozenset("".join(CLASSES[name] for name in ("joiners", "direction", "separators", "blanks", "variation")))


OWN_LINE = re.compile(r"\n(?! )")


def read_back(question: str) -> dict[str, Any]:
    """The arguments of a question, from its text alone; every character of it can be seen."""
    assert all(sign == "\n" or sign.isprintable() for sign in question), question
    assert not HIDDEN & set(question), question
    arguments = question.partition("\nArguments:")[2]
    # A line of the question's own begins at the left, where no argument can write.
    return QuestionReader(OWN_LINE.split(arguments, maxsplit=1)[0]).read_arguments()


@pytest.mark.heavy
def test_a_question_can_be_read_back(workspace: Path) -> None:
    chance = random.Random(1)
    posture = Posture(profile=Profile.UNRESTRICTED, run_control=RunControl.MANUAL)
    bash, house = tools()["bash"], policy()
    for turn in range(scale(TEXTS)):
        given = {name: write_text(chance, CONTROLS) + "\n" + write_text(chance, CONTROLS) for name in ("command",)}
        decision = decide(bash, Call("bash", given), Session("s", "p", "swe"), posture, house)
        text = format_question(bash, given, decision, Redactor())
        assert read_back(text) == given, turn
        assert read_back(show_as_markdown(fence_text(text))) == given, turn


def show_as_markdown(form: str) -> str:
    """What a host shows of a form that it takes for Markdown: one block of code, whose lines fit the window."""
    (block,) = MarkdownIt().parse(form)
    assert block.type == "fence"
    lines = block.content.removesuffix("\n").split("\n")
    assert max(map(len, lines)) < 2 * WIDTH
    return "\n".join(lines)


BATCH = 100
"""Questions between two looks at the terminal."""
ASKING: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("bash", ("command",)),
    ("Write", ("file_path", "content")),
    ("grep", ("pattern", "glob")),
    ("glob", ("pattern",)),
)


def write_call(chance: random.Random, turn: int) -> tuple[str, dict[str, str]]:
    tool, names = ASKING[turn % len(ASKING)]
    # No argument may hold the first one, and no message half a character. A line of plain letters that bash cannot read
    # would be refused before anybody is asked.
    return tool, {name: f"{turn}é/{write_text(chance, CONTROLS[1:-1])}" for name in names}


@pytest.mark.heavy
def test_every_question_at_the_terminal_can_be_read_back(workspace: Path, home: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"rules:\n  ask: [{', '.join(tool for tool, _ in ASKING)}]\n")
    for begin in range(0, scale(TEXTS, BATCH), BATCH):
        # A folder of its own, because every call that asks reads the last 500 questions of its folder.
        place = workspace / str(begin)
        place.mkdir()
        made = [write_call(chance, begin + turn) for turn in range(BATCH)]
        with pipe(place, home, "--mode", "swe", "--config", str(rules)) as one:
            one.hello("opencode")
            for tool, arguments in made:
                assert one.call(tool, **arguments)["content"][0]["text"].startswith("Error APPROVAL_REQUIRED")
        listed = json.loads(typed(place, home, "approvals", "--json").out)
        assert [(row["tool"], read_back(row["message"])) for row in reversed(listed)] == made


def test_no_name_and_no_line_of_a_file_commands_the_terminal(workspace: Path, home: Path) -> None:
    """A name with a line end forged entries, and `grep` and `glob` sent raw escapes."""
    (workspace / "a\nsrc/forged.py").parent.mkdir()
    (workspace / "a\nsrc/forged.py").write_text("needle \x1b]52;c;ZXZpbA==\x07 \x9b2J\n")
    calls = (
        ("swe", "grep", {"pattern": "needle", "output_mode": "content"}),
        ("swe", "grep", {"pattern": "needle"}),
        ("swe", "grep", {"pattern": "needle", "output_mode": "count"}),
        ("swe", "glob", {"pattern": "**/*.py"}),
        ("swe", "Read", {"file_path": "a\nsrc/forged.py"}),
        ("data", "fs_list_directory", {"depth": 2}),
        ("data", "fs_file_info", {"path": "a\nsrc/forged.py"}),
        ("data", "fs_read_file", {"path": "a\nsrc/forged.py"}),
    )
    for mode, tool, arguments in calls:
        with pipe(workspace, home, "--mode", mode) as one:
            one.hello("opencode")
            text = said(one.call(tool, **arguments))
        assert not set(CONTROLS) - {"\n", "\t"} & set(text), (tool, text)
        assert not any(line.startswith("src/forged.py") for line in text.split("\n")), (tool, text)
