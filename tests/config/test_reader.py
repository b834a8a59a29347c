"""Does reading a file ever do anything but answer? Whatever stands in it, with either parser."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcp_server.config.faults import SHOWN_PER_FILE, ConfigFault, FaultCollector
from mcp_server.config.menus import WHOLE
from mcp_server.config.operator_schema import CONFIG
from mcp_server.config.reader import (
    LARGEST,
    Fields,
    Items,
    Leaf,
    Node,
    ScalarKind,
    get_scalar_kind,
    parse_yaml,
    read_yaml_file,
)
from mcp_server.config.shapes import fit
from mcp_server.model.text import find_nearest_name, quote_exactly
from tests.sizes import scale

MARKS = [*"[]{}:,-?!&*#|>%@`'\"\\~<=", "\n", "\n  ", "\n- ", ": ", "- ", "? ", "<<: ", "--- ", "...", "%YAML 1.2\n"]
WORDS = [
    "a",
    "key",
    "yes",
    "null",
    "1",
    ".nan",
    "\t",
    "\r\n",
    "\x00",
    "\u2028",
    "\ufeff",
    '"\\ud800"',
    '"\\x0"',
    "%TAG ! a\n",
]
PIECES = st.sampled_from(MARKS + WORDS)
TEXTS = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=60).map("".join))


def parsed(text: str, pure: bool = False) -> tuple[Node | None, tuple[ConfigFault, ...]]:
    findings = FaultCollector()
    return parse_yaml(text, "file.yaml", findings, pure), findings.faults()


def plain(node: Node | None) -> object:
    match node:
        case Leaf():
            return node.text
        case Items():
            return [plain(item) for item in node.items]
        case Fields():
            return {name: plain(value) for name, value in node.fields.items()}
        case None:
            return None


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None)
@given(text=TEXTS, pure=st.booleans())
@example(text="[" * 5000, pure=False)
@example(text="? " * 5000, pure=True)
@example(text='"\\U00110000"', pure=True)
@example(text="%YAML 1." + "9" * 5000 + "\n---\na", pure=True)
def test_any_text_ends_in_a_value_or_a_fault(text: str, pure: bool) -> None:
    node, faults = parsed(text, pure)
    assert node is not None or faults
    for shape in (CONFIG, WHOLE):
        if node is not None:
            fit(node, shape, FaultCollector())
    for fault in faults:
        assert fault.file == "file.yaml"
        assert 0 <= fault.line <= text.count("\n") + text.count("\r") + text.count("\u2028") + 2
        assert str(fault).isprintable()


@pytest.mark.heavy
@settings(max_examples=scale(150), deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_end_in_a_value_or_a_fault(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(data)
    findings = FaultCollector()
    assert read_yaml_file(file, findings) is not None or findings.faults()


@given(
    st.recursive(
        st.text(
            st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"]), max_size=12
        ),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text("abcxyz", min_size=1, max_size=8), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
@pytest.mark.heavy
@settings(max_examples=scale(100), deadline=None)
def test_what_is_written_is_what_is_read_by_both_parsers(value: object) -> None:
    import yaml

    text = yaml.safe_dump(value, default_style='"', allow_unicode=True)

    for pure in (False, True):
        node, faults = parsed(text, pure)
        assert faults == ()
        assert plain(node) == value


@pytest.mark.parametrize("pure", [False, True])
def test_every_value_knows_its_place(pure: bool) -> None:
    node, _ = parsed("a: b\nc:\n  - d\n  - e: [f,\n        g]\n", pure)
    assert isinstance(node, Fields)
    items = node.fields["c"]
    assert isinstance(items, Items)
    inner = items.items[1]
    assert isinstance(inner, Fields)
    last = inner.fields["e"]
    assert isinstance(last, Items)
    place = last.items[1].place
    assert (place.line, place.column, place.key) == (5, 9, "c[1].e[1]")
    assert (inner.keys["e"].line, inner.keys["e"].key) == (4, "c[1].e")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("true", ScalarKind.YES_OR_NO),
        ("'true'", ScalarKind.TEXT),
        ("yes", ScalarKind.UNSURE),
        ("Off", ScalarKind.UNSURE),
        ("~", ScalarKind.NOTHING),
        ("", ScalarKind.NOTHING),
        ('""', ScalarKind.TEXT),
        ("-12", ScalarKind.WHOLE),
        ("1e3", ScalarKind.NUMBER),
        (".NaN", ScalarKind.NUMBER),
        ("-.inf", ScalarKind.NUMBER),
        ("0x1f", ScalarKind.NUMBER),
        ("2026-11-18", ScalarKind.TEXT),
        ("1:30", ScalarKind.TEXT),
        ("1_000", ScalarKind.TEXT),
        ("nonesuch", ScalarKind.TEXT),
    ],
)
@pytest.mark.parametrize("pure", [False, True])
def test_a_plain_value_means_what_yaml_1_2_says(written: str, meant: ScalarKind, pure: bool) -> None:
    node, _ = parsed(f"a: {written}\n", pure)
    assert isinstance(node, Fields)
    leaf = node.fields["a"]
    assert isinstance(leaf, Leaf)
    assert get_scalar_kind(leaf) is meant


def test_the_two_parsers_find_the_same_lines() -> None:
    for text in ("a: [b\n", "a: b\n c: d\n", 'a: "b\n', "a: b\n\tc: d\n", "- a\nb: c\n"):
        c, python = parsed(text)[1], parsed(text, pure=True)[1]
        assert [fault.line for fault in c] == [fault.line for fault in python], text


def test_files_that_are_none_are_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    for name, says in (
        ("pipe", "not a regular file"),
        ("folder", ""),
        ("loop", "cannot be read"),
        ("gone", "no such file"),
    ):
        findings = FaultCollector()
        assert read_yaml_file(tmp_path / f"{name}.yaml", findings) is None
        assert says in findings.faults()[0].message
        assert findings.faults()[0].line == 0


def test_a_file_may_be_as_large_as_the_limit_and_no_larger(tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_bytes(b"a: b\n#".ljust(LARGEST, b"x"))
    findings = FaultCollector()
    assert read_yaml_file(file, findings) is not None
    file.write_bytes(b"a: b\n#".ljust(LARGEST + 1, b"x"))
    assert read_yaml_file(file, findings) is None
    assert "larger than 256 KB" in findings.faults()[0].message


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "marked.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: b\n")
    assert plain(read_yaml_file(file, FaultCollector())) == {"a": "b"}


def test_many_faults_end_in_one_line_that_says_so() -> None:
    _, faults = parsed("".join(f"{number}: a\n" for number in range(500)))
    assert len(faults) == SHOWN_PER_FILE + 1
    assert "more faults after this line" in faults[-1].message


def test_a_fault_reads_as_one_line_with_its_hint() -> None:
    fault = ConfigFault("menus/swe.yaml", 14, "tools[2]", "there is no tool `gerp`", "grep", 5)
    assert str(fault) == "menus/swe.yaml:14: tools[2]: there is no tool `gerp` (did you mean `grep`?)"
    assert str(ConfigFault("menus", 0, "", "there is no menus folder")) == "menus: there is no menus folder"


def test_names_are_shown_short_and_harmless() -> None:
    assert quote_exactly("a\x1b[31m") == "`a\\u001b[31m`"
    assert len(quote_exactly("x" * 500)) == 62
    assert find_nearest_name("READ_lokal", ["read-local", "read-remote"]) == "read-local"
    assert find_nearest_name("zebra", ["read-local"]) is None
