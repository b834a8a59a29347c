"""What is in force after you edit the files while menugate runs? What they say now, or their last valid version."""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.config.faults import ConfigFaults, FaultCollector
from mcp_server.config.load import (
    Configuration,
    apply_configuration,
    find_longest_name,
    get_mount_places,
    list_menu_folders,
    load_menus,
    load_workspace_config,
    read_operator_text,
)
from mcp_server.config.menus import list_mode_files
from mcp_server.config.operator import OperatorConfig, read_operator_config
from mcp_server.config.workspace import FILE, PROMPTS, WorkspaceConfig
from mcp_server.model.menus import Menus
from mcp_server.settings import OPERATORS_FILE, Settings
from mcp_server.state.trust import Trusted


class RenewedConfiguration(Struct, frozen=True):
    configuration: Configuration
    fault: str
    """What is wrong with the files now; empty if nothing is."""
    operators: bool
    """Whether the operator's file is in force as it is on disk."""
    own: bool
    """The same for the workspace's own file."""


def reload_configuration(current: Configuration, settings: Settings, settled: bool = True) -> RenewedConfiguration:
    """Apply the files as they are now to the same tools, and report what is wrong with them. If a file is invalid,
    empty or gone, its previous text stays in force; the other file is applied as it is. `settled`: nobody has written
    them for a moment."""
    operator, operator_text, faults = reload_operator_config(current, settings)
    operator, kept_faults = _keep_valid_servers(operator, current, settings)
    menus, menu_faults = reload_menus(current, operator, settings, settled)
    own, workspace_faults = reload_workspace_config(current, settings)
    faults_now, combined_fault = [*faults, *kept_faults, *menu_faults, *workspace_faults], ""
    before = (current.library.config, current.said.get(settings.config) if settings.config else None)
    if menus is None:
        # No modes fit the operator's file as it is now.
        (operator, operator_text), menus = before, current.library.menus
        faults = [*faults, *menu_faults]
    for (candidate, candidate_text), candidate_own in product(((operator, operator_text), before), (own, current.own)):
        library = replace(
            current.library, config=candidate, menus=menus if candidate is operator else current.library.menus
        )
        candidate_now = _remount(replace(current, library=library, own=candidate_own), settings, settled)
        applied = apply_configuration(candidate_now, settings, candidate_text)
        if isinstance(applied, ConfigFaults):
            combined_fault = combined_fault or str(applied)
        elif settings.mode is not None and settings.mode not in applied.policy.menus.by_name:
            combined_fault = combined_fault or _describe_missing_mode(settings)
        else:
            fault = "\n".join([*faults_now, *([combined_fault] if combined_fault else [])])
            return RenewedConfiguration(
                applied, fault, not faults and candidate is operator, not workspace_faults and candidate_own is own
            )
    return RenewedConfiguration(current, "\n".join([*faults_now, combined_fault]), False, False)


def _keep_valid_servers(
    operator: OperatorConfig, current: Configuration, settings: Settings
) -> tuple[OperatorConfig, Sequence[str]]:
    before = current.library.config.upstreams
    if operator.upstreams is None or before is None or operator.upstreams is before:
        return operator, ()
    from mcp_server.config.upstream_reload import keep_valid_entries  # most people mount nothing

    kept = keep_valid_entries(operator.upstreams, before, settings)
    return replace(operator, upstreams=kept.upstreams), kept.faults


def _remount(configuration: Configuration, settings: Settings, settled: bool) -> Configuration:
    if configuration.library.config.upstreams is None and configuration.mounted is None:
        return configuration
    from mcp_server.config.upstream_reload import remount_servers  # most people mount nothing

    return remount_servers(configuration, settings, settled)


