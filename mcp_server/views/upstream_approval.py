"""What are you asked to approve of a server? What is started, what it offers, what changed, and what to read first."""

from msgspec import Struct

from mcp_server.model.upstreams import (
    Catalogue,
    CatalogueChanges,
    Definition,
    HttpTarget,
    Mount,
    MountSandbox,
    StdioTarget,
    ToolShape,
)
from mcp_server.policy.upstream_check import CatalogueFinding, OtherTools, check_catalogue
from mcp_server.policy.upstream_diff import format_difference
from mcp_server.policy.upstream_effects import judge_tool
from mcp_server.policy.upstream_pins import (
    CataloguePart,
    JudgedCatalogue,
    QuarantineReason,
    UpstreamApproval,
    approve_catalogue,
    compute_catalogue_digest,
    compute_mount_digest,
    judge_catalogue,
    list_parts,
)

WARNING = "This check looks only at words, and cannot tell whether a server is safe: it can do whatever it is able to."


class ChangedPart(Struct, frozen=True):
    """One thing that is not approved as it is now."""

    what: str
    """`new`, `changed` or `gone`."""
    kind: str
    name: str
    lines: tuple[str, ...] = ()
    """For a change: what differs, place by place."""


class ApprovalPreview(Struct, frozen=True):
    mount: Mount
    catalogue: Catalogue
    before: UpstreamApproval | None
    judged: JudgedCatalogue
    findings: tuple[CatalogueFinding, ...]
    mount_digest: str
    digest: str
    """What your yes is bound to."""

    @property
    def is_approved(self) -> bool:
        return not self.judged.quarantined and self.before is not None

    @property
    def is_moved(self) -> bool:
        """Whether it is started or called differently than when you approved it."""
        return self.before is not None and self.before.mount != self.mount_digest

    def approve(self, approved_at: int) -> UpstreamApproval:
        return approve_catalogue(self.mount_digest, self.catalogue, approved_at)

    def list_changes(self) -> list[ChangedPart]:
        """List what differs from what you approved; after no yes at all, nothing does."""
        if self.before is None:
            return []
        known = self.before.by_key
        changes: list[ChangedPart] = []
        for part in list_parts(self.catalogue):
            old = known.get(part.key)
            if old is None:
                changes.append(ChangedPart("new", part.kind, part.name, _describe_new(part)))
            elif old.digest != part.digest:
                lines = tuple(format_difference(old.definition, part.definition))
                changes.append(ChangedPart("changed", part.kind, part.name, lines))
        gone = (ChangedPart("gone", part.kind, part.name) for part in self.judged.gone)
        return [*changes, *gone]

    def list_doubles(self) -> list[CataloguePart]:
        """List what stays out even after your yes."""
        out = (QuarantineReason.DOUBLE, QuarantineReason.UNNAMED)
        judged = judge_catalogue(self.mount_digest, self.catalogue, self.approve(0), CatalogueChanges.ASK)
        return [one.part for one in judged.quarantined if one.reason in (*out, QuarantineReason.CHANGED)]


def build_approval_preview(
    mount: Mount, catalogue: Catalogue, before: UpstreamApproval | None, others: OtherTools
) -> ApprovalPreview:
    mount_digest = compute_mount_digest(mount)
    return ApprovalPreview(
        mount,
        catalogue,
        before,
        judge_catalogue(mount_digest, catalogue, before, mount.changes),
        check_catalogue(catalogue, others),
        mount_digest,
        compute_catalogue_digest(mount_digest, catalogue),
    )


def describe_target(mount: Mount) -> list[tuple[str, str]]:
    """Say what is started or called, and which variables it gets; never their values."""
    match mount.target:
        case StdioTarget(argv, env, folder):
            rows = [("starts", " ".join(argv))] + ([("in", folder)] if folder else [])
            rows += [("gets", ", ".join(sorted(env)))] if env else []
            return [*rows, ("sandbox", describe_sandbox(mount.sandbox))]
        case HttpTarget(url, _, headers):
            return [("calls", url)] + ([("sends", ", ".join(sorted(headers)))] if headers else [])


def describe_sandbox(sandbox: MountSandbox | None) -> str:
    if sandbox is None:
        return "none: it can do whatever your account can do"
    writes = ", ".join(("its own folder", *sandbox.write))
    network = f"reaches {', '.join(sandbox.network)}" if sandbox.network else "no network"
    return f"writes in {writes}; {network}; your home is {'readable' if sandbox.home else 'hidden'}"


def describe_effect(mount: Mount, tool: Definition) -> tuple[str, str, str]:
    """Say what a tool counts as once you approve it, which profile it needs, and who says so."""
    name = tool.get("name")
    shape = mount.tools.get(name, ToolShape()) if isinstance(name, str) else ToolShape()
    judged = judge_tool(tool.get("annotations"), shape, approved=True)
    server = "its server" if judged.annotations is not None else "nobody"
    asks = ", asks below trusted" if judged.asks else ""
    return str(judged.effect), f"{judged.profile}{asks}", "you" if shape.effect is not None else server


def _describe_new(part: CataloguePart) -> tuple[str, ...]:
    return tuple(format_difference(None, {key: part.definition[key] for key in part.definition if key != "name"}))
