"""Which servers are behind menugate, what does each offer, and what of it is in force? Nothing is started for this."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_server.model.text import to_one_line
from mcp_server.model.tools import Tool
from mcp_server.model.upstreams import Catalogue, Mount
from mcp_server.policy.upstream_pins import (
    JudgedCatalogue,
    QuarantinedPart,
    QuarantineReason,
    UpstreamApproval,
    compute_mount_digest,
    judge_catalogue,
)
from mcp_server.policy.upstream_tools import SetAside
from mcp_server.views.upstream_approval import describe_target
from mcp_server.views.upstream_packages import describe_package

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.config.upstreams import ConfiguredUpstreams
    from mcp_server.settings import Settings
    from mcp_server.upstreams.sharing.place import InstanceHolder


class ApprovalState(StrEnum):
    """What you have to know of a server first."""

    BROKEN = "broken"
    DISABLED = "disabled"
    UNAPPROVED = "not approved"
    MOVED = "started differently"
    CHANGED = "changed"
    APPROVED = "approved"


MEANING: Mapping[ApprovalState, str] = {
    ApprovalState.BROKEN: "Its entry has a fault, so menugate runs without it.",
    ApprovalState.DISABLED: "Its entry says `disabled`.",
    ApprovalState.UNAPPROVED: "You have not approved what it offers.",
    ApprovalState.MOVED: "It is started or called differently than when you approved it.",
    ApprovalState.CHANGED: "Some of what it offers is new or different since you approved it.",
    ApprovalState.APPROVED: "You approved what it offers.",
}


class UpstreamView(Struct, frozen=True):
    """One server under `mcpServers`."""

    name: str
    state: ApprovalState
    mount: Mount | None = None
    """None if its entry has a fault."""
    catalogue: Catalogue | None = None
    """What it last said it offers; None if it never did."""
    approved_at: int = 0
    tools: Sequence[Tool] = ()
    """Those in force."""
    quarantined: Sequence[QuarantinedPart] = ()
    aside: Sequence[SetAside] = ()
    modes: Sequence[str] = ()
    tokens: Mapping[str, int] = field(default_factory=dict[str, int])
    """What a model reads of each tool in force, by the tool's name here."""
    faults: Sequence[str] = ()
    warnings: Sequence[str] = ()
    holders: Sequence["InstanceHolder"] = ()
    """The menugate processes that run such a server and share it."""

    @property
    def target(self) -> Sequence[tuple[str, str]]:
        return describe_target(self.mount) if self.mount else ()

    def to_json(self) -> dict[str, Any]:
        mount, catalogue = self.mount, self.catalogue
        return {
            "name": self.name,
            "slug": mount.slug if mount else None,
            "source": mount.source if mount else None,
            **dict(self.target),
            "state": self.state,
            "package": describe_package(mount) if mount else [],
            "server": dict(catalogue.server) if catalogue else None,
            "read_at": catalogue.read_at if catalogue else None,
            "approved_at": self.approved_at or None,
            "modes": list(self.modes),
            "tokens": sum(self.tokens.values()),
            "tools": [tool_to_json(tool, self.tokens[tool.name]) for tool in self.tools],
            "quarantined": [
                {"kind": one.part.kind, "name": one.part.name, "reason": f"it {one.reason}"} for one in self.quarantined
            ],
            "aside": [{"tool": one.tool, "reason": one.reason} for one in self.aside],
            "faults": list(self.faults),
            "warnings": list(self.warnings),
            "shared_by": [{"pid": one.pid, "workspace": one.workspace} for one in self.holders],
        }


def tool_to_json(tool: Tool, tokens: int) -> dict[str, Any]:
    return {
        "name": tool.name,
        "written": tool.written,
        "effect": tool.effect,
        "profile": tool.profile,
        "tokens": tokens,
    }


def collect_upstreams(
    configuration: "Configuration", settings: "Settings", count_tokens: Callable[[Tool], int]
) -> list[UpstreamView]:
    """Collect every server under `mcpServers`, in the order of the file, and broken ones last."""
    from mcp_server.state.upstream_pins import UpstreamPins

    upstreams = configuration.library.config.upstreams
    if upstreams is None:
        return []
    pins = UpstreamPins(settings.secrets, settings.workspace)
    views = [
        build_view(configuration, upstreams, mount, pins.find_approval(mount.name), count_tokens)
        for mount in upstreams.mounts
    ]
    broken = [
        UpstreamView(name, ApprovalState.BROKEN, faults=list_texts(upstreams.faults, name)) for name in upstreams.broken
    ]
    return [*add_holders(views, settings), *broken]


def add_holders(views: Sequence[UpstreamView], settings: "Settings") -> list[UpstreamView]:
    from mcp_server.upstreams.sharing.place import load_holders

    holders = load_holders(settings.secrets) if settings.secrets else []
    return [replace(view, holders=[one for one in holders if one.server == view.name]) for view in views]


def list_texts(faults: Sequence[Any], server: str) -> list[str]:
    return [str(one) for one in faults if one.server == server]


def build_view(
    configuration: "Configuration",
    upstreams: "ConfiguredUpstreams",
    mount: Mount,
    approval: UpstreamApproval | None,
    count_tokens: Callable[[Tool], int],
) -> UpstreamView:
    mounted, policy = configuration.mounted, configuration.policy
    catalogue = mounted.catalogues.get(mount.name) if mounted else None
    judged = judge_catalogue(compute_mount_digest(mount), catalogue or Catalogue(), approval, mount.changes)
    of_mount = (tool for tool in policy.tools.values() if (tool.written or "").partition(":")[0] == mount.name)
    tools = [tool for tool in of_mount if tool.is_listed]
    names = {tool.name for tool in tools}
    return UpstreamView(
        name=mount.name,
        state=find_state(mount, approval, judged),
        mount=mount,
        catalogue=catalogue,
        approved_at=approval.approved_at if approval else 0,
        tools=tools,
        quarantined=judged.quarantined,
        aside=list_aside(mounted.aside, mount, judged) if mounted else (),
        modes=[mode.name for mode in policy.menus if names & set(mode.tools)],
        tokens={tool.name: count_tokens(tool) for tool in tools},
        warnings=list_texts(upstreams.warnings, mount.name),
    )


def list_aside(aside: Sequence[SetAside], mount: Mount, judged: JudgedCatalogue) -> list[SetAside]:
    """List what cannot be offered for another reason than your approval."""
    waiting = {(to_one_line(one.part.name), f"it {one.reason}") for one in judged.quarantined}
    return [one for one in aside if one.server == mount.name and (one.tool, one.reason) not in waiting]


def find_state(mount: Mount, approval: UpstreamApproval | None, judged: JudgedCatalogue) -> ApprovalState:
    if mount.disabled:
        return ApprovalState.DISABLED
    if approval is None:
        return ApprovalState.UNAPPROVED
    if approval.mount != compute_mount_digest(mount):
        return ApprovalState.MOVED
    changed = any(one.reason in (QuarantineReason.NEW, QuarantineReason.CHANGED) for one in judged.quarantined)
    return ApprovalState.CHANGED if changed else ApprovalState.APPROVED
