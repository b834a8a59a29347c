"""How is a fixture tool written? Its name, what it takes and how it runs; the rest is the same for all of them."""

from collections.abc import Mapping
from typing import Any

from mcp_server.model.posture import Profile
from mcp_server.model.results import Done
from mcp_server.model.tools import EVERY_STAGE, Effect, Hints, Run, Tool

NOTHING: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def fixture(name: str, description: str, run: Run, arguments: Mapping[str, Any] = NOTHING) -> Tool:
    """A tool that no stage, profile or question stands in the way of: the suite tests the wire, not the gate."""
    return Tool(
        name=name,
        title=name.replace("_", " "),
        description=description,
        arguments=arguments,
        profile=Profile.RESTRICTED,
        effect=Effect.NONE,
        hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
        stages=EVERY_STAGE,
        run=run,
    )


def form(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a form in which everything has to be filled in."""
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def elicit(message: str, schema: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    return "elicitation/create", {"message": message, "requestedSchema": dict(schema)}


def sample(text: str, tokens: int = 100) -> tuple[str, dict[str, Any]]:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return "sampling/createMessage", {"messages": [message], "maxTokens": tokens}


ROOTS: tuple[str, dict[str, Any]] = ("roots/list", {})


def outcome(answer: Mapping[str, Any]) -> Done:
    """What came back from a form, in the words the suite documents."""
    return Done(f"Elicitation completed: action={answer.get('action')}, content={answer.get('content')}")
