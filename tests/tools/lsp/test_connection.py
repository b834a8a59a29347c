"""Are messages cut where they end, whatever pieces they come in, and nothing believed that is no message?"""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.lsp.connection import MAX_BODY_BYTES, MAX_HEAD_BYTES, BrokenFrame, FrameReader, frame_message

MESSAGES = st.lists(st.dictionaries(st.text(), st.none() | st.integers() | st.text(), max_size=4), max_size=5)


@given(MESSAGES, st.lists(st.integers(1, 40), min_size=1))
def test_messages_come_out_as_they_went_in_whatever_the_pieces(messages: list[Any], sizes: list[int]) -> None:
    stream = b"".join(frame_message(message) for message in messages)
    frames, found, at, turn = FrameReader(), list[Any](), 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found += frames.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert found == messages


def test_half_a_character_is_still_sent() -> None:
    head, _, body = frame_message({"text": "a\udc80"}).partition(b"\r\n\r\n")
    assert head == b"Content-Length: %d" % len(body)
    assert json.loads(body) == {"text": "a\udc80"}


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"Content-Length: 1000000000\r\n\r\n", "over the limit of 33,554,432"),
        (b"Content-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), "bytes"),
        (b"Content-Length: 99999999999999999999\r\n\r\n", "without a readable length"),
        (b"Content-Length: -1\r\n\r\n", "without a readable length"),
        (b"Content-Length: 1_0\r\n\r\n", "without a readable length"),
        (b"Content-Length: \r\n\r\n", "without a readable length"),
        (b"Content-Type: x\r\n\r\n{}", "without its length"),
        (b"x" * (MAX_HEAD_BYTES + 1), "head of more than"),
        (b"Content-Length: 3\r\n\r\n{]}", "not JSON"),
        (b"Content-Length: 2\r\n\r\n\xff\xfe", "not JSON"),
        (b"Content-Length: 2\r\n\r\n[]", "not a JSON object"),
        (b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_message_is_not_waited_for(sent: bytes, why: str) -> None:
    with pytest.raises(BrokenFrame, match=re.escape(why)):
        list(FrameReader().feed(sent))


def test_the_largest_message_that_is_taken_is_taken() -> None:
    body = b'{"a":"' + b"x" * (MAX_BODY_BYTES - 8) + b'"}'
    (message,) = FrameReader().feed(b"content-length:%d\r\n\r\n" % len(body) + body)
    assert len(message["a"]) == MAX_BODY_BYTES - 8
