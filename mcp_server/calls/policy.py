"""By which policy is a call judged? By the one that holds when it is decided: one value, and swapped as a whole."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mcp_server.model.policy import Policy


async def _keep_policy() -> None:
    """Nobody looks whether something was written since."""


@dataclass
class CurrentPolicy:
    policy: Policy
    renew: Callable[[], Awaitable[None]] = _keep_policy
    """Take over what the person wrote since, before the next decision."""
