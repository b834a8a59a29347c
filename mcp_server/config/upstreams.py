"""Which other servers did the operator put behind menugate? A broken entry is left out and never harms the others."""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.config.faults import ConfigFault, FaultCollector, SourceLocation
from mcp_server.config.operator_schema import KEY, SECTION
from mcp_server.config.reader import Fields
from mcp_server.config.shapes import (
    get_sections,
)
from mcp_server.config.upstream_entry import EntryReader
from mcp_server.config.value_references import MountPlaces
from mcp_server.model.destinations import Destinations
from mcp_server.model.text import quote_exactly
from mcp_server.model.upstreams import (
    Mount,
)

PLACE = re.compile(rf"(?:workspaces\..*\.)?{KEY}\.(?P<rest>.+)", re.DOTALL)
"""The key of everything within an entry, in faults."""


class UpstreamFault(Struct, frozen=True):
    """What is wrong with one entry, which is left out for that; or, as a warning, what is unwise about it."""

    server: str
    fault: ConfigFault

    def __str__(self) -> str:
        return str(self.fault)


@dataclass(frozen=True, slots=True)
class ConfiguredUpstreams:
    mounts: tuple[Mount, ...] = ()
    faults: tuple[UpstreamFault, ...] = field(default=(), compare=False)
    warnings: tuple[UpstreamFault, ...] = field(default=(), compare=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The values in the entries that no output may show."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that was written, including those of broken entries."""
        return tuple(dict.fromkeys((*(one.name for one in self.mounts), *self.broken)))

    @property
    def broken(self) -> tuple[str, ...]:
        """The names of the servers that are left out."""
        return tuple(dict.fromkeys(one.server for one in self.faults))


class ServerSections(Struct, frozen=True):
    """The `mcpServers` sections of a file, apart from the rest of it, with the faults of single entries."""

    sections: tuple[tuple[str | None, Fields], ...]
    """Each with its workspace; None is for all."""
    faults: Mapping[str, FaultCollector]
    """By server."""

    @classmethod
    def take_out(cls, node: Fields, parsed: FaultCollector, findings: FaultCollector) -> "ServerSections":
        """Take every section that is a mapping out of the file. The entries are checked one by one, so that a fault in
        one is no fault of the file; what the parser found outside of them goes to `findings`."""
        sections: list[tuple[str | None, Fields]] = []
        for workspace, holder in ((None, node), *get_sections(node, SECTION).items()):
            section = holder.fields.get(KEY)
            if isinstance(section, Fields):
                del holder.fields[KEY], holder.keys[KEY]
                sections.append((workspace, section))
        names = [name for _, section in sections for name in section.keys]
        faults: dict[str, FaultCollector] = {name: FaultCollector() for name in names}
        for fault in parsed.faults():
            place = SourceLocation(fault.file, fault.line, fault.column, fault.key)
            inside = PLACE.fullmatch(fault.key)
            server = inside and next((name for name in names if _begins_with(inside["rest"], name)), None)
            (faults[server] if server else findings).add(place, fault.message)
        return cls(tuple(sections), faults)

    def read(self, places: MountPlaces, reachable: Destinations | None) -> ConfiguredUpstreams:
        """`reachable`: by people who connect with a token, if any do."""
        return read_upstreams(self, replace(places, reachable=reachable))


def _begins_with(key: str, name: str) -> bool:
    return key.startswith(name) and key[len(name) : len(name) + 1] in ("", ".", "[")


def read_upstreams(servers: ServerSections, places: MountPlaces) -> ConfiguredUpstreams:
    """Read the entries for all workspaces and for this one."""
    real = os.path.realpath(places.workspace)
    chosen = [
        section for workspace, section in servers.sections if workspace is None or os.path.normpath(workspace) == real
    ]
    entries: dict[str, EntryReader] = {}
    for section in chosen:
        for name, place in section.keys.items():
            findings = servers.faults[name]
            if name in entries:
                # A section for one workspace adds servers; it does not replace any.
                first = entries[name].place.source
                findings.add(place, f"there is already a server {quote_exactly(name)}, in {first}; rename one")
                continue
            entries[name] = EntryReader(name, place, section.fields.get(name), findings, places)
    mounts = [mount for entry in entries.values() if (mount := entry.read_mount()) is not None]
    sound = [mount for mount in mounts if not _find_shared_slug(mount, mounts, entries)]
    secrets = tuple(secret for entry in entries.values() for secret in entry.values.secrets)
    faults = [UpstreamFault(name, fault) for name, entry in entries.items() for fault in entry.findings.faults()]
    return ConfiguredUpstreams(
        mounts=tuple(mount for mount in sound if not entries[mount.name].findings.faults()),
        faults=_mask_secrets(faults, secrets),
        warnings=tuple(UpstreamFault(name, fault) for name, entry in entries.items() for fault in entry.warnings),
        secrets=secrets,
    )


def _mask_secrets(faults: Sequence[UpstreamFault], secrets: Sequence[str]) -> tuple[UpstreamFault, ...]:
    """A fault quotes values as they were filled in, and everybody reads it: at a terminal, in logs, in reports."""
    if not (faults and secrets):
        return tuple(faults)
    from mcp_server.guards.redaction import Redactor

    mask = Redactor(secrets).redact_known_values
    return tuple(replace(one, fault=dataclasses.replace(one.fault, message=mask(one.fault.message))) for one in faults)


def _find_shared_slug(mount: Mount, mounts: Sequence[Mount], entries: Mapping[str, "EntryReader"]) -> bool:
    """Report two servers whose tools would begin alike. Neither is used, because each could pass for the other."""
    others = [other for other in mounts if other.slug == mount.slug and other is not mount]
    for other in others:
        message = (
            f"its tools would begin with `{mount.slug}_`, and so would those of {quote_exactly(other.name)}, in "
            f"{entries[other.name].place.source}; rename one"
        )
        entries[mount.name].findings.add(entries[mount.name].place, message)
    return bool(others)
