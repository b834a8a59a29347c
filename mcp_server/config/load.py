"""What is the configuration? Tools, menus, rules and prompts, read and checked together, or every fault at once."""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

import mcp_server
from mcp_server.config.faults import ConfigFault, ConfigFaults, FaultCollector, SourceLocation
from mcp_server.config.hosts import load_hosts
from mcp_server.config.limits import Limits, build_limits, describe_ceiling_source
from mcp_server.config.menu_coverage import LONGEST_NAME, validate_tool_coverage
from mcp_server.config.menus import load_mode_drafts
from mcp_server.config.operator import OperatorConfig, read_operator_config
from mcp_server.config.prompts import PromptFolder, Prompts
from mcp_server.config.reader import read_text_file
from mcp_server.config.stages import load_stages, load_work_modes
from mcp_server.config.workspace import FILE, PROMPTS, WorkspaceConfig, read_workspace_config
from mcp_server.model.menus import Hosts, Menus
from mcp_server.model.parts import list_parts
from mcp_server.model.policy import Budget, Policy, RuleOwner, Rules, RuleText
from mcp_server.model.posture import Posture, Stage, WorkMode
from mcp_server.model.tool_packs import Pack
from mcp_server.model.tools import Effect, Tool
from mcp_server.policy.arguments import build_argument_check, build_argument_cleaner
from mcp_server.policy.network import build_web_rules
from mcp_server.policy.rules import compile_rules, find_rule_server
from mcp_server.settings import BuildError, Settings
from mcp_server.state.trust import Trusted
from tools.catalog import CATALOG, READ_LINE

if TYPE_CHECKING:
    from mcp_server.config.upstream_tools import MountedTools
    from mcp_server.config.value_references import MountPlaces

# First the files that need no rules: menus, stages, hosts and the operator's settings.


class ConfigFiles(Struct, frozen=True):
    menus: Menus
    stages: Mapping[Stage, frozenset[Effect]]
    work_modes: Mapping[WorkMode, frozenset[Effect]]
    hosts: Hosts
    config: OperatorConfig
    folders: tuple[Path, ...] = ()
    """Those that the operator's file named for modes when menugate started. No call may change what is in them, and
    that is settled at the start, so a folder that is named later counts after a restart."""


def load_config_files(
    folders: Sequence[Path],
    config: Path | None,
    tools: Mapping[str, Tool],
    longest_name: int = LONGEST_NAME,
    operator_text: str | None = None,
    settings: Settings | None = None,
) -> ConfigFiles | ConfigFaults:
    """`folders`: the shipped menus first, then those of packs; the configuration names the operator's own.
    `operator_text` is the text of the configuration if it was read before."""
    findings = FaultCollector()
    if not folders:
        return _make_missing_folder_faults()
    operator = OperatorConfig()
    if config is not None:
        operator = read_operator_config(config, findings, tools, operator_text, *get_mount_places(settings))
    stages = load_stages(folders[0] / "stages.yaml", findings)
    work_modes = load_work_modes(folders[0] / "work_modes.yaml", findings)
    hosts = Hosts((*operator.hosts, *load_hosts(folders[0] / "hosts.yaml", findings)))
    menus = load_menus([*folders, *operator.menus], operator, tools, longest_name)
    faults = (*findings.faults(), *(menus.faults if isinstance(menus, ConfigFaults) else ()))
    if faults or isinstance(menus, ConfigFaults):
        return ConfigFaults(tuple(sorted(set(faults))))
    return ConfigFiles(menus, stages, work_modes, hosts, operator, operator.menus)


def load_menus(
    folders: Sequence[Path], operator: OperatorConfig, tools: Mapping[str, Tool], longest_name: int
) -> Menus | ConfigFaults:
    """Load the modes of these folders, and check them against the tools and the servers that there are."""
    findings = FaultCollector()
    drafts = load_mode_drafts(folders, findings)
    servers = operator.upstreams.names if operator.upstreams else ()
    faults = (*findings.faults(), *validate_tool_coverage(tools, drafts, longest_name, servers))
    if faults:
        return ConfigFaults(tuple(sorted(set(faults))))
    return Menus(tuple(mode for draft in drafts.modes if (mode := draft.mode) is not None))


