"""Is everything on disk in order, and what does it come to? The house's data, or every fault in it at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp_server.config.faults import ConfigFaults, FaultCollector, SourceLocation
from mcp_server.config.hosts import hosts_in
from mcp_server.config.menu_coverage import LONGEST_NAME, validate_tool_coverage
from mcp_server.config.menus import drafts_in
from mcp_server.config.operator import OperatorConfig, config_in
from mcp_server.config.stages import stages_in
from mcp_server.model.menus import Hosts, Menus
from mcp_server.model.posture import Stage
from mcp_server.model.tools import Effect, Tool


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    menus: Menus
    stages: Mapping[Stage, frozenset[Effect]]
    hosts: Hosts
    config: OperatorConfig


def load(
    folders: Sequence[Path],
    config: Path | None,
    tools: Mapping[str, Tool],
    longest_name: int = LONGEST_NAME,
    said: str | None = None,
) -> ConfigFiles | ConfigFaults:
    """`folders`: the shipped menus first, then those of packs; the operator's own are named in the configuration.
    `said` is taken for what that file says, where somebody has read it before."""
    findings = FaultCollector()
    if not folders:
        return _no_folder()
    chosen = config_in(config, findings, tools, said) if config is not None else OperatorConfig()
    drafts = drafts_in([*folders, *chosen.menus], findings)
    stages = stages_in(folders[0] / "stages.yaml", findings)
    hosts = Hosts((*chosen.hosts, *hosts_in(folders[0] / "hosts.yaml", findings)))
    faults = (*findings.faults(), *validate_tool_coverage(tools, drafts, longest_name))
    if faults:
        return ConfigFaults(tuple(sorted(set(faults))))
    modes = tuple(mode for draft in drafts.modes if (mode := draft.finished) is not None)
    return ConfigFiles(Menus(modes), stages, hosts, chosen)


def _no_folder() -> ConfigFaults:
    findings = FaultCollector()
    findings.add(SourceLocation("menus"), "there is no menus folder")
    return ConfigFaults(findings.faults())
