"""What can each revision of the protocol do? The one list of them, and the shape that a result has in each.

A new revision is a member of `Revision` and a row of `REVISIONS`. Nothing else compares revisions: other code asks the
row, which is in `Caller.protocol`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct


class Revision(StrEnum):
    """Those that menugate is tested with, oldest first."""

    V2024_11_05 = "2024-11-05"
    V2025_03_26 = "2025-03-26"
    V2025_06_18 = "2025-06-18"
    V2025_11_25 = "2025-11-25"
    V2026_07_28 = "2026-07-28"


class RevisionFeatures(Struct, frozen=True):
    connects: bool
    """A handshake opens a connection, and what is known about the client lasts as long. Otherwise each request stands
    alone."""
    asks_in_place: bool
    """A question to the client is a request back while the call waits. Otherwise the question ends the call, and the
    client makes it again with the answer."""
    level_per_request: bool
    """Each request sets the log level. Otherwise `logging/setLevel` sets it for the connection."""
    describes_results: bool
    """A result states its type, how long it is valid and which server it is from."""
    takes_our_results: bool
    """A tool's result goes out as it is built here. Otherwise the SDK removes what the revision lacks."""


OLDEST = RevisionFeatures(
    connects=True, asks_in_place=True, level_per_request=False, describes_results=False, takes_our_results=False
)
CONNECTED = RevisionFeatures(
    connects=True, asks_in_place=True, level_per_request=False, describes_results=False, takes_our_results=True
)
STATELESS = RevisionFeatures(
    connects=False, asks_in_place=False, level_per_request=True, describes_results=True, takes_our_results=True
)
UNTESTED = RevisionFeatures(
    connects=False, asks_in_place=False, level_per_request=True, describes_results=True, takes_our_results=False
)
"""A revision that a later SDK speaks: like the newest one known, with the SDK looking through every result."""
REVISIONS: Mapping[str, RevisionFeatures] = {
    Revision.V2024_11_05: OLDEST,
    Revision.V2025_03_26: OLDEST,
    Revision.V2025_06_18: CONNECTED,
    Revision.V2025_11_25: CONNECTED,
    Revision.V2026_07_28: STATELESS,
}
SHOWN = Revision.V2025_11_25
"""The one that most hosts speak: tool lists are shown, counted and checked in its form."""


def get_revision_features(version: str | None) -> RevisionFeatures:
    """What a client can do that speaks this revision, or none that we know."""
    return REVISIONS.get(version or "") or guess_features(version)


def guess_features(version: str | None) -> RevisionFeatures:
    """Of a revision that is not in the table."""
    # Asked by servers alone, which have loaded the SDK: it would cost a command that shows a list 150 ms.
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return UNTESTED if version in MODERN_PROTOCOL_VERSIONS else OLDEST


COMPLETE: Mapping[str, Any] = {"resultType": "complete"}
UNCACHED: Mapping[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
"""The answer is valid for this request alone."""
DESCRIPTION = COMPLETE.keys() | UNCACHED.keys()


def shape_result(result: Mapping[str, Any], protocol: RevisionFeatures, stamp: Mapping[str, Any]) -> dict[str, Any]:
    """Give a result the shape it has in the caller's revision; `stamp` says who gave it, as the SDK would write it."""
    if protocol.describes_results:
        return {**result, "_meta": {**result.get("_meta", {}), **stamp}}
    return {key: value for key, value in result.items() if key not in DESCRIPTION}
