"""Is help readable at every width, does it tell the truth, and does an error come before the usage?"""

import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mcp_server
from mcp_server.cli.commands import COMMANDS, GROUPS
from mcp_server.cli.output import wrap_text
from mcp_server.cli.parser import build_parser
from mcp_server.cli.topics import TOPICS
from mcp_server.cli.usage import FIRST_SESSION, find_comment, get_subcommands, render_examples, wrap_command
from mcp_server.model.text import format_count
from mcp_server.settings import read_columns
from tests.cli.conftest import Type
from tests.yaml_text import load_yaml

ROOT = Path(__file__).parents[2]
PACKAGE = Path(mcp_server.__file__).parent
"""Where it was installed; `make wheel` runs these tests where no checkout is in sight."""
ERRORS: list[dict[str, str]] = load_yaml((ROOT / "tests" / "tables" / "usage_errors.yaml").read_text())
WIDTHS = (40, 80, 200)
SETTINGS = (PACKAGE / "settings.py").read_text()


def list_command_lines() -> Iterator[str]:
    """Every command, and every action below one."""
    for name, command in get_subcommands(build_parser()).items():
        yield name
        yield from (f"{name} {action}" for action in get_subcommands(command))


LINES = tuple(list_command_lines())


def examples_of(line: str) -> list[str]:
    """The commands among the examples of a command, without their comments."""
    command = build_parser(line.split())
    for word in line.split():
        command = get_subcommands(command)[word]
    return [example[: find_comment(example)] for example in (command.epilog or "").strip().splitlines()]


def typed_by(example: str) -> list[str] | None:
    """The words that menugate gets from a line of shell; None for a line that starts another program."""
    words = shlex.split(example.replace("<(", " ").replace(")", " )"))
    if "menugate" not in words:
        return None
    own = words[words.index("menugate") + 1 :]
    end = next((at for at, word in enumerate(own) if word in ("|", ">", "<", ")")), len(own))
    return own[:end]


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case["type"])
def test_the_mistake_comes_first_and_the_usage_after_it(case: dict[str, Any], menugate: Type) -> None:
    said = menugate(case["type"])
    assert (said.code, said.out) == (2, "")
    first, usage, more = said.err.rstrip("\n").split("\n")
    assert (first, usage) == (f"menugate: {case['says']}", f"usage: {case['usage']}")
    assert more.startswith(f"`{case['help']}` "), "the last line says where to read more"


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case["type"])
def test_the_help_that_an_error_names_is_there(case: dict[str, Any], menugate: Type) -> None:
    said = menugate(case["help"].removeprefix("menugate "))
    assert (said.code, said.err) == (0, "")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("line", ["", *(f"help {line}" for line in LINES), *(f"help {topic}" for topic in TOPICS)])
