"""Which servers are mounted after you edit menugate.yaml while menugate runs?

A valid entry counts as it is now. One that has a fault keeps its last valid form, as a file with a fault does. While an
editor may still be writing the file, servers only go, and none comes or changes.
"""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.config.upstream_tools import MountedTools, mount_catalogues
from mcp_server.config.upstreams import ConfiguredUpstreams
from mcp_server.model.menus import Menus
from mcp_server.model.secrets import SecretUnavailable
from mcp_server.model.text import quote_exactly, to_one_line
from mcp_server.model.upstreams import Catalogue, Mount
from mcp_server.state.upstream_catalogues import describe_definition, load_catalogues
from mcp_server.state.upstream_pins import UpstreamPins

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.settings import Settings


class KeptUpstreams(Struct, frozen=True):
    """What the file says now, and the last valid form of what it no longer says validly."""

    upstreams: ConfiguredUpstreams | None
    faults: tuple[str, ...] = ()
    """Why an earlier form stays in force."""


def keep_valid_entries(
    now: ConfiguredUpstreams | None, before: ConfiguredUpstreams | None, settings: "Settings"
) -> KeptUpstreams:
    """Put the last valid form of every entry that has a fault now in its place."""
    if now is None or before is None or not now.faults:
        return KeptUpstreams(now)
    earlier = {mount.name: mount for mount in before.mounts}
    kept = [earlier[name] for name in now.broken if name in earlier and _has_its_secrets(earlier[name], settings)]
    taken = {mount.slug for mount in now.mounts}
    kept = [mount for mount in kept if mount.slug not in taken]
    names = {mount.name for mount in kept}
    faults = tuple(
        f"{to_one_line(str(one), 1000)}; the server {quote_exactly(one.server)} stays as it was"
        for one in now.faults
        if one.server in names
    )
    return KeptUpstreams(dataclasses.replace(now, mounts=(*now.mounts, *kept)), faults)


def _has_its_secrets(mount: Mount, settings: "Settings") -> bool:
    """A secret that you removed is not used any longer, whatever else is wrong."""
    from mcp_server.config.secrets import build_secret_finder

    find = build_secret_finder(settings)
    try:
        for name in mount.secrets:
            find(name)
    except SecretUnavailable:
        return False
    return True


def find_missing_servers(menus: Menus, upstreams: ConfiguredUpstreams | None) -> Iterator[str]:
    """Yield what is wrong with a file without servers that modes name, as it would be at the start."""
    names = upstreams.names if upstreams else ()
    for mode in menus:
        for server in sorted(mode.servers - set(names)):
            yield (
                f"the mode `{mode.name}` names the server {quote_exactly(server)}, which is not under `mcpServers` any "
                "more; remove it from the mode, or set `disabled: true` for it"
            )


def remount_servers(configuration: "Configuration", settings: "Settings", settled: bool) -> "Configuration":
    """Mount what the configuration says, with the catalogues that are known. The rules must be applied afterwards."""
    before, upstreams = configuration.mounted, configuration.library.config.upstreams
    wanted = tuple(mount for mount in upstreams.mounts if not mount.disabled) if upstreams else ()
    present = before.mounts if before else ()
    mounts = wanted if settled else tuple(mount for mount in present if mount in wanted)
    if mounts == present:
        return configuration
    catalogues = find_catalogues(mounts, before, settings)
    if before is None:
        judge = UpstreamPins(settings.secrets, settings.workspace).judge
        mounted = MountedTools(
            mounts,
            catalogues,
            judge,
            find_wire_fault=configuration.find_wire_fault,
            clean=configuration.policy.meant,
        )
    else:
        mounted = replace(before, mounts=mounts, catalogues=catalogues)
    return mount_catalogues(configuration, mounted)


def find_catalogues(
    mounts: tuple[Mount, ...], before: MountedTools | None, settings: "Settings"
) -> dict[str, Catalogue]:
    """Find what each server said last: to this process, or else to any."""
    known: dict[str, Catalogue] = {}
    earlier = {mount.name: mount for mount in before.mounts} if before else {}
    for mount in mounts:
        same = earlier.get(mount.name)
        if before and same and describe_definition(same) == describe_definition(mount):
            known |= {name: one for name, one in before.catalogues.items() if name == mount.name}
    unknown = [mount for mount in mounts if mount.name not in known]
    return {**known, **load_catalogues(settings.state, settings.secrets, unknown)}
