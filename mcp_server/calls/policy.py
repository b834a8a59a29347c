"""Which policy applies to a call? The one in force when the call is decided: one value, always replaced as a whole."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mcp_server.model.policy import Policy


async def _keep_policy() -> None:
    """Keep the policy: nothing checks whether its files have changed."""


@dataclass
class CurrentPolicy:
    policy: Policy
    renew: Callable[[], Awaitable[None]] = _keep_policy
    """Takes over what the person has written since."""
    stale: bool = False
    """True if they may have written something: `renew` then runs before the next decision. One flag, because it is
    looked at twice in every call and hardly ever set."""
    keeps_glances: bool = True
    """Whether one line about each call is kept for a while, so that a person can read the record."""
