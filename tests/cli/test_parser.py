"""Does each command line end with the right exit code, and say what a person needs on the right stream?"""

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_server.cli.commands import COMMANDS as ENTRIES
from mcp_server.cli.parser import build_parser
from mcp_server.cli.usage import get_subcommands
from tests.cli.conftest import Type
from tests.yaml_text import load_yaml

CASES: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables" / "command_lines.yaml").read_text())
COMMANDS = tuple(get_subcommands(build_parser()))
NOUNS = (
    *COMMANDS,
    *(f"todos {deed}" for deed in ("list", "show", "accept", "reject")),
    *(f"memory {deed}" for deed in ("list", "show", "add", "forget")),
    *(f"index {deed}" for deed in ("build", "find", "symbols")),
    *(f"audit {deed}" for deed in ("tail", "show", "why", "verify", "export")),
    *(f"rules {deed}" for deed in ("list", "test")),
)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_command_is_understood_without_the_other_commands(name: str) -> None:
    module = ENTRIES[name].module
    there = {other for other, entry in ENTRIES.items() if entry.module == module}
    assert {name} <= set(get_subcommands(build_parser([name, "whatever follows"]))) <= there


def test_every_command_in_the_table_is_added_and_every_other_one_is_not() -> None:
    assert sorted(ENTRIES) == sorted(COMMANDS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['type']}{' *' * ('first' in case)}" or "(nothing)")
def test_a_command_line(case: dict[str, Any], menugate: Type) -> None:
    for line in case.get("first", ()):
        menugate(line)
    said = menugate(case["type"])
    assert said.code == case["exit"], said
    for piece in case.get("says", ()):
        assert piece in said.out
    for piece in case.get("complains", ()):
        assert piece in said.err
    assert not case.get("silent") or said.out == ""
    assert "Traceback" not in said.err
    assert "\x1b" not in said.out + said.err, "no colour where nobody looks on"


@pytest.mark.parametrize("noun", NOUNS)
def test_help_shows_examples(noun: str, menugate: Type) -> None:
    said = menugate(f"{noun} --help")
    assert said.code == 0
    assert "examples:\n  " in said.out
    example = said.out.partition("examples:\n")[2]
    assert "menugate" in example


@pytest.mark.parametrize(
    ("line", "has"),
    [
        ("menus", {"modes"}),
        ("menus --tokens", {"modes", "tokens"}),
        ("menus swe", {"mode", "tools"}),
        ("check", {"ok", "faults", "modes"}),
        ("explain Read", {"verdict", "layer", "layers", "posture"}),
        ("explain fs_delete", {"verdict", "code", "way_out"}),
        ("call menu_list", {"content", "isError", "structuredContent"}),
        ("call fs_delete", {"content", "isError", "_meta"}),
        ("status", {"workspace", "posture", "ledger", "guards", "refusals"}),
        ("audit show 2", {"row", "other"}),
        ("audit verify", {"ok", "rows", "faults"}),
    ],
)
def test_json_is_json_and_nothing_else(line: str, has: set[str], menugate: Type) -> None:
    menugate("call menu_list")
    value = json.loads(menugate(f"{line} --json").out)
    assert has <= set(value)


def test_a_call_in_json_is_what_a_client_gets(menugate: Type) -> None:
    refused = menugate("call fs_delete --json")
    assert refused.code == 1
    result = json.loads(refused.out)
    assert result["isError"] is True
    assert result["_meta"]["menugate/refusal"]["code"] == "PROFILE_TOO_LOW"


def test_every_row_of_a_tail_in_json_is_a_line(menugate: Type) -> None:
    menugate("call menu_list")
    rows = [json.loads(line) for line in menugate("audit tail --json").out.splitlines()]
    assert [row["kind"] for row in rows] == ["start", "intent", "outcome", "stop"]
    assert [row["seq"] for row in rows] == [1, 2, 3, 4]


def test_arguments_come_from_a_file(menugate: Type, place: Path) -> None:
    (place / "call.json").write_text('\ufeff{"file_path": "notes.md"}')
    assert "# Notes" in menugate("call Read @call.json").out
    (place / "call.json").write_bytes(b'{"file_path": "\xff"}')
    said = menugate("call Read @call.json")
    assert (said.code, "not UTF-8 text (byte 16)" in said.err) == (2, True)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, '{"a": ' + "1" * 5000 + "}"])
def test_absurd_json_is_not_understood(text: str, menugate: Type) -> None:
    said = menugate("explain Read", text)
    assert said.code == 2
    assert len(said.err) < 1000


def test_the_fault_of_long_json_is_still_pointed_at(menugate: Type) -> None:
    said = menugate("explain Read", '{"a": "' + "x" * 500 + '", b}')
    lines = said.err.split("\n")
    arrow = next(number for number, line in enumerate(lines) if line.strip() == "^")
    assert lines[arrow - 1][len(lines[arrow]) - 1] == "b"


def test_what_a_model_wrote_does_not_speak_to_the_terminal(menugate: Type) -> None:
    menugate("call message_user", json.dumps({"message": "look \x1b]0;owned\x07 \x9b31m here"}))
    said = menugate("messages")
    assert r"look \u001b]0;owned\u0007 \u009b31m here" in said.out
    assert "\x1b" not in said.out
