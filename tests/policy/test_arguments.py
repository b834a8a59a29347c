"""Do arguments fit, is the caller told all that is wrong, and does a tool see whole numbers where it wants them?"""

import threading
from collections.abc import Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.model.tools import Arguments
from mcp_server.policy import arguments as rules
from mcp_server.policy.arguments import build_argument_check, build_argument_cleaner, normalize_arguments
from tests.policy.world import spoken, table, tools
from tests.sizes import scale
from tools.git.definitions import STATUS

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "kind": {"type": "string", "enum": ["web", "news"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "options": {
            "type": "object",
            "properties": {
                "depth": {"type": "number"},
                "deep": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            },
            "additionalProperties": False,
        },
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def unfit(arguments: Any, schema: Mapping[str, Any] = SCHEMA) -> str | None:
    return build_argument_check({"t": replace(tools()["Read"], name="t", arguments=schema)})("t", arguments)


@pytest.mark.parametrize("case", table("arguments"), ids=lambda case: spoken(case["given"]))
def test_reviewed_cases(case: Mapping[str, Any]) -> None:
    got = unfit(case["given"])
    if case["says"] is None:
        assert got is None
    else:
        assert case["says"] in (got or "")


@pytest.mark.parametrize("case", table("argument_words"), ids=lambda case: spoken(case["schema"])[:80])
def test_every_keyword_of_a_schema_has_its_words(case: Mapping[str, Any]) -> None:
    assert unfit(case["given"], case["schema"]) == case["says"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("x" * 12_345, "`a` must be true or false, but is a string of 12,345 characters."),
        (dict.fromkeys(map(str, range(1200))), "`a` must be true or false, but is an object of 1,200."),
        ([0] * 1001, "`a` must be true or false, but is a list of 1,001."),
    ],
)
def test_what_is_long_is_counted(value: Any, says: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}}
    assert unfit({"a": value}, schema) == f"{says} It takes: a?: boolean."


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"a": {"b": [1, float("nan")]}}, "`a.b[1]` is NaN or infinity, which JSON does not have."),
        ({"a": {"b": {1: 2}}}, "`a.b` has a key that is not a string."),
        ({1: 2}, "the arguments object has a key that is not a string."),
        ({"a": [{"b": (1,)}]}, "`a[0].b` is not a JSON value."),
        ({"a": ["x", "\ud800"]}, "`a[1]` contains half of a surrogate pair, which is not a character."),
        ({"a": "\ud7ff\ue000"}, None),
        ({"a": [2**63]}, "`a[0]` is too large a number."),
        ({"a": -1e308}, "`a` is too large a number."),
        ({"a": 2**63 - 1, "b": float("-inf")}, "`b` is NaN or infinity, which JSON does not have."),
        ({"a": float("-inf")}, "`a` is NaN or infinity, which JSON does not have."),
        ({"a": float("nan"), "b": [1, [2]], "c": {"d": [3]}}, "`a` is NaN or infinity, which JSON does not have."),
        ({"a": [float("nan")], "b": [1]}, "`a[0]` is NaN or infinity, which JSON does not have."),
        ({"a": True, "b": None, "c": 1, "d": 1.5, "e": "é", "f": [], "g": {}}, None),
    ],
)
def test_what_no_schema_can_be_asked_about(given: Any, says: str | None) -> None:
    assert unfit(given, {"type": "object"}) == says


def test_each_tool_is_checked_by_its_own_schema_compiled_once() -> None:
    one, other = ({"type": "object", "required": [name]} for name in ("a", "b"))
    check = build_argument_check(
        {name: replace(tools()["Read"], name=name, arguments=s) for name, s in (("x", one), ("y", other))}
    )
    for _ in range(2):
        assert check("x", {"a": 1}) is None
        assert check("y", {"a": 1}) == "`b` is missing. It takes no arguments."


def test_a_schema_is_read_as_the_2020_edition() -> None:
    pair = {"type": "object", "properties": {"a": {"prefixItems": [{"type": "string"}]}}}
    assert unfit({"a": ["x"]}, pair) is None
    assert unfit({"a": [1]}, pair) == "`a[0]` must be a string, but is the number 1. It takes: a?."


def test_a_long_value_is_not_repeated() -> None:
    got = unfit({"path": "a", "limit": "hunter2 " * 10})
    assert got
    assert "hunter2" not in got
    assert "a string of 80 characters" in got


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_has_a_bound() -> None:
    open_schema = {"type": "object"}
    assert unfit({"a": nested(63)}, open_schema) is None
    assert "64 levels" in (unfit({"a": nested(64)}, open_schema) or "")
    assert "64 levels" in (unfit({"a": nested(100_000)}, open_schema) or "")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({1: 2}, "a key that is not a string"),
        ({"\ud800": 2}, "a key that is not a string"),
        ("\udfff", "half of a surrogate pair"),
        ("\udc00", "half of a surrogate pair"),
        ((1, 2), "not a JSON value"),
        (b"x", "not a JSON value"),
        ({1}, "not a JSON value"),
    ],
)
def test_what_is_no_json_is_refused(value: Any, says: str) -> None:
    assert says in (unfit({"a": value}, {"type": "object"}) or "")


def test_any_mapping_will_do() -> None:
    assert unfit(MappingProxyType({"path": "a"})) is None


