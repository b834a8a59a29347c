"""A question that a client was given to show: what it says, and the answer, given as fast as the test likes.

A person reads before they type, and menugate counts no answer that comes within a second. So whoever answers as a
person waits here for real; everybody else answers at once.
"""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.clients.clients import MODERN
from tests.clients.pipe import Pipe
from tests.clients.raw import RawClient

FORM: dict[str, Any] = {"elicitation": {"form": {}}}
READING_TAKES = 1.05
CODE = re.compile(r"these four characters: (\w{4})\b")


def code_in(message: str) -> str:
    """The characters that the question wants typed; nothing where it wants none."""
    found = CODE.findall(message)
    return found[-1] if found else ""


def no_call_waits(*_: Any) -> Any:
    raise AssertionError("in this era the question has ended the call")


@dataclass
class FormQuestion:
    """What the client is to show, and the way back."""

    key: str
    params: dict[str, Any]
    answer: Callable[[dict[str, Any]], dict[str, Any]]
    """Send this back, whole as it is; what the request that asked comes to then."""
    late: Callable[[dict[str, Any]], None] = no_call_waits
    """Legacy: send this back, and wait for nothing."""
    wait: Callable[[], dict[str, Any]] = no_call_waits
    """Legacy: what the request that asked comes to without an answer from this client."""
    state: str = ""
    """What a modern client carries back unread."""
    shown: float = field(default_factory=time.monotonic)

    @property
    def code(self) -> str:
        return code_in(self.params["message"])

    def read(self) -> None:
        """As long as a person needs at least."""
        time.sleep(max(0.0, self.shown + READING_TAKES - time.monotonic()))

    def accept(self, **content: Any) -> dict[str, Any]:
        """As a person does who read it; `code` may be given as it was typed."""
        self.read()
        return self.answer({"action": "accept", "content": {"code": self.code, **content}})

    def decline(self) -> dict[str, Any]:
        self.read()
        return self.answer({"action": "decline"})


def question(one: Pipe | RawClient, params: dict[str, Any], method: str = "tools/call") -> FormQuestion:
    """Make a request that is known to end in a question, in the client's own era."""
    if one.era == MODERN:
        return _sealed(one, params, method)
    return _over_http(one, params, method) if isinstance(one, RawClient) else _over_pipe(one, params, method)


def _sealed(one: Pipe | RawClient, params: dict[str, Any], method: str) -> FormQuestion:
    asked = one.request(method, params)["result"]
    assert asked.get("resultType") == "input_required", asked
    ((key, wanted),) = asked["inputRequests"].items()
    assert wanted["method"] == "elicitation/create"

    def answer(reply: dict[str, Any]) -> dict[str, Any]:
        return one.request(method, params | {"inputResponses": {key: reply}, "requestState": asked["requestState"]})

    return FormQuestion(key, wanted["params"], answer, state=asked["requestState"])


def _over_pipe(one: Pipe, params: dict[str, Any], method: str) -> FormQuestion:
    number = one.send(method, params)
    while (wanted := one.message()).get("method") != "elicitation/create":
        assert wanted.get("id") != number, wanted

    def send(reply: dict[str, Any]) -> None:
        whole = reply if "error" in reply else {"result": reply}
        one.raw(json.dumps({"jsonrpc": "2.0", "id": wanted["id"], **whole}).encode() + b"\n")

    return _waiting(wanted, send, lambda: one.until(number)[0])


def _over_http(one: RawClient, params: dict[str, Any], method: str) -> FormQuestion:
    number, stream = one.send(method, params)
    while (wanted := stream.message()).get("method") != "elicitation/create":
        assert wanted.get("id") != number, wanted

    def send(reply: dict[str, Any]) -> None:
        whole = reply if "error" in reply else {"result": reply}
        one.post({"jsonrpc": "2.0", "id": wanted["id"], **whole}).close()

    def wait() -> dict[str, Any]:
        found, _ = stream.until(number)
        stream.close()
        return found

    return _waiting(wanted, send, wait)


def _waiting(
    wanted: dict[str, Any], send: Callable[[dict[str, Any]], None], wait: Callable[[], dict[str, Any]]
) -> FormQuestion:
    def answer(reply: dict[str, Any]) -> dict[str, Any]:
        send(reply)
        return wait()

    return FormQuestion("", wanted["params"], answer, send, wait)
