"""What does somebody else's tool do? What the operator says; else what its approved annotations say; else it writes.

Annotations are the server's own claim. Until they are approved they count for nothing, and they never lead to an
effect that asks at every profile: too many servers call everything destructive.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mcp_server.model.posture import Profile
from mcp_server.model.tools import HINTS, Demand, Effect, Hints
from mcp_server.model.upstreams import ToolShape

UNKNOWN = Effect.REMOTE_WRITE
"""The effect of a tool about which nothing is known."""
LOWEST: Mapping[Effect, Profile] = {
    Effect.NONE: Profile.TRUSTED,
    Effect.SESSION: Profile.TRUSTED,
    Effect.READ_LOCAL: Profile.RESTRICTED,
    Effect.READ_REMOTE: Profile.RESTRICTED,
    Effect.SPEND: Profile.RESTRICTED,
    Effect.WRITE_LOCAL: Profile.NORMAL,
    Effect.DESTROY_LOCAL: Profile.TRUSTED,
    Effect.VCS_LOCAL: Profile.NORMAL,
    Effect.EXEC: Profile.TRUSTED,
    Effect.BROWSER_ACT: Profile.NORMAL,
    Effect.REMOTE_WRITE: Profile.TRUSTED,
    Effect.PRODUCTION_MUTATION: Profile.TRUSTED,
    Effect.DELEGATE: Profile.TRUSTED,
}
"""The lowest profile of each effect, if the operator says no other."""
BOOLEANS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
DESTRUCTIVE = "its server says that it may destroy something"


class ToolEffect(Struct, frozen=True):
    effect: Effect
    profile: Profile
    hints: Hints
    annotations: Mapping[str, Any] | None
    """Those that clients see, as the server sent them; None if they see the hints of the effect."""
    asks: bool = False
    """Whether the user is asked below `trusted`."""

    def get_demand(self, _arguments: Mapping[str, Any]) -> Demand:
        return Demand(self.effect, self.profile, DESTRUCTIVE, waivable=True, asked_below=Profile.TRUSTED)


def judge_tool(annotations: Any, shape: ToolShape, approved: bool) -> ToolEffect:
    """`approved`: the user approved what the server says about its tools."""
    said = _read_annotations(annotations) if approved else {}
    hints = Hints(
        read_only=said.get("readOnlyHint", False),
        destructive=said.get("destructiveHint", True) and not said.get("readOnlyHint", False),
        idempotent=said.get("idempotentHint", False),
        open_world=said.get("openWorldHint", True),
        because="its server says so, and you approved it",
    )
    claimed = any(key in said for key in BOOLEANS)
    effect = shape.effect or (_find_effect(hints) if claimed else UNKNOWN)
    known = claimed or shape.effect is not None
    profile = shape.profile or (LOWEST[effect] if known else Profile.TRUSTED)
    if shape.effect is not None or not claimed:
        return ToolEffect(effect, profile, HINTS[effect], None)
    return ToolEffect(effect, profile, hints, said, asks=hints.destructive)


def _find_effect(hints: Hints) -> Effect:
    if hints.read_only:
        return Effect.READ_REMOTE if hints.open_world else Effect.READ_LOCAL
    return Effect.REMOTE_WRITE if hints.open_world else Effect.WRITE_LOCAL


def _read_annotations(annotations: Any) -> dict[str, Any]:
    """Keep what has the type that the protocol gives it."""
    if not isinstance(annotations, Mapping):
        return {}
    given: Mapping[Any, Any] = annotations  # pyright: ignore[reportUnknownVariableType]  # from outside
    kept: dict[str, Any] = {key: given[key] for key in BOOLEANS if isinstance(given.get(key), bool)}
    return kept | ({"title": given["title"]} if isinstance(given.get("title"), str) else {})
