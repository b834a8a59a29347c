"""Is a variable taken for set only where the line has surely set it?"""

import pytest

from tools.shell.line_steps import StepRole, list_steps
from tools.shell.lines import read_line
from tools.shell.verdicts import NeedsApproval


def find_sure(line: str) -> set[str]:
    """What is sure where the line runs `use`."""
    read = read_line(line)
    assert read
    return set(next(step.sure for step in list_steps(read) if step.words and step.words[0].text == "use"))


@pytest.mark.parametrize(
    "line",
    [
        "x=3; use",
        "x=3 && use",
        "a && x=3 && use",
        "{ x=3; }; use",
        "if a; then x=1; else x=2; fi; use",
        "if x=3; then use; fi",
        "for x in 1 2; do use; done",
        "for ((x=0; x<3; x++)); do use; done",
        "while x=3; a; do use; done",
        "x=3; (use)",
        "x=3; a | use",
        "((x = 3)); use",
        "x=(1 2); use",
        "declare x=3; use",
        "f() { local x=3; use; }",
        "case a in b) x=3; use;; esac",
        "x=3; a &\nuse",
    ],
)
def test_it_has(line: str) -> None:
    assert "x" in find_sure(line)


@pytest.mark.parametrize(
    "line",
    [
        "use; x=3",
        "a && x=3; use",
        "a || x=3; use",
        "a || x=3 && use",
        "a && x=3 || use",
        "(x=3); use",
        "x=3 & use",
        "x=3 | a; use",
        "a | x=3; use",
        "a |\nx=3\nuse",
        "a | { x=3; }; use",
        "{ a && x=3; }; use",
        "{ a && { x=3; }; }\nuse",
        "if a; then x=3; fi; use",
        "if a; then x=3; elif b; then c; else x=3; fi; use",
        "for y in 1; do x=3; done; use",
        "for x in $(a); do b; done; use",
        "while a; do x=3; done; use",
        "case a in b) x=3;; esac; use",
        "case a in b) x=3;; c) use;; esac",
        "f() { x=3; }; use",
        "f() { x=3; }; f; use",
        "x=3 a; use",
        "x+=3; use",
        "local x=3; use",
        "((a && (x = 3))); use",
    ],
)
def test_it_may_not_have(line: str) -> None:
    assert "x" not in find_sure(line)


def test_a_function_is_sure_behind_its_definition_and_within() -> None:
    assert "f()" in find_sure("f() { a; }; use")
    assert "f()" in find_sure("f() { use; }")
    assert "f()" in find_sure("function f { a; }; use")
    assert "f()" not in find_sure("false && f() { a; }; use")
    assert "f()" not in find_sure("(f() { a; }); use")


@pytest.mark.parametrize(
    "line",
    [
        "case x in esac; rm y",
        "f() (ls)",
        "select x in a; do ls; done",
        "a=([0]=x)",
    ],
)
def test_other_blocks_are_not_judged(line: str) -> None:
    read = read_line(line)
    assert read
    with pytest.raises(NeedsApproval):
        list_steps(read)


def test_patterns_and_elements_do_not_run_but_what_stands_behind_them_does() -> None:
    read = read_line("case x in rm|cp) ls;; esac; a=(mv); f() { pwd; }; touch b")
    assert read
    steps = list_steps(read)
    assert [step.words[0].text for step in steps if step.kind is StepRole.RUNS] == ["ls", "a=", "pwd", "touch"]


@pytest.mark.parametrize(
    ("line", "wanders"),
    [
        ("while a; do use; cd x; done", True),
        ("f() { use; }; cd x; f", True),
        ("f() { use; cd x; }", True),
        ("while a; do use; (cd x); done", False),
        ("cd x; while a; do use; done", False),
    ],
)
def test_a_block_that_may_run_in_another_folder_is_marked(line: str, wanders: bool) -> None:
    read = read_line(line)
    assert read
    assert any(step.wanders for step in list_steps(read) if step.words and step.words[0].text == "use") is wanders