def _make_missing_folder_faults() -> ConfigFaults:
    findings = FaultCollector()
    findings.add(SourceLocation("menus"), "there is no menus folder")
    return ConfigFaults(findings.faults())


# Then everything together: tools, menus, rules and prompts.
#
# Read-only commands (`menus`, `check`, `explain`) need only this; the server is built on it.

DATA = Path(mcp_server.__file__).parents[1]
"""The folder of `menus/` and `prompts/`: beside the packages, in a checkout and in an installed wheel alike."""
PACKS = "menugate.tools"
"""The entry point group of third-party packs; docs/packs.md promises it."""


class Configuration(Struct, frozen=True):
    """Everything that is configured: the tools, the menus, the policy, the prompts."""

    packs: tuple[Pack, ...]
    library: ConfigFiles
    policy: Policy
    posture: Posture
    own: WorkspaceConfig
    """The workspace's own settings."""
    trusted: bool
    """Whether the user trusts those settings in their present form."""
    words: Prompts
    said: Mapping[Path, str] = field(default_factory=dict[Path, str])
    """The texts of the operator's file and the workspace's own, as they were read."""
    mounted: "MountedTools | None" = None
    """The tools of the servers behind menugate; None if nothing was ever mounted."""
    find_wire_fault: Callable[[Tool], str | None] = lambda _: None
    """Says why a tool of theirs cannot be listed."""


def load_installed_packs() -> tuple[Pack, ...]:
    """Load the packs installed beside menugate. A pack that cannot be loaded stops the server, by name."""
    packs: list[Pack] = []
    for entry_point in entry_points(group=PACKS):
        try:
            pack = entry_point.load()
        except Exception as error:
            raise BuildError(f"the pack `{entry_point.name}` cannot be loaded: {error}") from error
        if not isinstance(pack, Pack):
            raise BuildError(
                f"the pack `{entry_point.name}` cannot be loaded: `{entry_point.value}` is not a `Pack`;"
                " its entry point must name one, made with `mcp_server.packs.Pack`"
            )
        packs.append(pack)
    return tuple(packs)


def load_configuration(
    settings: Settings,
    packs: Sequence[Pack] = (),
    bare: bool = False,
    unheard: bool = False,
    texts: Mapping[Path, str | None] | None = None,
    find_wire_fault: Callable[[Tool], str | None] = lambda _: None,
) -> Configuration | ConfigFaults:
    """Read and check everything on disk; return every fault at once if there are any. `bare` leaves out installed
    packs, `unheard` the workspace's own settings. `texts` replace files by what they held before; None for the
    workspace's own file means that it did not exist."""
    all_packs = (*packs, *(() if bare else load_installed_packs()))
    tools = {tool.name: tool for tool in (*CATALOG, *(tool for pack in all_packs for tool in pack.tools))}
    if duplicates := find_duplicate_tools(all_packs):
        return ConfigFaults(duplicates)
    operator_text = read_operator_text(settings, texts or {})
    folders, longest = list_menu_folders(all_packs, settings), find_longest_name(all_packs)
    library = load_config_files(folders, settings.config, tools, longest, operator_text, settings)
    if isinstance(library, ConfigFaults):
        return library
    own = WorkspaceConfig() if unheard else load_workspace_config(settings, texts or {})
    if isinstance(own, ConfigFaults):
        return own
    clean_arguments = build_argument_cleaner({tool.name: tool for tool in CATALOG})
    policy = Policy(
        tools=tools,
        menus=library.menus,
        stages=library.stages,
        work_modes=library.work_modes,
        unfit=build_argument_check(tools),
        meant=clean_arguments,
        read_line=READ_LINE,
    )
    loaded = Configuration(all_packs, library, policy, Posture(), own, False, Prompts(()), {}, None, find_wire_fault)
    if library.config.upstreams is not None and library.config.upstreams.mounts:
        from mcp_server.config.upstream_tools import mount_known_servers  # most people mount nothing

        loaded = mount_known_servers(loaded, settings)
    return apply_configuration(loaded, settings, operator_text)


