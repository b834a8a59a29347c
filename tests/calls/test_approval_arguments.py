"""Can the arguments be read back from a question, from its text as from its fields, whatever they hold?"""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.calls.approval_arguments import to_field
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
