"""What must the user do in a browser before a server takes a call? Servers of the older revisions refuse the call and
name the addresses; when the user has been there, the same call is made again."""

from collections.abc import Mapping
from typing import Any, cast

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_one_line
from mcp_server.upstreams.peer import UpstreamError
from mcp_server.upstreams.questions import ELICIT, MAX_QUESTIONS, Round, WireQuestion

URL_REQUIRED = -32042
FINISH_SECONDS = 60.0
"""For the server to say that the user is done there, after they agreed to go."""
MAX_URL_CHARS = 2_000


def read_visit(error: UpstreamError) -> Round | None:
    """Read which addresses the user must go to; None if the error is of another kind."""
    data: Any = error.data
    listed: Any = cast(dict[str, Any], data).get("elicitations") if isinstance(data, dict) else None
    if error.code != URL_REQUIRED or not isinstance(listed, list):
        return None
    questions: dict[str, WireQuestion] = {}
    for number, one in enumerate(cast(list[Any], listed)[:MAX_QUESTIONS]):
        params = cast(dict[str, Any], one) if isinstance(one, dict) else {}
        if isinstance(url := params.get("url"), str) and len(url) <= MAX_URL_CHARS:
            questions[str(number)] = (ELICIT, {**params, "mode": "url", "message": str(params.get("message", ""))})
    return Round(questions, refused=True) if questions else None


def list_addresses(visit: Round) -> list[str]:
    return [str(params["url"]) for _, params in visit.questions.values()]


def build_unseen_refusal(server: str, visit: Round) -> Refusal:
    """The client cannot ask the user to open an address."""
    addresses = ", ".join(to_one_line(one, MAX_URL_CHARS) for one in list_addresses(visit))
    message = (
        f"The server `{server}` wants the user to open an address first, which this client cannot ask: {addresses}"
    )
    way_out = "Tell the user, who decides whether to trust that address, and call again when they have been there."
    return Refusal(Problem(Code.TOOL_FAILED, message, way_out))


def check_consent(server: str, answers: Mapping[str, Mapping[str, Any]]) -> None:
    if any(answer.get("action") != "accept" for answer in answers.values()):
        message = f"The user did not open the address that the server `{server}` wants them to open first."
        raise Refusal(Problem(Code.TOOL_FAILED, message, "Continue without it."))


def build_unfinished_refusal(server: str) -> Refusal:
    message = f"The server `{server}` still waits for what the user has to do in the browser."
    return Refusal(Problem(Code.TOOL_FAILED, message, "Call again when the user has finished there."))
