"""Is this JSON that everybody reads alike? What two parsers would read differently is refused before either does.

Duplicate keys, NaN, other encodings than UTF-8 and endless depth all parse in some parser; a filter in front of us that
reads the first of two keys would let through what we then read as the second.
"""

import json
from typing import Any, NoReturn, cast

LONGEST_ID = 128


class NotStrict(Exception):
    """Why the text is refused, in words for whoever sent it, and the request's id where one could be made out."""

    def __init__(self, reason: str, request_id: str | int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.request_id = request_id


def parse(body: bytes) -> Any:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise NotStrict("the message is not UTF-8") from None
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except NotStrict as refused:
        raise NotStrict(refused.reason, _id(text)) from None
    except RecursionError:
        raise NotStrict("the message is nested too deeply") from None
    except ValueError:
        raise NotStrict("the message is not JSON") from None
    if isinstance(value, dict) and len(str(cast(dict[str, Any], value).get("id", ""))) > LONGEST_ID:
        raise NotStrict(f"the id is longer than {LONGEST_ID} characters")
    return cast(Any, value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise NotStrict(f"the key `{twice[:40]}` appears twice in one object")
    return value


def _constant(name: str) -> NoReturn:
    raise NotStrict(f"`{name}` is not JSON")


def _id(text: str) -> str | int | None:
    """The id of a message that parses loosely, so that its sender does not wait for an answer for ever."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = cast(dict[str, Any], value).get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str | int) and len(str(found)) <= LONGEST_ID else None
