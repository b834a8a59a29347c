"""Is everything that a server may print read safely: whole lines, halves, floods, and what is no message at all?"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.upstreams import messages
from mcp_server.upstreams.messages import BrokenMessage, LineSplitter, LinkClosed, encode_message, parse_messages

LINES = st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=6)


@given(LINES, st.integers(1, 7))
def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes], size: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    found = [line for start in range(0, len(data), size) for line in splitter.feed(data[start : start + size])]
    assert found == lines


@pytest.mark.parametrize("place", ["before", "after", "nowhere"])
def test_a_line_that_is_too_long_is_dropped_and_its_request_answered(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(messages, "MAX_MESSAGE_BYTES", 10_000)
    before = b'"id":7,' if place == "before" else b""
    after = b',"id":7' if place == "after" else b""
    line = b"{" + before + b'"result":{"text":"' + b"x" * 30_000 + b'"}' + after + b"}\n"
    splitter = LineSplitter()
    pieces = [line[start : start + 999] for start in range(0, len(line), 999)]
    kept = 0
    found: list[bytes | BrokenMessage] = []
    for piece in pieces:
        found += splitter.feed(piece)
        kept = max(kept, len(splitter._rest))  # pyright: ignore[reportPrivateUsage]  # what it holds in memory
    (broken,) = found
    assert isinstance(broken, BrokenMessage)
    assert broken.answers == (None if place == "nowhere" else 7)
    assert kept <= 11_000
    assert list(splitter.feed(b'{"next":1}\n')) == [b'{"next":1}']


def test_a_line_without_end_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_MESSAGE_BYTES", 1000)
    monkeypatch.setattr(messages, "MAX_LINE_BYTES", 4000)
    splitter = LineSplitter()
    with pytest.raises(LinkClosed, match="without a newline"):
        for _ in range(10):
            list(splitter.feed(b"x" * 600))


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"{]",
        b"1",
        b'"text"',
        b"null",
        b'{"a":NaN}',
        b"[1]",
        b"[" * 100_000,
        b'{"a":' * 500 + b"1" + b"}" * 500,
    ],
)
def test_what_is_no_message_is_said_to_be_none(line: bytes) -> None:
    (found,) = parse_messages(line)
    assert isinstance(found, BrokenMessage)


def test_bad_utf8_is_replaced() -> None:
    (found,) = parse_messages(b'{"id":1,"result":{"text":"a\xffb"}}')
    assert found == {"id": 1, "result": {"text": "a\ufffdb"}}


def test_a_batch_is_read_one_by_one() -> None:
    assert list(parse_messages(b'[{"a":1},{"b":2}]')) == [{"a": 1}, {"b": 2}]


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_what_is_sent_is_one_line_of_json(message: dict[str, Any]) -> None:
    sent = encode_message(message)
    assert sent.count(b"\n") == 1 and json.loads(sent) == message


def test_half_a_surrogate_pair_can_be_sent() -> None:
    assert json.loads(encode_message({"a": "\ud800"})) == {"a": "\ud800"}
