"""Whatever comes in over stdio: every request is answered once, and the server goes on."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_server.model.menus import CARRIERS, META_TOOLS
from tests.clients.pipe import META, Pipe
from tests.sizes import scale
from tests.wire.test_jsonrpc import INSIDES

METHODS = (
    *("ping", "initialize", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get"),
    *("resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "logging/setLevel"),
    *("completion/complete", "notifications/cancelled", "notifications/initialized", "nothing", ""),
)
NAMES = (*META_TOOLS, *CARRIERS, "Read", "Write", "grep", "glob", "fs_list_directory", "fs_delete", "nothing")
WORDS = ("name", "arguments", "mode", "menu", "tool", "content", "uri", "cursor", "level", "ref", "_meta", "path")
texts = st.text(st.characters(exclude_categories=()), max_size=12) | st.sampled_from((*NAMES, "swe", "data", "ROOT"))
numbers = st.integers() | st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(10**40), 10**40)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | texts, inner, max_size=4),
    max_leaves=12,
)
bags = st.dictionaries(st.sampled_from(WORDS) | texts, values, max_size=4)
calls = st.fixed_dictionaries({"name": st.sampled_from(NAMES), "arguments": bags})
envelopes = st.dictionaries(
    st.sampled_from(("jsonrpc", "id", "method", "params", "result", "error")),
    st.just("2.0") | st.sampled_from(METHODS) | st.integers(0, 9) | bags | values,
    max_size=6,
)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """Nearly a message: some bytes of it are missing, or others than they were."""
    data = json.dumps(draw(envelopes | bags | values)).encode()
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(len(data), start + 8)))
    return data[:start] + draw(st.binary(max_size=6)) + data[end:]


def speakable(value: Any) -> bool:
    return "NaN" not in (text := json.dumps(value)) and "Infinity" not in text


lines = st.lists(
    spoiled() | st.binary(max_size=40) | st.tuples(st.sampled_from(METHODS), bags | calls), min_size=1, max_size=10
)


@pytest.mark.heavy
@settings(
    max_examples=scale(400),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(lines=lines)
def test_every_request_gets_one_answer(line: Pipe, lines: list[bytes | tuple[str, dict[str, Any]]]) -> None:
    asked: list[str] = []
    for number, one in enumerate(lines):
        if isinstance(one, bytes):
            line.raw(one.replace(b"\n", b" ") + b"\n")
            continue
        method, params = one
        if line.era != "legacy":
            params = params | {"_meta": META}
        message = {"jsonrpc": "2.0", "id": f"q{number}", "method": method, "params": params}
        if speakable(message):
            asked.append(f"q{number}")
            line.raw(json.dumps(message).encode() + b"\n")
    last = line.send("tools/call", {"name": "think", "arguments": {"content": "still there?"}})
    answer, heard = line.until(last)
    assert answer["result"]["isError"] is False
    while set(asked) - {message.get("id") for message in heard}:
        heard.append(line.message())
    answers = [message for message in heard if "method" not in message]
    assert sorted(message["id"] for message in answers if message["id"] in asked) == sorted(asked)
    assert len(answers) <= len(lines)
    for message in answers:
        if "error" in message:
            assert not INSIDES.search(message["error"]["message"]), message
            assert message["error"]["code"] in (-32700, -32600, -32601, -32602, -32022), message
        elif message["result"].get("isError"):
            assert "INTERNAL" not in message["result"]["content"][0]["text"], message