def test_a_reference_to_elsewhere_reaches_nobody() -> None:
    """Not even a server that is there and would answer."""
    asked: list[str] = []

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(Exception, match=r"(?i)offline|retriev|network|resol|refer"):
            unfit({"path": "a"}, {"$ref": f"http://127.0.0.1:{server.server_port}/schema.json"})
        server.shutdown()
    assert asked == []


def test_a_schema_is_compiled_once_and_only_when_its_tool_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    plain = rules._compile  # pyright: ignore[reportPrivateUsage]  # counted, not replaced

    def counted(schema: Mapping[str, Any]) -> Any:
        compiled.append(schema)
        return plain(schema)

    monkeypatch.setattr(rules, "_compile", counted)
    check = build_argument_check({name: replace(tools()["Read"], name=name) for name in ("x", "y")})
    assert compiled == []
    for _ in range(3):
        check("x", {"file_path": "a"})
    assert len(compiled) == 1
    check("y", {"file_path": "a"})
    assert len(compiled) == 2


def test_references_to_elsewhere_are_never_fetched() -> None:
    with pytest.raises(Exception, match=r"(?i)offline|retriev|network|resol|refer"):
        unfit({"path": "a"}, {"$ref": "http://127.0.0.1:9/schema.json"})


@pytest.mark.parametrize(
    ("schema", "given", "wanted"),
    [
        ({"type": "integer"}, 3.0, 3),
        ({"type": "integer"}, 3.5, 3.5),
        ({"type": "integer"}, 3, 3),
        ({"type": "integer"}, True, True),
        ({"type": "number"}, 3.0, 3.0),
        ({}, 3.0, 3.0),
        ({"type": ["integer", "null"]}, 3.0, 3),
        ({"type": ["integer", "number"]}, 3.0, 3.0),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 3.0, 3),
        ({"type": "array", "items": {"type": "integer"}}, [1.0, 2], [1, 2]),
        ({"additionalProperties": {"type": "integer"}}, {"x": 1.0}, {"x": 1}),
        ({"properties": {"a": {"properties": {"b": {"type": "integer"}}}}}, {"a": {"b": -0.0}}, {"a": {"b": 0}}),
        ({"anyOf": [{"properties": {"a": {"type": "integer"}}}]}, {"a": 1e3}, {"a": 1000}),
        ({"type": "integer"}, "3.0", "3.0"),
        ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, 3.0, 3),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, 3.0, 3),
        ({"anyOf": [{"items": {"type": "integer"}}, {"items": {"type": "null"}}]}, [3.0], [3]),
        ({"anyOf": [{"items": {"type": "integer"}}, {"items": {"type": "number"}}]}, [3.0], [3.0]),
        ({"properties": {"a": {"type": "integer"}}, "additionalProperties": True}, {"b": 3.0}, {"b": 3.0}),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 3.0}, {"b": 3.0}),
        ({"items": False}, [3.0], [3.0]),
    ],
)
def test_whole_numbers_reach_a_tool_as_whole_numbers(schema: Any, given: Any, wanted: Any) -> None:
    got = normalize_arguments(schema, given)
    assert got == wanted
    assert repr(got) == repr(wanted)


def test_what_needs_no_change_is_given_back_as_it_is() -> None:
    arguments = {"path": "a", "tags": ["b"], "options": {"depth": 1.0}, "limit": 3}
    assert normalize_arguments(SCHEMA, arguments) is arguments
    changed = normalize_arguments(SCHEMA, arguments | {"limit": 3.0})
    assert changed["options"] is arguments["options"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(sorted(SCHEMA["properties"])) | st.text(max_size=8)


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None, derandomize=True)
@given(st.dictionaries(KEYS, JSON, max_size=5))
def test_any_arguments_fit_or_are_told_why_in_one_short_message(arguments: Arguments) -> None:
    got = unfit(arguments)
    if got is None:
        again = normalize_arguments(SCHEMA, arguments)
        assert again == arguments
        assert not isinstance(again.get("limit"), float)
    else:
        assert len(got) < 2_000
        assert got.endswith(".")


NESTED = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "glob": {"type": "string", "minLength": 1},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "count": {"type": "integer"},
        "either": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
        "anything": {},
        "free": {"type": "object"},
        "list": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"type": {"type": "string", "minLength": 1}, "more": {"type": "string", "minLength": 1}},
                "required": ["type"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"name": None, "glob": None}, {"name": None}),
        ({"name": "", "glob": "", "kind": "", "count": "", "list": ""}, {"name": ""}),
        ({"name": "x", "glob": " "}, {"name": "x", "glob": " "}),
        ({"either": None}, {"either": None}),
        ({"either": ""}, {}),
        ({"anything": ""}, {"anything": ""}),
        ({"anything": None}, {}),
        ({"free": {"a": None, "b": ""}}, {"free": {"a": None, "b": ""}}),
        ({"list": [{"type": "", "more": ""}, None]}, {"list": [{"type": ""}, None]}),
        ({"unknown": None}, {}),
        ({"unknown": ""}, {"unknown": ""}),
    ],
)
def test_what_says_nothing_is_left_out_and_only_that(sent: dict[str, Any], meant: dict[str, Any]) -> None:
    tools = {"ours": replace(STATUS, name="ours", arguments=NESTED)}
    said = build_argument_cleaner(tools)
    assert said("ours", sent) == meant
    assert said("ours", meant) == meant
    assert said("theirs", sent) is sent, "what others made may tell null from nothing"
