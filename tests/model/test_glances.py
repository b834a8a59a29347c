"""Does the line about a call show what it was about, cut and quoted so that it can be read back?"""

import json
from typing import Any

import pytest

from mcp_server.model.glances import MAX_CHARS, format_glance, format_unknown_glance, is_glance, parse_glance
from tools.catalog import CATALOG

TOOLS = {tool.name: tool for tool in CATALOG}
HOSTILE = 'a\u202e\ud800\x1b\n\u2028\U000e0041\u0336\\" …'


def mask(text: str, most: int) -> str:
    return text.replace("hunter2!", "[redacted]")[:most]


def glance(tool: str, **arguments: Any) -> str:
    return format_glance(TOOLS[tool], arguments, mask)


@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        ("Write", {"file_path": "a b.txt", "content": "secret"}, 'Write "a b.txt"'),
        ("bash", {"command": "make test", "exec_dir": "web"}, 'bash "make test" exec_dir="web"'),
        ("bash", {"bash_id": "s1"}, "bash"),
        ("git_add", {"repo_path": ".", "files": ["a", "b"]}, 'git_add ["a", "b"] repo_path="."'),
        ("glob", {"pattern": "*.py"}, 'glob pattern="*.py"'),
        ("Read", {"file_path": 7}, "Read"),
        ("git_add", {"files": ["a", 7]}, 'git_add ["a"]…'),
        ("think", {"content": "anything"}, "think"),
        ("message_user", {"message": "anything"}, "message_user"),
    ],
)
def test_what_it_shows(tool: str, arguments: dict[str, Any], line: str) -> None:
    assert glance(tool, **arguments) == line
    assert is_glance(line)


@pytest.mark.parametrize("size", [*range(170, 215), 1000])
@pytest.mark.parametrize("text", ["x", "\\", '"', "é", "\u202e", "\U000e0041", HOSTILE])
def test_a_line_is_cut_between_characters(text: str, size: int) -> None:
    whole = (text * size)[:size]
    for line, name in ((glance("bash", command=whole), "bash "), (format_unknown_glance(whole, mask), "")):
        assert len(line) <= MAX_CHARS and is_glance(line), line
        shown = json.loads(line.removeprefix(name).removesuffix("…"))
        assert (shown == whole) is not line.endswith("…")
        assert whole.startswith(shown) or text in ("\U000e0041", HOSTILE), "at most half of a pair is left over"


def test_an_argument_that_does_not_fit_is_left_out() -> None:
    for size in range(160, 200):
        line = glance("bash", command="x" * size, exec_dir="here")
        assert len(line) <= MAX_CHARS and is_glance(line)
        assert line.endswith('"') or line.endswith("…")
    for size in range(160, 200):
        assert is_glance(glance("git_add", files=["x" * size, "y" * 30], repo_path="."))


def test_a_whole_line_is_read_back_and_no_other() -> None:
    for tool, arguments in (
        ("bash", {"command": HOSTILE, "exec_dir": "a=b"}),
        ("git_add", {"files": ["a", 'b "c"'], "repo_path": "."}),
        ("glob", {"pattern": "*"}),
        ("think", {}),
    ):
        parsed = parse_glance(glance(tool, **arguments).replace(" …", " ."), TOOLS)
        assert parsed is not None and parsed[0].name == tool
        assert {name: str(value) for name, value in parsed[1].items()} == {
            name: str(value).replace(" …", " .") for name, value in arguments.items()
        }
    for line in (glance("bash", command="x" * 300), glance("bash", command="echo hunter2!"), '"nobody"', "nobody"):
        assert parse_glance(line, TOOLS) is None
