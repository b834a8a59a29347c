"""What of a server may be offered? What you approved of it, as it was described then.

An approval is for one definition of the mount (what is started or called, and which variables it gets) and for the
parts of one catalogue: tools, prompts, resources, templates and the instructions, each with everything that the server
says of it. What is new or described differently is quarantined: it is not listed, not found and cannot be called.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.upstreams import Catalogue, CatalogueChanges, Definition, HttpTarget, Mount, StdioTarget

INSTRUCTIONS = "instructions"
KEYS: Mapping[str, str] = {"tool": "name", "prompt": "name", "resource": "uri", "template": "uriTemplate"}
"""What identifies a part of each kind."""


class QuarantineReason(StrEnum):
    """Why a part of a catalogue is not offered. The value completes "it ..."."""

    UNAPPROVED = "belongs to a server that you have not approved"
    MOUNT_CHANGED = "belongs to a server that is started or called differently than when you approved it"
    NEW = "is new since you approved the server"
    CHANGED = "is described differently than when you approved the server"
    DOUBLE = "has a name that the server uses twice"
    UNNAMED = "has no name"


@dataclass(frozen=True)
class CataloguePart:
    """A tool, prompt, resource or template, or the server's instructions."""

    kind: str
    name: str
    definition: Definition = field(repr=False)

    @cached_property
    def digest(self) -> str:
        return compute_digest(self.definition)

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.name


@dataclass(frozen=True, slots=True)
class UpstreamApproval:
    """Your yes to a server."""

    mount: str
    """The digest of the mount's definition."""
    parts: tuple[CataloguePart, ...] = field(repr=False)
    version: str = ""
    """The server's own, then."""
    approved_at: int = 0
    """In nanoseconds."""

    @property
    def by_key(self) -> Mapping[tuple[str, str], CataloguePart]:
        return {part.key: part for part in self.parts}


class QuarantinedPart(Struct, frozen=True):
    part: CataloguePart
    reason: QuarantineReason
    before: CataloguePart | None = None
    """What you approved, if it is described differently now."""


class JudgedCatalogue(Struct, frozen=True):
    """A catalogue, divided by what you approved."""

    offered: Catalogue
    quarantined: tuple[QuarantinedPart, ...] = ()
    gone: tuple[CataloguePart, ...] = ()
    """What you approved and the server no longer offers."""
    admitted: tuple[CataloguePart, ...] = ()
    """What is offered although you did not approve it, because you allowed new parts. Whoever offers it has to add it
    to the approval, or a later change of it would count as new again."""

    def find_quarantined(self, kind: str, name: str) -> QuarantinedPart | None:
        return next((one for one in self.quarantined if one.part.key == (kind, name)), None)


def judge_catalogue(
    mount_digest: str, catalogue: Catalogue, approval: UpstreamApproval | None, changes: CatalogueChanges
) -> JudgedCatalogue:
    """Divide a catalogue. `changes` is about parts that are new or different; it never stands in for the first yes."""
    known: Mapping[tuple[str, str], CataloguePart] = approval.by_key if approval else {}
    valid = approval is not None and approval.mount == mount_digest
    whole = None
    if not valid:
        whole = QuarantineReason.MOUNT_CHANGED if approval else QuarantineReason.UNAPPROVED
    parts = list(list_parts(catalogue))
    chosen = _choose_doubles(parts, known)
    offered, quarantined = set[int](), list[QuarantinedPart]()
    for index, part in enumerate(parts):
        before = known.get(part.key)
        reason = whole or _find_reason(part, before, changes)
        if reason is None and not part.name:
            reason = QuarantineReason.UNNAMED
        if reason is None and chosen[part.key] != index:
            reason = QuarantineReason.DOUBLE
        if reason is None:
            offered.add(index)
        else:
            differs = before is not None and before.digest != part.digest
            quarantined.append(QuarantinedPart(part, reason, before if differs else None))
    now = {part.key for part in parts}
    gone = tuple(part for part in known.values() if part.key not in now)
    admitted = tuple(part for index, part in enumerate(parts) if index in offered and part.key not in known)
    return JudgedCatalogue(_keep_offered(catalogue, parts, offered), tuple(quarantined), gone, admitted)


def _find_reason(
    part: CataloguePart, before: CataloguePart | None, changes: CatalogueChanges
) -> QuarantineReason | None:
    if before is None:
        return QuarantineReason.NEW if changes is CatalogueChanges.ASK else None
    if before.digest == part.digest or changes is CatalogueChanges.ALLOW:
        return None
    return QuarantineReason.CHANGED


