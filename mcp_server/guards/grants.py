"""Does this call's grant cover what it is about to do to this place?

The decision saw only the text of the arguments. Here the same check is made for the place they led to.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mcp_server.guards.jail import JailPath
from mcp_server.guards.refusals import build_installation_refusal as held
from mcp_server.guards.refusals import build_not_granted_refusal, build_unconfirmed_refusal
from mcp_server.model.files import is_installed, is_protected, is_secret
from mcp_server.model.posture import Profile
from mcp_server.model.tools import READING, Demand, Effect

NOTHING = Demand(Effect.NONE, Profile.RESTRICTED)


@dataclass(frozen=True, slots=True)
class Grant:
    demand: Demand = NOTHING
    fixed: Callable[[JailPath], bool] = lambda _place: False
    """True if this place must not be changed, even with the person's approval."""

    def require_read(self, asked: str, place: JailPath) -> None:
        if self.demand.confirm is None and (is_secret(asked) or is_secret(place.path)):
            raise build_unconfirmed_refusal(asked, place.path, "usually holds secrets and is read")

    def require_write(self, asked: str) -> None:
        if self.demand.effect in READING:
            raise build_not_granted_refusal(f"This call was granted reading only, and would have changed `{asked}`.")

    def require_change(self, asked: str, place: JailPath) -> None:
        self.require_write(asked)
        if self.fixed(place):
            raise held(asked)
        if self.demand.confirm is None and (is_protected(asked) or is_protected(place.path)):
            raise build_unconfirmed_refusal(asked, place.path, "decides what other programs run and is changed")

    def require_put(self, asked: str, place: JailPath, source: JailPath) -> None:
        self.require_change(asked, place)
        if self.demand.confirm is None and is_installed(place.path) and not is_installed(source.path):
            raise build_unconfirmed_refusal(
                asked, place.path, "lies among what is installed, where no secret is hidden, and is made"
            )

    def require_destroy(self) -> None:
        if self.demand.effect is not Effect.DESTROY_LOCAL:
            raise build_not_granted_refusal("This call was not granted taking files away.")
