"""Is this one JSON-RPC message that all parsers read alike? If two parsers would differ, it is refused before either
reads it.

Duplicate keys, NaN, encodings other than UTF-8 and endless depth all parse in some parser. A filter in front of us that
reads the first of two keys would let through what we then read as the second. A message with an unusable id is taken
for a notification by some, and its sender waits for ever.
"""

import json
import re
from collections import Counter
from typing import Any, NoReturn, cast

from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError

LONGEST_ID = 128
DEEPEST = 190
"""Levels. Far more than arguments may have, so that a model that nests too deep hears it from its tool."""

HALF = re.compile(rb"\\u[dD][89a-fA-F]")


class NotStrict(Exception):
    """Why the text is refused, in words for its sender, and the request's id if one could be made out.

    `answers`: the id of the question it seems to answer. Without it, the asker would wait for ever for another answer.
    """

    def __init__(
        self,
        reason: str,
        request_id: str | int | None = None,
        code: int = PARSE_ERROR,
        answers: str | int | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.request_id = request_id
        self.code = code
        self.answers = answers


def parse_message(body: bytes, whole: bool = False) -> dict[str, Any]:
    """Return a request, a notification or an answer, in the protocol's one shape.

    `whole`: the message goes on to a parser that fails on half a surrogate pair. Otherwise the tool handles such a
    string."""
    value = _parse_body(body)
    if not isinstance(value, dict):
        raise NotStrict("a message is one JSON-RPC object; batches are not supported", code=INVALID_REQUEST)
    found = cast(dict[str, Any], value)
    if fault := _describe_fault(found):
        answer = "method" not in found and ("result" in found or "error" in found)
        id = _to_usable_id(found.get("id"))
        raise NotStrict(fault, None if answer else id, INVALID_REQUEST, None if "method" in found else id)
    if whole and HALF.search(body) and _has_half_surrogate(json.dumps(found, ensure_ascii=False)):
        raise _make_unread_error("a string contains half of a surrogate pair, which is not a character", found)
    return found


def make_no_answer(question: str | int) -> JSONRPCError:
    """Build an error in place of an unreadable answer, for the caller that asked the question and is waiting."""
    error = ErrorData(code=INVALID_REQUEST, message="this was not a valid answer")
    return JSONRPCError(jsonrpc="2.0", id=question, error=error)


def _describe_fault(found: dict[str, Any]) -> str | None:
    params = found.get("params")
    if found.get("jsonrpc") != "2.0":
        return '`jsonrpc` must be "2.0"'
    if "id" in found and _to_usable_id(found["id"]) is None and (found["id"] is not None or "error" not in found):
        return f"an id must be a whole number or a string of at most {LONGEST_ID} characters"
    if "method" in found:
        if not isinstance(found["method"], str) or _has_half_surrogate(found["method"]):
            return "`method` must be a string"
        return None if params is None or isinstance(params, dict) else "`params` must be an object"
    if isinstance(found.get("result"), dict) or _is_error(found.get("error")):
        return None if "id" in found else "an answer needs the id of its request"
    return "this is neither a request nor an answer"


def _is_error(error: Any) -> bool:
    if not isinstance(error, dict):
        return False
    told = cast(dict[str, Any], error)
    return type(told.get("code")) is int and isinstance(told.get("message"), str)


def _to_usable_id(found: Any) -> str | int | None:
    if type(found) is int:
        return found if -(10**LONGEST_ID) < found < 10**LONGEST_ID else None
    return found if isinstance(found, str) and len(found) <= LONGEST_ID and not _has_half_surrogate(found) else None


def _has_half_surrogate(text: str) -> bool:
    """Half a surrogate pair is not text, and could not be sent back."""
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def _parse_body(body: bytes) -> Any:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise NotStrict("the message is not UTF-8") from None
    try:
        value = DECODER.decode(text)
    except NotStrict as refused:
        raise _make_unread_error(refused.reason, _parse_loosely(text)) from None
    except RecursionError:
        raise _make_depth_error() from None
    except ValueError:
        raise _make_unread_error("the message is not JSON", _parse_loosely(text)) from None
    # Counting brackets is quick and nearly always enough.
    if text.count("{") + text.count("[") > DEEPEST and _measure_depth(value) > DEEPEST:
        raise _make_depth_error()
    return value


def _make_depth_error() -> NotStrict:
    return NotStrict(f"the message is nested more than {DEEPEST} levels deep")


def _measure_depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [one for inner in level for one in _get_children(inner)]:
        depth += 1
    return depth


def _get_children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast(dict[str, Any], value).values())
    return cast(list[Any], value) if isinstance(value, list) else []


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        # Counted in one pass: a body has room for hundreds of thousands of keys.
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise NotStrict(f"the key `{twice[:40]}` appears twice in one object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise NotStrict(f"`{name}` is not JSON")


def _parse_float(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise NotStrict(f"`{digits[:40]}` is too large a number: parsers would read it differently")
    return number


def _make_unread_error(reason: str, found: dict[str, Any]) -> NotStrict:
    id = _to_usable_id(found.get("id"))
    return NotStrict(reason, id, answers=None if "method" in found else id)


def _parse_loosely(text: str) -> dict[str, Any]:
    """Parse a message loosely, so that neither its sender nor the caller it answers waits for ever."""
    try:
        value = json.loads(text, parse_int=_parse_small_int)
    except (ValueError, RecursionError):
        return {}
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _parse_small_int(digits: str) -> int | None:
    return int(digits) if len(digits) <= LONGEST_ID else None


DECODER = json.JSONDecoder(object_pairs_hook=_build_object, parse_constant=_refuse_constant, parse_float=_parse_float)
