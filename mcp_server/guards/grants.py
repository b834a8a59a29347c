"""Does what this call was granted cover what it is about to do to this place?

The decision looked at the words of the arguments. Here the question is asked again about the place they led to.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mcp_server.guards.jail import JailPath
from mcp_server.guards.refusals import installed as held
from mcp_server.guards.refusals import not_granted, unconfirmed
from mcp_server.model.files import installed, protected, secret
from mcp_server.model.posture import Profile
from mcp_server.model.tools import READING, Demand, Effect

NOTHING = Demand(Effect.NONE, Profile.RESTRICTED)


@dataclass(frozen=True, slots=True)
class Grant:
    demand: Demand = NOTHING
    fixed: Callable[[JailPath], bool] = lambda _place: False
    """Is this place not to be changed, whoever said yes?"""

    def may_read(self, asked: str, place: JailPath) -> None:
        if self.demand.confirm is None and (secret(asked) or secret(place.path)):
            raise unconfirmed(asked, place.path, "usually holds secrets and is read")

    def may_write(self, asked: str) -> None:
        if self.demand.effect in READING:
            raise not_granted(f"This call was granted reading only, and would have changed `{asked}`.")

    def may_change(self, asked: str, place: JailPath) -> None:
        self.may_write(asked)
        if self.fixed(place):
            raise held(asked)
        if self.demand.confirm is None and (protected(asked) or protected(place.path)):
            raise unconfirmed(asked, place.path, "decides what other programs run and is changed")

    def may_put(self, asked: str, place: JailPath, source: JailPath) -> None:
        self.may_change(asked, place)
        if self.demand.confirm is None and installed(place.path) and not installed(source.path):
            raise unconfirmed(asked, place.path, "lies among what is installed, where no secret is hidden, and is made")

    def may_destroy(self) -> None:
        if self.demand.effect is not Effect.DESTROY_LOCAL:
            raise not_granted("This call was not granted taking files away.")
