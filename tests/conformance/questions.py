"""Do a tool's questions reach the client, and the answers the tool? Tools that ask, in both eras by the same words."""

from collections.abc import Mapping
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.tools import Run, Tool
from tests.conformance.shape import ROOTS, elicit, fixture, form, outcome, sample

NAME = form(name={"type": "string"})
OK = form(ok={"type": "boolean"})
WHO = form(
    username={"type": "string", "description": "User's response"},
    email={"type": "string", "description": "User's email address"},
)
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    },
}


def _titled(word: str) -> list[dict[str, str]]:
    return [{"const": f"value{n}", "title": f"{nth} {word}"} for n, nth in enumerate(("First", "Second", "Third"), 1)]


OPTIONS = ["option1", "option2", "option3"]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": _titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled("Choice")}},
    },
}


def asking(key: str, question: tuple[str, Mapping[str, Any]]) -> Run:
    """A run that asks one thing and says what came back."""

    async def run(ctx: Context, _args: Any) -> Done:
        answer = await ctx.client.request(key, *question)
        return outcome(answer) if question[0] == "elicitation/create" else Done(f"The client answered: {dict(answer)}")

    return run


async def sampling(ctx: Context, args: Mapping[str, str]) -> Ending:
    if not ctx.client.can("sampling"):
        return Problem(Code.TOOL_FAILED, "This client lends no model.", "Use a client that declares `sampling`.")
    answer = await ctx.client.request("answer", *sample(args["prompt"]))
    return Done(f"LLM response: {answer['content']['text']}")


async def elicitation(ctx: Context, args: Mapping[str, str]) -> Ending:
    if not ctx.client.can("elicitation"):
        return Problem(Code.TOOL_FAILED, "This client asks nobody.", "Use a client that declares `elicitation`.")
    answer = await ctx.client.request("answer", *elicit(args["message"], WHO))
    return Done(f"User response: action={answer['action']}, content={answer.get('content')}")


async def greet(ctx: Context, _args: Any) -> Done:
    answer = await ctx.client.request("user_name", *elicit("What is your name?", NAME))
    return Done(f"Hello, {answer.get('content', {}).get('name', 'nobody')}!")


async def state(ctx: Context, _args: Any) -> Done:
    await ctx.client.request("confirm", *elicit("Please confirm", OK))
    return Done("state-ok")


async def several(ctx: Context, _args: Any) -> Done:
    answers = await ctx.client.request_all(
        {
            "user_name": elicit("What is your name?", NAME),
            "greeting": sample("Generate a greeting", 50),
            "client_roots": ROOTS,
        }
    )
    return Done(f"The client answered {sorted(answers)}.")


async def rounds(ctx: Context, _args: Any) -> Done:
    name = await ctx.client.request("step1", *elicit("Step 1: What is your name?", NAME))
    color_form = form(color={"type": "string"})
    color = await ctx.client.request("step2", *elicit("Step 2: What is your favorite color?", color_form))
    return Done(f"{name.get('content')} and {color.get('content')}")


async def within_capabilities(ctx: Context, _args: Any) -> Done:
    """Asks only for what the client said it can do."""
    wishes = {
        "elicitation": ("user_name", elicit("What is your name?", NAME)),
        "sampling": ("greeting", sample("Generate a greeting", 50)),
        "roots": ("client_roots", ROOTS),
    }
    answers = await ctx.client.request_all({key: ask for can, (key, ask) in wishes.items() if ctx.client.can(can)})
    return Done(f"The client answered {sorted(answers)}.")


def _one_text(name: str, description: str) -> dict[str, Any]:
    properties = {name: {"type": "string", "description": description}}
    return {"type": "object", "properties": properties, "required": [name], "additionalProperties": False}


ROUND = "test_input_required_result_"
TOOLS: tuple[Tool, ...] = (
    fixture("test_sampling", "Asks the client's model.", sampling, _one_text("prompt", "What the model is asked.")),
    fixture("test_elicitation", "Asks the person.", elicitation, _one_text("message", "What the person is asked.")),
    fixture(
        "test_elicitation_sep1034_defaults",
        "Asks with a default for every kind of value.",
        asking("answer", elicit("Please review and update the form fields with defaults", DEFAULTS)),
    ),
    fixture(
        "test_elicitation_sep1330_enums",
        "Asks with every kind of choice.",
        asking("answer", elicit("Please select options from the enum fields", ENUMS)),
    ),
    fixture("test_missing_capability", "Needs the client's model.", asking("answer", sample("Say something."))),
    fixture("test_streaming_elicitation", "Asks the person on a stream.", asking("confirm", elicit("Go on?", OK))),
    fixture(f"{ROUND}elicitation", "Asks the person for a name.", greet),
    fixture(
        f"{ROUND}sampling",
        "Asks the client's model for a capital.",
        asking("capital_question", sample("What is the capital of France?")),
    ),
    fixture(f"{ROUND}list_roots", "Asks for the client's roots.", asking("client_roots", ROOTS)),
    fixture(f"{ROUND}request_state", "Carries state from one round to the next.", state),
    fixture(f"{ROUND}multiple_inputs", "Asks three things in one round.", several),
    fixture(f"{ROUND}multi_round", "Asks in two rounds, one after the other.", rounds),
    fixture(f"{ROUND}tampered_state", "Carries state that must not be touched.", state),
    fixture(f"{ROUND}capabilities", "Asks only what the client can answer.", within_capabilities),
)
