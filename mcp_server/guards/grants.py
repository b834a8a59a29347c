"""Does this call's grant cover what it is about to do to this place?

The decision saw only the text of the arguments. Here the same check is made for the place they led to.
"""

import os
from collections.abc import Callable
from hashlib import file_digest

from msgspec import Struct, field

from mcp_server.guards.jail import JailPath, format_identity
from mcp_server.guards.path_targets import Target
from mcp_server.guards.refusals import build_installation_refusal as held
from mcp_server.guards.refusals import (
    build_moved_refusal,
    build_not_granted_refusal,
    build_ruled_out_refusal,
    build_unconfirmed_refusal,
)
from mcp_server.model.files import RehearsalOver, is_installed, is_protected, is_secret
from mcp_server.model.posture import Profile
from mcp_server.model.tools import READING, Demand, Effect


def is_never_fixed(_place: JailPath) -> bool:
    return False


NOTHING = Demand(Effect.NONE, Profile.RESTRICTED)


class PlaceBounds(Struct, frozen=True):
    """What rules and approvals say about where a path leads by the time it is opened.

    A call that no rule is about, and that nobody was asked about, has none.
    """

    is_kept: Callable[[str], bool] | None = None
    """True if a rule keeps this place from the call."""
    is_kept_as_target: Callable[[str], bool] | None = None
    """The same for where a call moves something to."""
    targets: dict[str, tuple[Target, ...]] = field(default_factory=dict[str, tuple[Target, ...]])
    """What the user was shown, by path as the call writes it and as it really is."""
    rehearsal: bool = False
    """The call is only tried, to see whether it would fail: everything is checked, nothing is changed."""

    def settle(self, *paths: str) -> None:
        """Forget what the user was shown at these paths: the call has changed it."""
        for path in paths:
            self.targets.pop(path, None)

    def require_place(self, asked: str, place: JailPath, arriving: bool = False) -> None:
        is_kept = self.is_kept_as_target if arriving else self.is_kept
        # The decision has judged the path as it is written.
        if is_kept is not None and place.path != asked and is_kept(place.path):
            raise build_ruled_out_refusal(asked, place.path)
        target = self._find_target(asked, place)
        if target is None:
            return
        found = place.stat()
        if found is not None:
            self.require_object(asked, place, found)
        elif target.identity:
            raise build_moved_refusal(asked, "is gone since the user was asked")
        elif format_identity(os.fstat(place.folder)) != target.folder:
            raise build_moved_refusal(asked, "would be created in a different folder from the one the user was shown")

    def _find_target(self, asked: str, place: JailPath) -> Target | None:
        known = self.targets.get(asked, self.targets.get(place.path))
        if known is None:
            return None
        for target in known:
            if target.path == place.path:
                return target
        before = f"led to `{known[0].path}`" if known else "could not be opened"
        raise build_moved_refusal(asked, f"now leads to `{place.path}`; it {before} when the user was asked")

    def require_object(self, asked: str, place: JailPath, found: os.stat_result, file: int | None = None) -> None:
        """Raise unless this is what the user was shown. `file`: it is open, and about to be overwritten."""
        target = self._find_target(asked, place)
        if target is None:
            return
        if format_identity(found) != target.identity:
            what = "was replaced after" if target.identity else "did not exist when"
            raise build_moved_refusal(asked, f"{what} the user was asked")
        if file is not None and target.sha256:
            with os.fdopen(os.dup(file), "rb") as content:
                content.seek(0)
                if file_digest(content, "sha256").hexdigest() != target.sha256:
                    raise build_moved_refusal(asked, "has changed since the user was asked")


class Grant(Struct, frozen=True):
    demand: Demand = NOTHING
    fixed: Callable[[JailPath], bool] = is_never_fixed
    """True if this place must not be changed, even with the person's approval."""
    bounds: PlaceBounds | None = None

    @property
    def is_rehearsal(self) -> bool:
        return self.bounds is not None and self.bounds.rehearsal

    def end_rehearsal(self) -> None:
        """End the call here if it is only tried; what follows changes something."""
        if self.is_rehearsal:
            raise RehearsalOver

    def require_read(self, asked: str, place: JailPath) -> None:
        if self.bounds is not None:
            self.bounds.require_place(asked, place)
        if self.demand.confirm is None and (is_secret(asked) or is_secret(place.path)):
            raise build_unconfirmed_refusal(asked, place.path, "usually holds secrets and can be read")

    def require_write(self, asked: str) -> None:
        if self.demand.effect in READING:
            raise build_not_granted_refusal(f"This call may only read, but it would have changed `{asked}`.")

    def require_change(self, asked: str, place: JailPath, arriving: bool = False) -> None:
        self.require_write(asked)
        if self.bounds is not None:
            self.bounds.require_place(asked, place, arriving)
        if self.fixed(place):
            raise held(asked)
        if self.demand.confirm is None and (is_protected(asked) or is_protected(place.path)):
            raise build_unconfirmed_refusal(asked, place.path, "decides what other programs run and can be changed")

    def require_put(self, asked: str, place: JailPath, source: JailPath) -> None:
        self.require_change(asked, place, arriving=True)
        if self.demand.confirm is None and is_installed(place.path) and not is_installed(source.path):
            raise build_unconfirmed_refusal(
                asked,
                place.path,
                "is in a folder of installed packages, where secrets are not hidden, and can be created",
            )

    def require_destroy(self) -> None:
        if self.demand.effect is not Effect.DESTROY_LOCAL:
            raise build_not_granted_refusal("This call may not delete or move files.")