def list_menu_folders(packs: Sequence[Pack], settings: Settings) -> list[Path]:
    """List the folders with modes, but for those that the operator's file names."""
    return [DATA / "menus", *(Path(folder) for pack in packs for folder in pack.menus), *settings.menus]


def find_longest_name(packs: Sequence[Pack]) -> int:
    return max(LONGEST_NAME, 0, *(pack.longest_name for pack in packs))


def apply_configuration(
    configuration: Configuration, settings: Settings, operator_text: str | None
) -> Configuration | ConfigFaults:
    """Apply the operator's and the workspace's settings: rules, ceilings, budgets and prompts."""
    operator, own = configuration.library.config, configuration.own
    trusted = Trusted(settings.secrets).is_trusted(settings.workspace, own.digest)
    tools = {name: tool for name, tool in configuration.policy.tools.items() if tool.written is None}
    servers = operator.upstreams.names if operator.upstreams else ()
    rules = compile_all_rules(operator.rules, own, trusted, tools, settings, servers)
    if isinstance(rules, ConfigFaults):
        return rules
    policy = replace(configuration.policy, rules=rules, menus=configuration.library.menus)
    if configuration.mounted is not None:
        from mcp_server.config.upstream_tools import build_mounted_policy

        policy, mounted = build_mounted_policy(configuration, settings, trusted)
        configuration = replace(configuration, mounted=mounted)
    rules = Rules((*policy.rules.every, *build_web_rules(operator.web, policy.tools)))
    limits, budget = build_limits(settings, operator, own.max_profile), narrow_budget(operator.budget, own.budget)
    texts = {settings.workspace / FILE: own.texts[FILE]} if FILE in own.texts else {}
    return replace(
        configuration,
        policy=replace(policy, rules=rules, ceiling=limits.ceiling, budget=budget, web=operator.web),
        posture=limits.posture,
        trusted=trusted,
        words=Prompts(list_prompt_folders(settings, operator.prompts, own if trusted else WorkspaceConfig())),
        said=texts if operator_text is None or settings.config is None else {**texts, settings.config: operator_text},
    )


def get_mount_places(settings: Settings | None) -> "tuple[Path | None, Callable[[], MountPlaces] | None]":
    """Return the workspace, and what the entries of `mcpServers` are read against."""

    def build_mount_places() -> "MountPlaces":
        from mcp_server.config.secrets import build_secret_finder  # most people mount nothing
        from mcp_server.config.value_references import MountPlaces, ValueSources
        from mcp_server.state.upstream_packages import PackageStore

        assert settings is not None
        sources = ValueSources(secret=build_secret_finder(settings))
        kept = PackageStore(settings.secrets) if settings.secrets else None
        return MountPlaces(
            settings.workspace,
            settings.search_path,
            sources,
            find_package=kept.find if kept else None,
            find_home=kept.find_home if kept else None,
        )

    return (settings.workspace, build_mount_places) if settings else (None, None)


def read_operator_text(settings: Settings, texts: Mapping[Path, str | None]) -> str | None:
    """Return the text of the operator's file; None if there is none or it cannot be read, which `load` reports."""
    if settings.config is None:
        return None
    known = texts.get(settings.config)
    return read_text_file(settings.config, FaultCollector()) if known is None else known


def load_workspace_config(settings: Settings, texts: Mapping[Path, str | None]) -> WorkspaceConfig | ConfigFaults:
    """Read the workspace's own settings, unless its file was named as the operator's."""
    path = settings.workspace / FILE
    if settings.config == path:
        return WorkspaceConfig()
    findings = FaultCollector()
    own = read_workspace_config(settings.workspace, findings, texts.get(path), path in texts and texts[path] is None)
    faults = findings.faults()
    return ConfigFaults(faults) if faults else own


