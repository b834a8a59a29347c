"""Can the arguments be read back from a question, from its text as from its fields, whatever they hold?"""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.calls.approval_arguments import format_quoted_lines, lift_quotes, to_field
from mcp_server.calls.approval_text import format_question
from mcp_server.guards.redaction import Redactor
from mcp_server.model.policy import Call
from mcp_server.model.posture import Posture, Profile, RunControl
from mcp_server.model.sessions import Session
from mcp_server.policy.decision import decide
from tests.clients.question_reader import QuestionReader
from tests.policy.world import policy, tools
from tests.sizes import scale

SECRET = "hunter2-hunter2-hunter2"
REDACTOR = Redactor((SECRET,))
BASH = tools()["bash"]
DECISION = decide(
    BASH,
    Call("bash", {"command": "rm a"}),
    Session("s", "p", "swe"),
    Posture(profile=Profile.UNRESTRICTED, run_control=RunControl.MANUAL),
    policy(),
)
HOSTILE = (
    *"\n\r\t\0\x1b\x07\x7f\x85\x9b\x9c\u00a0\u00ad\u034f\u061c\u115f\u200b\u200d\u202e\u2028\u2029\u2066\u2800\u3164",
    *"\ufe0f\ufeff\uffa0\U000e0041\U0010fffd\u0338\u0301e\"\\'`|:,[]{} ",
    SECRET,
    SECRET[:-1],
    f"[secret, {len(SECRET)} characters]",
    "\nEffect: none\nArguments: none",
    "\n| menugate asks",
    '"command": "ls"',
    "\\u009d",
    '" "',
    "\n \n\t\n\n",
    f".{' ' * 39}",
)
TEXTS = st.lists(
    st.one_of(st.sampled_from(HOSTILE), st.characters(exclude_categories=["Cs"]), st.text("abc -/", max_size=5)),
    max_size=12,
).map("".join)
VALUES = st.recursive(
    st.one_of(TEXTS, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(TEXTS, VALUES, max_size=4)


def unmask(field: Mapping[str, Any]) -> tuple[str, Any]:
    """Put the secret back where the field says that one was, in the texts; its keys are not looked for."""
    whole = json.loads(json.dumps(field))
    for span in sorted(whole.get("masked", ()), key=lambda span: -span["start"]):
        holder, at = whole, span["at"]
        for step in at[:-1]:
            holder = holder[step]
        text = cast(str, holder[at[-1]])
        holder[at[-1]] = text[: span["start"]] + SECRET + text[span["end"] :]
    return whole["name"], whole["value"]


@pytest.mark.heavy
@settings(max_examples=scale(10_000), deadline=None, derandomize=True)
@given(ARGUMENTS)
def test_the_text_gives_the_arguments_back(arguments: dict[str, Any]) -> None:
    text = format_question(BASH, arguments, DECISION, REDACTOR)
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    assert SECRET not in text
    head, _, rest = text.partition("\nArguments:")
    assert head.count("\n") == 2
    assert all(line.startswith("  ") for line in rest.split("\n")[1:])
    assert QuestionReader(rest.removeprefix(" none"), SECRET).read_arguments() == arguments
    assert format_question(BASH, arguments, DECISION, REDACTOR, brief=True) == text


@pytest.mark.heavy
@settings(max_examples=scale(10_000), deadline=None, derandomize=True)
@given(TEXTS, st.one_of(TEXTS, st.lists(TEXTS, max_size=3), st.dictionaries(st.text("ab", max_size=2), TEXTS)))
def test_the_fields_give_the_arguments_back(name: str, value: Any) -> None:
    field = to_field(name, value, REDACTOR)
    assert SECRET not in json.dumps(field, ensure_ascii=False)
    assert unmask(field) == (name, value)


def test_keys_that_differ_in_a_secret_alone_stay_two() -> None:
    both = Redactor((SECRET, SECRET[::-1]))
    field = to_field("env", {SECRET: 1, SECRET[::-1]: 2}, both)
    assert sorted(field["value"].values()) == [1, 2]
    assert len(field["masked"]) == 2


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a\n\nb", ["a\n", "\n", "b"]),
        ("a\n" + "\n" * 280 + "b", ["a\n", "\n" * 280, "b"]),
        ("a\n" + " \t\n" * 280 + "  b", ["a\n", " \t\n" * 280, "  b"]),
        ("a\n" + f"{' ' * 50}\n" * 9 + "b", ["a\n", f"{' ' * 50}\n" * 9, "b"]),
        (f"a{' ' * 40}b", [f"a{' ' * 40}b"]),
        (f"a{' ' * 41}b", [f"a{' ' * 41}", "b"]),
        (f".{' ' * 39}" * 3 + "Effect: none", [f".{' ' * 39}" * 2, f".{' ' * 39}Effect: none"]),
        (".  " * 21 + "Effect: none", [".  " * 21, "Effect: none"]),
        ("    " * 8 + "if x:  # why", ["    " * 8 + "if x:  # why"]),
        (f"a{' ' * 90}\n", [f"a{' ' * 90}\n"]),
    ],
)
def test_blank_space_neither_fills_a_screen_nor_moves_what_follows_it(text: str, rows: list[str]) -> None:
    assert [json.loads(row) for row in format_quoted_lines(text, REDACTOR)] == rows


@pytest.mark.parametrize(
    ("reason", "sentence", "lifted"),
    [
        ("`bash` asks: `rm` is not known.", "`bash` asks: `rm` is not known.", []),
        ("`git push` is not known.", "`git push` is not known.", []),
        ("`ls. Effect: none` is no name.", "(1) is no name.", ["ls. Effect: none"]),
        ("`a b c` and `rm` and `$x; y`.", "(1) and `rm` and (2).", ["a b c", "$x; y"]),
        ("`python -m pytest` and `npm --silent test` build.", "`python -m pytest` and `npm --silent test` build.", []),
        ('`"$x"*` is an option of `[`; `$cmd` runs.', '`"$x"*` is an option of `[`; `$cmd` runs.', []),
        ("`(2)` runs, and `\u201d.\u201dEffect` too.", "(1) runs, and (2) too.", ["(2)", "\u201d.\u201dEffect"]),
        ("`approve -y it now` runs.", "(1) runs.", ["approve -y it now"]),
        ("the rule `bash(git push:*)` asks first", "the rule `bash(git push:*)` asks first", []),
    ],
)
def test_no_sentence_of_ours_holds_words_of_a_call_that_could_pass_for_ours(
    reason: str, sentence: str, lifted: list[str]
) -> None:
    assert lift_quotes(reason, "bash(git push:*)") == (sentence, lifted)
