"""Which servers does a file of the workspace propose? They are shown to you, and nothing else is done with them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from mcp_server.settings import Settings


class ProposedServer(Struct, frozen=True):
    name: str
    target: Sequence[tuple[str, str]]
    """What would be started or called, and the names of what it would get."""
    differs: Sequence[str] = ()
    """If you added a server of this name: the keys that the file has changed since, or that you wrote otherwise."""
    fault: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, **dict(self.target), "differs": list(self.differs), "fault": self.fault or None}


class WorkspaceProposals(Struct, frozen=True):
    path: str = ""
    servers: Sequence[ProposedServer] = ()
    fault: str = ""
    """Why the file cannot be read; then it proposes nothing."""

    def to_json(self) -> dict[str, Any]:
        return {"file": self.path, "fault": self.fault or None, "servers": [one.to_json() for one in self.servers]}


def collect_proposals(settings: "Settings") -> WorkspaceProposals | None:
    """Collect what is proposed and not yet added as it is; None if the workspace has no such file."""
    from mcp_server.config.operator_file import UnusableFile
    from mcp_server.config.upstream_import import WORKSPACE_FILE, describe_entry, list_differences, read_server_file

    path = settings.workspace / WORKSPACE_FILE
    if not path.exists():
        return None
    try:
        file = read_server_file(path)
    except UnusableFile as why:
        return WorkspaceProposals(str(path), fault=f"{why}.")
    added = read_added(settings, list(file.entries))
    servers: list[ProposedServer] = []
    for name, entry in file.entries.items():
        differs = list_differences(entry, added[name]) if added.get(name) is not None else []
        if added.get(name) is None or differs:
            servers.append(ProposedServer(name, tuple(describe_entry(entry)), differs))
    servers += [ProposedServer(name, (), fault=fault) for name, fault in file.faults.items()]
    return WorkspaceProposals(str(path), servers)


def read_added(settings: "Settings", names: Sequence[str]) -> Mapping[str, Any]:
    """Return what your menugate.yaml says about these servers; None for those that it does not name."""
    from mcp_server.config.operator_edit import UneditableLayout
    from mcp_server.config.operator_file import UnusableFile, read_operator_file
    from mcp_server.config.upstream_edit import find_workspace_section, read_entry

    if settings.config is None:
        return {}
    try:
        text, workspace = read_operator_file(settings.config).text, str(settings.workspace)
        return {name: read_entry(text, name, find_workspace_section(text, name, workspace)) for name in names}
    except (UnusableFile, UneditableLayout):
        return {}