def compile_all_rules(
    operators: Sequence[RuleText],
    own: WorkspaceConfig,
    trusted: bool,
    tools: Mapping[str, Tool],
    settings: Settings,
    servers: Sequence[str] = (),
) -> Rules | ConfigFaults:
    """Compile the operator's rules and the workspace's. Each file must be valid by itself: a rule that stands in both
    is not a duplicate in either. Rules about the tools of `servers` are compiled later, when those are known."""
    roots = (str(settings.workspace),)
    operator_rules = compile_rules(leave_out_servers(operators, servers), tools, READ_LINE, roots)
    workspace_rules = compile_rules(leave_out_servers(own.rules, servers), tools, READ_LINE, roots)
    if not isinstance(operator_rules, Rules) or not isinstance(workspace_rules, Rules):
        faults = [
            fault
            for compiled in (operator_rules, workspace_rules)
            if not isinstance(compiled, Rules)
            for fault in compiled
        ]
        return ConfigFaults(tuple(ConfigFault(fault.source, 0, "rules", fault.message) for fault in faults))
    applicable = own.rules if trusted else own.narrowing_rules
    sources = {(rule.kind, rule.source, rule.text) for rule in applicable}
    kept_rules = [
        replace(rule, owner=RuleOwner.WORKSPACE)
        for rule in workspace_rules.every
        if (rule.kind, rule.source, rule.text) in sources
    ]
    return Rules((*operator_rules.every, *kept_rules))


def leave_out_servers(rules: Sequence[RuleText], servers: Sequence[str]) -> Sequence[RuleText]:
    """Leave out the rules about tools of these servers."""
    if not servers:
        return rules
    named = ((rule, find_rule_server(rule.text)) for rule in rules)
    return [rule for rule, server in named if server is None or not any(fnmatchcase(one, server) for one in servers)]


def list_prompt_folders(settings: Settings, operators: Path | None, own: WorkspaceConfig) -> tuple[PromptFolder, ...]:
    """List the folders searched for prompts, in order: the trusted workspace's, the operator's, the shipped one."""
    prompt_folders: list[PromptFolder] = []
    if own.prompts:
        prompt_folders.append(
            PromptFolder("the workspace's, which you trust", settings.workspace / PROMPTS, own.prompts)
        )
    if operators is not None:
        prompt_folders.append(PromptFolder("the operator's", operators))
    return (*prompt_folders, PromptFolder("shipped", DATA / "prompts"))


def narrow_budget(one: Budget, other: Budget) -> Budget:
    """Take the lower of two limits, or the only one set."""
    limits: dict[str, int | None] = {}
    for limit_name in list_parts(Budget):
        values = [limit for budget in (one, other) if (limit := getattr(budget, limit_name)) is not None]
        limits[limit_name] = min(values, default=None)
    return Budget(**limits)


def find_duplicate_tools(packs: Sequence[Pack]) -> tuple[ConfigFault, ...]:
    """Find tools with the same name: a pack that replaced another's tool would get around every rule about it."""
    owners = {tool.name: "menugate itself" for tool in CATALOG}
    faults: list[ConfigFault] = []
    for pack in packs:
        for tool in pack.tools:
            if tool.name in owners:
                faults.append(
                    ConfigFault(
                        f"pack {pack.name}", 0, tool.name, f"{owners[tool.name]} already has a tool with that name"
                    )
                )
            owners.setdefault(tool.name, f"the pack {pack.name}")
    return tuple(faults)


def get_limits(configuration: Configuration, settings: Settings) -> Limits:
    """Return the limits that a configuration sets on the user's choices."""
    config, ceiling = configuration.library.config, configuration.policy.ceiling
    return Limits(
        configuration.posture,
        settings.profile or config.posture.profile,
        ceiling,
        {token.principal: token.max_profile for token in config.tokens},
        describe_ceiling_source(ceiling, config.max_profile, settings),
    )
