"""What has changed in the workspace since the question was asked?

An approval is bound to what the paths of the call led to, so one that is given after a change lets nothing through.
"""

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from mcp_server.guards.jail import Jail
from mcp_server.guards.loss_targets import find_lost
from mcp_server.guards.path_targets import digest_targets, find_targets, look_at_path
from mcp_server.model.approvals import Approval
from mcp_server.model.text import quote_exactly
from mcp_server.settings import Settings

MOST_NAMED = 300


def find_changes(approval: Approval, settings: Settings) -> Iterator[str]:
    """Yield a sentence about each path that no longer leads to what the question was about. Questions of an older
    menugate don't say what they were bound to."""
    jail = Jail(settings.workspace, settings.protected_inside_workspace, (settings.state / "spill",))
    targets: list[Mapping[str, Any]] = approval.details.get("targets") or []
    said = set[str]()
    for target in targets:
        if target.get("bound_to") and not _is_unchanged(target, jail):
            said.add(target["named"])
            yield _describe_change(target, jail)
    # What has no name here cannot be looked up, and counts against the limits of what follows.
    lost = [*takewhile(lambda one: one.path, approval.wanted.moment.lost)]
    for then, now in zip(lost, find_lost(jail, lost), strict=True):
        if then != now and then.path not in said:
            yield then.describe_difference(now)


def _is_unchanged(target: Mapping[str, Any], jail: Jail) -> bool:
    # Not every approval is bound to contents. Where this one was, the digest without them is another.
    return any(
        digest_targets(find_targets(jail, target["named"], hashed)) == target["bound_to"] for hashed in (True, False)
    )


def _describe_change(target: Mapping[str, Any], jail: Jail) -> str:
    named, kind = quote_exactly(target["named"], MOST_NAMED), target["kind"]
    now = look_at_path(jail, target["argument"], target["named"], with_text=False)
    if now is None:
        return f"{named} can no longer be opened"
    if now.path != target["path"]:
        there = quote_exactly(now.path, MOST_NAMED)
        return f"{named} now leads to {there}, and no longer to {quote_exactly(target['path'], MOST_NAMED)}"
    if now.kind == "missing":
        return f"nothing is at {named} any more, where a {kind} was"
    if kind == "missing":
        return f"there is a {now.kind} at {named} now, where nothing was"
    if now.kind != kind:
        return f"there is a {now.kind} at {named} now, where a {kind} was"
    return f"the {kind} at {named} has been changed or replaced"