def test_help_breaks_between_words(line: str, width: int, menugate: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10000")
    said = menugate(line)
    whole = (said.out + said.err).split()
    monkeypatch.setenv("COLUMNS", str(width))
    said = menugate(line)
    shown = said.out + said.err
    # A command goes on behind a backslash; nothing else is added, and no word is taken apart.
    assert [word for word in shown.split() if word != "\\"] == whole
    too_long = [one for one in shown.split("\n") if len(one) > width]
    assert [one for one in too_long if len(one.split()) > 1 and not is_one_argument(one)] == []


def is_one_argument(line: str) -> bool:
    """A single word, an option with its value, or one quoted argument cannot be broken."""
    words = line.rstrip("\\").split()
    quoted = re.fullmatch(r"""\s*(?:\S*'[^']*'\S*|\S*"[^"]*"\S*)\s*\\?""", line) is not None
    return (len(words) <= 2 and words[0].startswith("MENUGATE_")) or quoted


@pytest.mark.parametrize("width", WIDTHS)
def test_an_error_is_wrapped_and_whole(width: int, menugate: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = menugate("mode bild").err.split()
    monkeypatch.setenv("COLUMNS", str(width))
    said = menugate("mode bild").err
    assert said.split() == whole
    assert max(map(len, said.split("\n"))) <= width


def test_the_last_column_of_a_table_wraps_below_itself(menugate: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = menugate("menus").out
    monkeypatch.setenv("COLUMNS", "80")
    narrow = menugate("menus").out
    assert narrow.split() == whole.split()
    assert max(map(len, narrow.split("\n"))) <= 80 < max(map(len, whole.split("\n")))
    column = narrow.split("\n")[0].index("when")
    below = [line for line in narrow.split("\n")[1:] if line.startswith(" " * 8)]
    assert below and {line[:column].strip() for line in below} == {""}


def test_into_a_pipe_nothing_is_wrapped(menugate: Type) -> None:
    """A program may read line by line."""
    said = menugate("pause --reason " + shlex.quote("a reason " * 20))
    assert len(said.out.split("\n")[0]) > 200


def test_the_overview_shows_every_command_once_in_its_group(menugate: Type) -> None:
    shown = menugate("--help").out
    assert list(GROUPS) == ["See", "Decide", "Set up", "Look back", "Maintain"]
    for group, entries in GROUPS.items():
        section = shown.partition(f"\n{group}\n")[2].partition("\n\n")[0]
        assert re.findall(r"^  (\S+) ", section, re.MULTILINE) == list(entries)
    assert menugate("help").out == shown == menugate("").err
    assert [topic for topic in TOPICS if topic not in shown.partition("menugate help TOPIC")[2]] == []


@pytest.mark.parametrize("line", LINES)
def test_a_command_says_what_it_is_for_and_its_examples_are_understood(line: str, menugate: Type) -> None:
    shown = menugate(f"help {line}").out
    own = menugate(f"{line} --help").out
    assert shown == own or (shown.startswith(own) and line in TOPICS)
    purpose, _, rest = shown.partition("\n\n")
    assert purpose.endswith(".") and len(purpose.split()) >= 3
    assert rest.startswith(f"usage: menugate {line}")
    tried = [words for example in examples_of(line) if (words := typed_by(example)) is not None]
    assert tried, "no example names menugate"
    for words in tried:
        assert words[: len(line.split())] == line.split() or line in COMMANDS
        build_parser(words).parse_args(words)


def test_the_first_session_is_understood() -> None:
    for line in FIRST_SESSION.strip().splitlines():
        words = typed_by(line[: find_comment(line)].partition("-- ")[2] or line[: find_comment(line)])
        assert words is not None
        build_parser(words).parse_args(words)


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_ends_with_a_page_that_is_there_and_its_commands_are_understood(name: str, menugate: Type) -> None:
    shown = menugate(f"help {name}").out
    page = re.search(r"\nMore: (\S+)\n$", shown)
    assert page is not None and (ROOT / page[1]).is_file()
    for line in re.findall(r"^  (?:claude mcp add menugate -- )?menugate (.+)$", TOPICS[name].text, re.MULTILINE):
        build_parser(shlex.split(line)).parse_args(shlex.split(line))


def test_pages_that_help_names_are_there() -> None:
    texts = [*(topic.text for topic in TOPICS.values()), (PACKAGE / "cli" / "usage.py").read_text()]
    pages = {page for text in texts for page in re.findall(r"docs/[\w-]+\.md", text)}
    assert pages and [page for page in pages if not (ROOT / page).is_file()] == []


def test_the_topic_about_the_environment_names_every_variable_that_is_read() -> None:
    named = set(re.findall(r"MENUGATE_[A-Z_]+[A-Z]", TOPICS["environment"].text))
    given = {f"MENUGATE_{name.upper()}" for name in re.findall(r'get_given\("(\w+)"\)', SETTINGS)}
    direct = set(re.findall(r'"(MENUGATE_[A-Z_]+)"', SETTINGS))
    assert named == given | direct


def test_a_wrapped_command_is_still_one_command() -> None:
    line = """menugate explain fs_delete '{"path": "a b c"}' --profile trusted --mode swe --stage act"""
    wrapped = wrap_command(line, 40)
    assert len(wrapped) > 1
    assert shlex.split("\n".join(wrapped).replace("\\\n", "")) == shlex.split(line)


def test_examples_stand_below_each_other_where_there_is_no_room() -> None:
    assert render_examples("menugate status    how things are", 80) == "  menugate status  how things are"
    assert render_examples("menugate status    how things are", 30) == "  menugate status\n      how things are"


@pytest.mark.parametrize(
    ("text", "width", "wrapped"),
    [
        ("one two three", 0, "one two three"),
        ("one two three", 7, "one two\nthree"),
        ("  one two three", 9, "  one two\n  three"),
        ("unbreakable-word-of-many-letters", 8, "unbreakable-word-of-many-letters"),
        ("one\n\ntwo", 8, "one\n\ntwo"),
        ("", 8, ""),
    ],
)
def test_text_wraps_at_spaces_alone(text: str, width: int, wrapped: str) -> None:
    assert wrap_text(text, width) == wrapped


@pytest.mark.parametrize(("given", "columns"), [("80", 80), ("", 0), ("wide", 0), ("-4", 0), ("1000000", 0)])
def test_columns_come_from_the_environment(given: str, columns: int) -> None:
    assert read_columns({"COLUMNS": given}) == columns


@pytest.mark.parametrize(
    ("count", "noun", "plural", "text"),
    [
        (0, "call", "", "0 calls"),
        (1, "call", "", "1 call"),
        (2, "call", "", "2 calls"),
        (1, "entry", "entries", "1 entry"),
        (3, "entry", "entries", "3 entries"),
        (1200, "row", "", "1,200 rows"),
    ],
)
def test_one_thing_is_no_plural(count: int, noun: str, plural: str, text: str) -> None:
    assert format_count(count, noun, plural) == text


PLURALS = re.compile(r"\b1 (?:rows|files|lines|tools|rules|modes|calls|servers|examples|entries|messages|faults)\b")


def test_no_command_counts_one_as_many(menugate: Type, place: Path) -> None:
    (place / "menugate.yaml").write_text("rules:\n  deny:\n    - rule: Write(vendor/**)\n      match: [vendor/a.py]\n")
    menugate("call menu_list")
    lines = (
        *(
            "status",
            "check",
            "doctor",
            "rules list",
            "rules test",
            "menus",
            "audit verify",
            "audit tail",
            "index build",
        ),
        *("index find Notes", "index symbols Notes", "memory add one", "memory forget --all", "profile normal", "stop"),
        *("summary", "summary --list", "trust --show", "pause", "next"),
    )
    said = {line: menugate(line) for line in lines}
    assert {line: found for line, one in said.items() if (found := PLURALS.findall(one.out + one.err))} == {}
    assert "1 line in 1 file." in said["index find Notes"].out
    assert "1 example of 1 rule: none failed; 0 rules have no example." in said["rules test"].out


def test_nobody_builds_a_plural_by_hand() -> None:
    """`format_count` is the one place that knows how."""
    by_hand = re.compile(r"""['"]s['"] (?:if|\*)|\[:-1\] if count""")
    rooms = [*(PACKAGE / "cli").glob("*.py"), *(PACKAGE / "views").glob("*.py")]
    files = [*rooms, *(PACKAGE / f"{name}.py" for name in ("health", "installation", "settings"))]
    assert [path.name for path in files if by_hand.search(path.read_text())] == []


def test_the_overview_imports_no_command(menugate: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {entry.module for entry in COMMANDS.values()} - {"help"}:
        monkeypatch.delitem(sys.modules, f"mcp_server.cli.{name}", raising=False)
    for line in ("--help", "help", "help profiles", "stauts"):
        menugate(line)
    loaded = {name for name in {entry.module for entry in COMMANDS.values()} if f"mcp_server.cli.{name}" in sys.modules}
    assert loaded <= {"help"}


NOT_RUN = ("serve", "audit tail --follow", "completion")
"""Examples that do not end by themselves, or that a shell runs at its start; they are parsed above."""


@pytest.mark.parametrize("line", LINES)
def test_examples_run(line: str, menugate: Type, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder where nothing has happened an example may find nothing, but it is never misunderstood."""
    call = '{"file_path": "notes.md", "old_string": "a", "new_string": "b"}'
    for name, text in {"call.json": call, "new-file.json": "{}", "new.yaml": "", "menugate.yaml": ""}.items():
        (place / name).write_text(text)
    home = place.parent / "home"
    (home / "code" / "app").mkdir(parents=True, exist_ok=True)
    for example in examples_of(line):
        words = typed_by(example.replace("~", str(home)))
        if words is None or " ".join(words).startswith(NOT_RUN):
            continue
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(call.encode())))
        said = menugate(shlex.join(words))
        assert said.code in (0, 1), said.err
        quiet = said.code == 0 or "--quiet" in words
        assert quiet or said.out or said.err.startswith(("menugate: ", "Error "))
