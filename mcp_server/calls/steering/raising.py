"""May a prompt raise the profile? Only with the person's yes, which a client alone cannot give unnoticed.

The question names the profile and wants its name typed: a client that answers questions by itself would have to read
it. Each question is bound to the posture it was put under, so that an old yes opens nothing twice. Whoever said yes,
the person finds it in `menugate messages`.
"""

from collections.abc import Mapping
from typing import Any, cast

from mcp_server.model.ending import Refusal
from mcp_server.model.ports.context import Client
from mcp_server.model.posture import Posture, Profile


def question(now: Posture, wished: Profile) -> dict[str, Any]:
    typed = {"type": "string", "title": "Profile", "description": f"Type `{wished}` to allow it."}
    return {
        "message": (
            f"A command in this client asks to raise your permission profile from {now.profile} to {wished}. "
            f"To allow it, type {wished}; anything else leaves it as it is."
        ),
        "requestedSchema": {"type": "object", "properties": {"profile": typed}, "required": ["profile"]},
    }


async def agreed(client: Client, now: Posture, wished: Profile) -> bool:
    """Did the person type the profile's name? A client that fails or does not answer is no yes."""
    try:
        reply = await client.request(f"raise-{now.epoch}", "elicitation/create", question(now, wished))
    except Refusal:
        return False
    content = cast(Mapping[str, Any], reply.get("content") or {})
    return reply.get("action") == "accept" and str(content.get("profile", "")).strip() == wished
