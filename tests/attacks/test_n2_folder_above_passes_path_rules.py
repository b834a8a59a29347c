"""N2: a rule about a path was passed by moving the folder above it, and by searching from above."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed

ERAS = ("legacy", "2026-07-28")
TOOLS = ("Read", "Write", "Edit", "fs_read_file", "fs_write_file", "fs_move", "fs_delete")
EVERY_TOOL = [*(f"{name}(docs/secret.md)" for name in TOOLS), 'fs_move(destination eq "docs/secret.md")']
SEARCHED = ("a.txt", "secretdir/b.txt", "secretdir/in/c.txt", "src/d.txt")


@pytest.fixture
def ground(workspace: Path) -> Path:
    for name in ("docs/in", "p/secretdir/in", "full"):
        (workspace / name).mkdir(parents=True)
    for name in ("docs/secret.md", "docs/open.md", "p/secretdir/in/x.md", "p/open.md", "full/secret.md"):
        (workspace / name).write_text("the secret")
    (workspace / "link").symlink_to("docs")
    return workspace


def ruled(tmp_path: Path, *rules: str, kind: str = "deny") -> str:
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"rules": {kind: list(rules)}}))
    return str(path)


def said(answer: dict[str, Any]) -> str:
    return answer["content"][0]["text"]


def called(one: Pipe, tool: str, mode: str = "data", **arguments: object) -> str:
    return said(one.call("menu_call", tool=tool, arguments=arguments, mode=mode))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "rules", [EVERY_TOOL, ["fs_*(docs/secret.md)"], ['fs_move(source regex "secret")'], ["Read(docs/secret.md)"]]
)
def test_a_folder_is_not_moved_away_with_what_may_not_be(
    ground: Path, home: Path, tmp_path: Path, era: str, rules: list[str]
) -> None:
    with pipe(ground, home, "--config", ruled(tmp_path, *rules)) as one:
        one.hello("mcp", era)
        for path in ("docs", "./docs/", "link/../docs", f"{ground}/docs", "docs/in/.."):
            text = called(one, "fs_move", source=path, destination="d2")
            assert text.startswith("Error RULE_DENIED"), (path, text)
            assert "docs/secret.md" in text and rules[-1].split("(")[0].replace("fs_*", "fs_") in text
        assert (ground / "docs" / "secret.md").read_text() == "the secret"
        assert "Error" not in called(one, "fs_move", source="docs/open.md", destination="opened.md")
        assert "Error" not in called(one, "fs_move", source="docs/in", destination="in")
    explained = typed(
        ground,
        home,
        *("explain", "fs_move", '{"source": "docs", "destination": "d2"}', "--json"),
        *("--config", ruled(tmp_path, *rules)),
    )
    assert json.loads(explained.out)["code"] == "RULE_DENIED"
    assert json.loads(explained.out)["rule"]["text"] in rules


@pytest.mark.parametrize(
    "rule", ['fs_move(destination eq "docs/secret.md")', "Write(docs/secret.md)", "fs_write_file(docs/**)"]
)
def test_nothing_is_moved_with_its_folder_to_where_it_may_not_be(
    ground: Path, home: Path, tmp_path: Path, rule: str
) -> None:
    shutil.rmtree(ground / "docs")
    with pipe(ground, home, "--config", ruled(tmp_path, rule)) as one:
        one.hello("mcp")
        text = called(one, "fs_move", source="full", destination="docs")
        assert text.startswith("Error RULE_DENIED") and rule in text, text
        assert "It would touch `docs" in text or "It would touch `full/secret.md`" in text, text
        assert not (ground / "docs").exists()
        assert "Error" not in called(one, "fs_move", source="full", destination="fuller")


def test_a_folder_below_keeps_its_place_too(ground: Path, home: Path, tmp_path: Path) -> None:
    with pipe(ground, home, "--config", ruled(tmp_path, "fs_move(p/secretdir/**)", kind="block")) as one:
        one.hello("mcp")
        text = called(one, "fs_move", source="p", destination="p2")
        assert text.startswith("Error BLOCKED") and "p/secretdir" in text, text
        assert "Error" not in called(one, "fs_move", source="p/open.md", destination="p3")


def test_a_question_names_what_lies_below(ground: Path, home: Path, tmp_path: Path) -> None:
    with pipe(ground, home, "--config", ruled(tmp_path, "fs_move(docs/secret.md)", kind="ask")) as one:
        one.hello("mcp")
        text = called(one, "fs_move", source="docs", destination="d2")
        assert text.startswith("Error APPROVAL_REQUIRED") and "docs/secret.md" in text, text
        assert "Error" not in called(one, "fs_move", source="p", destination="p2")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("kind", "rules", "code"),
    [
        ("deny", ["Read(docs/**)"], "RULE_DENIED"),
        ("deny", ["Write(docs/**)"], "RULE_DENIED"),
        ("block", ["Read(docs/secret.md)", "bash"], "BLOCKED"),
        ("ask", ["Read(docs/**)"], "APPROVAL_REQUIRED"),
    ],
)
def test_a_link_to_the_folder_is_no_way_round(
    ground: Path, home: Path, tmp_path: Path, era: str, kind: str, rules: list[str], code: str
) -> None:
    config = ruled(tmp_path, *rules, kind=kind)
    with pipe(ground, home, "--config", config) as one:
        one.hello("mcp", era)
        for path in ("link/secret.md", f"{ground}/link/secret.md", "link/in/../secret.md"):
            assert called(one, "fs_move", source=path, destination="o.md").startswith(f"Error {code}"), path
        assert (ground / "docs" / "secret.md").exists() and not (ground / "o.md").exists()
        assert "Error" not in called(one, "fs_move", source="p/open.md", destination="o.md")
    call = '{"source": "link/secret.md", "destination": "o2.md"}'
    explained = json.loads(typed(ground, home, "explain", "fs_move", call, "--json", "--config", config).out)
    assert explained["code"] == code


def test_a_deletion_is_refused_for_what_lies_below(ground: Path, home: Path, tmp_path: Path) -> None:
    config = ruled(tmp_path, "fs_delete(docs/secret.md)")
    with pipe(ground, home, "--config", config, "--profile", "trusted") as one:
        one.hello("mcp")
        text = called(one, "fs_delete", path="docs")
        assert text.startswith("Error RULE_DENIED") and "docs/secret.md" in text, text


def test_a_tree_too_large_to_look_through_is_taken_in_parts(ground: Path, home: Path, tmp_path: Path) -> None:
    for folder in range(3):
        (ground / "large" / str(folder)).mkdir(parents=True)
        for name in range(7_000):
            (ground / "large" / str(folder) / str(name)).touch()
    with pipe(ground, home, "--config", ruled(tmp_path, "fs_move(docs/secret.md)")) as one:
        one.hello("mcp")
        text = called(one, "fs_move", source="large", destination="l2")
        assert text.startswith("Error RULE_DENIED") and "smaller parts" in text, text
        assert "Error" not in called(one, "fs_move", source="large/0", destination="l0")
    with pipe(ground, home) as one:
        one.hello("mcp")
        assert "Error" not in called(one, "fs_move", source="large", destination="l2")


def test_a_rule_that_says_which_path_alone_is_right_says_nothing_of_what_lies_there(
    ground: Path, home: Path, tmp_path: Path
) -> None:
    with pipe(ground, home, "--config", ruled(tmp_path, 'fs_move(source neq "docs")')) as one:
        one.hello("mcp")
        assert called(one, "fs_move", source="p", destination="p2").startswith("Error RULE_DENIED")
        assert "Error" not in called(one, "fs_move", source="docs", destination="d2")


@pytest.fixture
def searched(workspace: Path) -> Path:
    for name in SEARCHED:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("def needle(): pass\n")
    return workspace


SEARCHES = [
    ("grep", "swe", {"pattern": "needle"}),
    ("grep", "swe", {"pattern": "needle", "glob": "secretdir/**"}),
    ("grep", "swe", {"pattern": "needle", "output_mode": "content", "-C": 2}),
    ("grep", "swe", {"pattern": "needle", "output_mode": "count", "path": "."}),
    *(
        ("glob", "swe", {"pattern": one})
        for one in ("secretdir/*", "./secretdir/*", "s*r/*", "{secretdir,x}/*", "**", "b.txt")
    ),
    ("fs_list_directory", "data", {"depth": 5}),
    ("fs_list_directory", "data", {"path": ".", "depth": 2}),
    ("index_search", "project", {"query": "needle"}),
    ("index_symbols", "project", {"query": "needle"}),
]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", ["block", "deny", "ask"])
def test_what_a_tool_may_not_name_it_does_not_show(
    searched: Path, home: Path, tmp_path: Path, era: str, kind: str
) -> None:
    rules = [f"{name}(secretdir/**)" for name in ("grep", "glob", "fs_list_directory", "index_search")]
    rules.append('index_symbols(path glob "secretdir/**")')
    with pipe(searched, home, "--config", ruled(tmp_path, *rules, kind=kind)) as one:
        one.hello("mcp", era)
        for tool, mode, arguments in SEARCHES:
            text = called(one, tool, mode, **arguments)
            # What was asked for is named in the answer; what lies there is not.
            assert "b.txt" not in text.replace("`b.txt`", ""), (tool, arguments, text)
            assert "c.txt" not in text and "that a rule hides from this tool are left out." in text, (
                tool,
                arguments,
                text,
            )
        assert "src/d.txt" in called(one, "grep", "swe", pattern="needle")
        assert called(one, "grep", "swe", pattern="x", path="secretdir").startswith("Error ")


def test_how_much_is_left_out_does_not_say_what_lies_there(searched: Path, home: Path, tmp_path: Path) -> None:
    (searched / "secretdir" / "key.txt").write_text("token=abc\n")
    with pipe(searched, home, "--config", ruled(tmp_path, "grep(secretdir/**)")) as one:
        one.hello("mcp")
        right, wrong = (called(one, "grep", "swe", pattern=f"token={rest}") for rest in ("a", "b"))
        assert right.replace("token=a", "") == wrong.replace("token=b", "")


def test_a_question_that_was_answered_shows_what_it_was_about(searched: Path, home: Path, tmp_path: Path) -> None:
    config = ruled(tmp_path, "grep(secretdir/**)", kind="ask")
    with pipe(searched, home, "--config", config, "--mode", "swe") as one:
        one.hello("mcp")
        about = {"pattern": "needle", "path": "secretdir"}
        asked = re.search(r"menugate deny (\w+)", called(one, "grep", "swe", **about))
        assert asked is not None
        typed(searched, home, "approve", asked[1], "--config", config)
        assert "secretdir/b.txt" in called(one, "grep", "swe", **about)