def _choose_doubles(
    parts: Sequence[CataloguePart], known: Mapping[tuple[str, str], CataloguePart]
) -> Mapping[tuple[str, str], int]:
    """Of parts with one name, choose the one that was approved, else the first: a later one must not replace it."""
    chosen: dict[tuple[str, str], int] = {}
    for index, part in enumerate(parts):
        before = known.get(part.key)
        first = chosen.setdefault(part.key, index)
        if before is not None and part.digest == before.digest != parts[first].digest:
            chosen[part.key] = index
    return chosen


def _keep_offered(catalogue: Catalogue, parts: Sequence[CataloguePart], offered: set[int]) -> Catalogue:
    kept = [part for index, part in enumerate(parts) if index in offered]

    def select(kind: str) -> tuple[Definition, ...]:
        return tuple(part.definition for part in kept if part.kind == kind)

    return replace(
        catalogue,
        tools=select("tool"),
        prompts=select("prompt"),
        resources=select("resource"),
        templates=select("template"),
        instructions=catalogue.instructions if any(part.kind == INSTRUCTIONS for part in kept) else "",
    )


def approve_catalogue(mount_digest: str, catalogue: Catalogue, approved_at: int) -> UpstreamApproval:
    """Build the approval of everything that a catalogue offers. Of parts with one name, it is for the first."""
    parts: dict[tuple[str, str], CataloguePart] = {}
    for part in list_parts(catalogue):
        parts.setdefault(part.key, part)
    version = catalogue.server.get("version")
    return UpstreamApproval(
        mount_digest, tuple(parts.values()), version if isinstance(version, str) else "", approved_at
    )


def extend_approval(approval: UpstreamApproval, admitted: Sequence[CataloguePart]) -> UpstreamApproval:
    """Add parts that were admitted without asking, as they are described now."""
    known = approval.by_key
    return dataclasses.replace(approval, parts=(*approval.parts, *(part for part in admitted if part.key not in known)))


def list_parts(catalogue: Catalogue) -> Iterator[CataloguePart]:
    kinds = (
        ("tool", catalogue.tools),
        ("prompt", catalogue.prompts),
        ("resource", catalogue.resources),
        ("template", catalogue.templates),
    )
    for kind, definitions in kinds:
        for definition in definitions:
            name = definition.get(KEYS[kind])
            yield CataloguePart(kind, name if isinstance(name, str) else "", definition)
    if catalogue.instructions:
        yield CataloguePart(INSTRUCTIONS, INSTRUCTIONS, {"text": catalogue.instructions})


def compute_mount_digest(mount: Mount) -> str:
    """Digest what is started or called, with every file of its package, and the names of what it gets. Not the values
    of its variables: a renewed token is no reason to ask again."""
    match mount.target:
        case StdioTarget(argv, env, folder):
            target: Mapping[str, Any] = {"argv": list(argv), "env": sorted(env), "folder": folder}
        case HttpTarget(url, transport, headers):
            target = {"url": url, "transport": str(transport), "headers": sorted(map(str.lower, headers))}
    kept = {"package": mount.package.lock.digest} if mount.package and mount.package.lock else {}
    return compute_digest({"name": mount.name, **target, **kept})


def compute_catalogue_digest(mount_digest: str, catalogue: Catalogue) -> str:
    """Digest everything that a yes is about, so that it counts for what you were shown and nothing else."""
    parts = [[part.kind, part.name, part.digest] for part in list_parts(catalogue)]
    return compute_digest({"mount": mount_digest, "parts": parts})


def compute_digest(value: Any) -> str:
    # ASCII, so that a lone surrogate has a digest too; deep values have one as well.
    return hashlib.sha256(format_canonical(value).encode()).hexdigest()


def format_canonical(value: Any) -> str:
    """Write a JSON value in the one way in which equal values are equal texts."""
    pieces: list[str] = []
    waiting: list[tuple[str, Any]] = [("value", value)]
    while waiting:
        what, current = waiting.pop()
        if what == "text":
            pieces.append(current)
        elif isinstance(current, Mapping):
            entries = sorted((str(key), inner) for key, inner in cast(Mapping[Any, Any], current).items())
            waiting.append(("text", "}"))
            for key, inner in reversed(entries):
                waiting += [("text", ","), ("value", inner), ("text", f"{json.dumps(key)}:")]
            pieces.append("{")
        elif isinstance(current, list | tuple):
            waiting.append(("text", "]"))
            for inner in reversed(list(cast(Sequence[Any], current))):
                waiting += [("text", ","), ("value", inner)]
            pieces.append("[")
        else:
            pieces.append(json.dumps(current, default=str))
    return "".join(pieces)
