"""Do Read, Edit and Write do what tests/tables/edit.yaml says?"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.model.results import Code, Done, Ending, Problem
from tests.tools.workbench import Workbench, code
from tests.tools.workbench import text as shown
from tests.yaml_text import load_yaml
from tools.files.edit import find_matches, replace_matches
from tools.files.lines import MOST_BYTES

TABLE = Path(__file__).parents[2] / "tables" / "edit.yaml"
CASES = cast(list[dict[str, Any]], load_yaml(TABLE.read_text()))
WORDS = {"old": "old_string", "new": "new_string", "all": "replace_all"}
ARGUMENTS = {"old_string", "new_string", "replace_all", "content", "offset", "limit"}
KEYS = {
    "name",
    "bytes",
    "files",
    "links",
    "seen",
    "meanwhile",
    "gone",
    "first",
    "remember",
    "confirmed",
    "surrogate",
} | {
    *("call", "path", "code", "says", "never", "is", "after", "picture"),
    *WORDS,
    *ARGUMENTS,
}


def test_the_table_is_well_formed() -> None:
    assert len(CASES) >= 120
    assert len({case["name"] + case["call"] for case in CASES}) == len(CASES)
    assert [case["name"] for case in CASES if not KEYS.issuperset(case)] == []


def written(case: Mapping[str, Any], text: str) -> bytes:
    return text.encode("latin-1" if case.get("bytes") else "utf-8")


def arguments(case: Mapping[str, Any]) -> dict[str, Any]:
    named = {WORDS.get(key, key): value for key, value in case.items()}
    return {key: str(value) if key.endswith("string") else value for key, value in named.items() if key in ARGUMENTS}


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def prepared(case: Mapping[str, Any], root: Path, path: str) -> Workbench:
    root.mkdir()
    (root.parent / "outside.txt").write_text("OUTSIDE outside")
    bench = Workbench(root)
    for name, text in case["files"].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(written(case, text))
    for name, target in case.get("links", {}).items():
        (root / name).symlink_to(target)
    for name in case.get("seen", [path]):
        bench.call("Read", yes=True, file_path=name)
        if case.get("remember"):
            bench.files.remember(name, bench.files.read(name, 1 << 20).stamp)
    if "first" in case:
        assert isinstance(bench.call(case["call"], file_path=path, **arguments(case["first"])), Done)
    for name, text in case.get("meanwhile", {}).items():
        (root / name).write_bytes(written(case, text))
    for name in case.get("gone", ()):
        (root / name).unlink()
    return bench


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['call']}: {case['name']}")
def test_files(case: dict[str, Any], tmp_path: Path) -> None:
    root = tmp_path / "work"
    path = case.get("path") or next(iter(case["files"]))
    bench = prepared(case, root, path)
    before = contents(tmp_path)
    ending = bench.call(case["call"], case.get("confirmed", False), file_path=path, **arguments(case))
    said(case, ending)
    after = contents(tmp_path)
    if "after" not in case:
        assert after == before
        return
    expected = {name: written(case, text) for name, text in case["after"].items() if name != "tail"}
    for name in expected:
        expected[name] += case["after"].get("tail", "").encode()
    untouched = {name: text for name, text in case["files"].items() if name not in case.get("gone", ())}
    expected = {name: written(case, text) for name, text in untouched.items()} | expected
    assert {f"work/{name}": data for name, data in expected.items()} | {"outside.txt": b"OUTSIDE outside"} == after


def said(case: Mapping[str, Any], ending: Ending) -> None:
    text = ending.text
    if "code" in case:
        assert isinstance(ending, Problem), text
        assert ending.code == case["code"], text
        assert text.startswith(f"Error {case['code']}: ")
    else:
        assert isinstance(ending, Done), text
    for part in case.get("says", ()):
        assert part in text, text
    for part in case.get("never", ()):
        assert part not in text, text
    if "is" in case:
        assert text == case["is"]
    if "picture" in case:
        assert isinstance(ending, Done)
        [picture] = ending.blocks
        assert getattr(picture, "media_type", "") == case["picture"]


def test_replacing_everywhere_stays_within_bounds(bench: Workbench) -> None:
    (bench.root / "f").write_text("a" * 100_000)
    shown(bench, "Read", file_path="f")
    more: dict[str, Any] = {"old_string": "a", "new_string": "b" * (MOST_BYTES // 50_000), "replace_all": True}
    assert code(bench, "Edit", file_path="f", **more) is Code.TOO_LARGE


LETTERS = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", " ", "é", "\\", ".", "\t"]), max_size=30).map("".join)


@given(before=LETTERS, middle=LETTERS, after=LETTERS, new=LETTERS)
def test_an_edit_changes_its_place_and_nothing_else(before: str, middle: str, after: str, new: str) -> None:
    whole = f"{before}<{middle}>{after}".replace("<", "‹").replace(">", "›")
    wanted = f"‹{middle}›"
    assert len(find_matches(whole, wanted).starts) == 1
    changed = replace_matches(whole, wanted, new)
    assert changed.startswith(before)
    assert changed.endswith(after)
    put = changed[len(before) : len(changed) - len(after)]
    assert put.replace("\r\n", "\n") == new.replace("\r\n", "\n")
