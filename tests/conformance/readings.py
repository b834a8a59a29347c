"""Do prompts and resources come as they are? What the suite reads and asks for by name."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_server.model.context import Client
from mcp_server.model.tool_packs import Prompt, PromptArgument, Resource, Template
from tests.conformance.contents import PNG
from tests.conformance.shape import elicit, form


def _user(content: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"role": "user", "content": content}


def _text(text: str) -> Mapping[str, Any]:
    return _user({"type": "text", "text": text})


def simple(_args: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    return [_text("This is a simple prompt for testing.")]


def with_arguments(args: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    return [_text(f"Prompt with arguments: arg1='{args['arg1']}', arg2='{args['arg2']}'")]


def with_resource(args: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    text = "Embedded resource content for testing."
    resource = {"uri": args["resourceUri"], "mimeType": "text/plain", "text": text}
    return [
        _user({"type": "resource", "resource": resource}),
        _text("Please process the embedded resource above."),
    ]


def with_image(_args: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    picture = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    return [_user(picture), _text("Please analyze the image above.")]


def in_context(args: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    return [_text(f"Prompt with context: {args.get('context', 'none')}")]


async def ask_context(client: Client, _args: Mapping[str, str]) -> Mapping[str, str]:
    method, params = elicit("What context should the prompt use?", form(context={"type": "string"}))
    answer = await client.request("user_context", method, params)
    return {key: str(value) for key, value in answer.get("content", {}).items()}


def places(typed: str) -> Sequence[str]:
    return [place for place in ("paris", "park", "party", "test") if place.startswith(typed)]


def record(holes: Mapping[str, str]) -> str:
    return json.dumps({"id": holes["id"], "templateTest": True, "data": f"Data for ID: {holes['id']}"})


PROMPTS = (
    Prompt("test_simple_prompt", "Simple prompt", "A simple prompt without arguments.", simple),
    Prompt(
        "test_prompt_with_arguments",
        "Prompt with arguments",
        "A prompt with required arguments.",
        with_arguments,
        (
            PromptArgument("arg1", "First test argument", required=True, values=places),
            PromptArgument("arg2", "Second test argument", required=True),
        ),
    ),
    Prompt(
        "test_prompt_with_embedded_resource",
        "Prompt with an embedded resource",
        "A prompt that includes an embedded resource.",
        with_resource,
        (PromptArgument("resourceUri", "URI of the resource to embed", required=True),),
    ),
    Prompt("test_prompt_with_image", "Prompt with an image", "A prompt that includes a picture.", with_image),
    Prompt(
        "test_input_required_result_prompt",
        "Prompt that asks",
        "A prompt that asks the person before it speaks.",
        in_context,
        ask=ask_context,
    ),
)
RESOURCES = (
    Resource(
        "test://static-text",
        "static-text",
        "A text that never changes.",
        "text/plain",
        lambda: "This is the content of the static text resource.",
    ),
    Resource("test://static-binary", "static-binary", "A picture that never changes.", "image/png", lambda: PNG),
    Resource(
        "test://watched-resource",
        "watched-resource",
        "A text to subscribe to.",
        "text/plain",
        lambda: "Watched resource content",
    ),
)
TEMPLATES = (Template("test://template/{id}/data", "template", "A record for any id.", "application/json", record),)