def reload_menus(
    current: Configuration, operator: OperatorConfig, settings: Settings, settled: bool
) -> tuple[Menus | None, Sequence[str]]:
    """Choose the modes that fit the operator's file: those of the files as they are now, if nobody is writing them,
    else the last valid ones. None if neither do."""
    held = current.library.menus
    missing = _find_missing_servers(held, operator, settings.config)
    if not settled and not missing:
        return held, ()
    folders = [*list_menu_folders(current.packs, settings), *current.library.folders]
    tools = {name: tool for name, tool in current.policy.tools.items() if tool.written is None}
    now = load_menus(folders, operator, tools, find_longest_name(current.packs))
    if not isinstance(now, ConfigFaults):
        # The mode may also be that of a mounted server, which has no file.
        if settings.mode not in held.by_name or settings.mode in now.by_name:
            return (held if now == held else now), ()
        return held, [_describe_missing_mode(settings)]
    return (None, missing) if missing else (held, [str(now)])


def _describe_missing_mode(settings: Settings) -> str:
    return f"there is no mode `{settings.mode}` any more, which this server was started with"


def _find_missing_servers(menus: Menus, config: OperatorConfig, path: Path | None) -> list[str]:
    if not any(mode.servers for mode in menus):
        return []
    from mcp_server.config.upstream_reload import find_missing_servers  # most people mount nothing

    return [f"{path}: {missing}" for missing in find_missing_servers(menus, config.upstreams)]


def reload_operator_config(current: Configuration, settings: Settings) -> tuple[OperatorConfig, str | None, list[str]]:
    previous_text = current.said.get(settings.config) if settings.config else None
    text = read_operator_text(settings, {})
    if settings.config is None:
        return OperatorConfig(), None, []
    if previous_text is not None and (text is None or (previous_text.strip() and not text.strip())):
        return current.library.config, previous_text, [describe_missing_file(settings.config, text)]
    findings = FaultCollector()
    config = read_operator_config(settings.config, findings, current.policy.tools, text, *get_mount_places(settings))
    if faults := findings.faults():
        return current.library.config, previous_text, [str(ConfigFaults(faults))]
    return config, text, []


def reload_workspace_config(current: Configuration, settings: Settings) -> tuple[WorkspaceConfig, list[str]]:
    own, previous_text = load_workspace_config(settings, {}), current.own.texts.get(FILE)
    if isinstance(own, ConfigFaults):
        return current.own, [str(own)]
    text = own.texts.get(FILE)
    if previous_text is not None and (text is None or (previous_text.strip() and not text.strip())):
        return current.own, [describe_missing_file(settings.workspace / FILE, text)]
    return own, []


def describe_missing_file(path: Path, text: str | None) -> str:
    return f"{path}: the file {'is missing or cannot be read' if text is None else 'is empty'}"


def list_sources(configuration: Configuration) -> tuple[object, ...]:
    """What two versions must have in common to be the same: the texts, and what the texts only refer to."""
    mounted, upstreams = configuration.mounted, configuration.library.config.upstreams
    mounts = (mounted.mounts if mounted else (), upstreams.mounts if upstreams else ())
    return configuration.said, configuration.own, configuration.trusted, configuration.library.menus, *mounts


def list_watched_paths(configuration: Configuration, settings: Settings, secrets: Path | None) -> Iterator[str]:
    """Yield the files and folders in which a change may matter. `secrets`: the folder of those that are stored."""
    top = settings.workspace
    yield str(settings.config or settings.operators / OPERATORS_FILE)
    yield str(top / FILE)
    for folder in (*settings.menus, *configuration.library.folders):
        yield str(folder)
        yield from map(str, list_mode_files(folder))
    if trust := Trusted(settings.secrets).get_path(top):
        yield str(trust)
    if secrets:
        yield str(secrets)
    if configuration.mounted is not None:
        from mcp_server.state.upstream_pins import UpstreamPins  # most people mount nothing

        if approvals := UpstreamPins(settings.secrets, top).folder:
            yield str(approvals)
    yield str(top / PROMPTS)
    for name in configuration.own.texts:
        if name != FILE:
            yield str(top / name)
            yield str((top / name).parent)
