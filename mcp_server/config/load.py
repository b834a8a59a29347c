"""What holds before anybody calls? Tools, menus, rules and prompts, or every fault in them at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import entry_points
from itertools import product
from pathlib import Path

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
from mcp_server.model.policy import Budget, Policy, Rules, RuleText
from mcp_server.model.posture import Posture, Stage, WorkMode
from mcp_server.model.tool_packs import Pack
from mcp_server.model.tools import Effect, Tool
from mcp_server.policy.arguments import build_argument_check, build_argument_cleaner
from mcp_server.policy.rules import compile_rules
from mcp_server.settings import BuildError, Settings
from mcp_server.state.trust import Trusted
from tools.catalog import CATALOG, READ_LINE

# Is everything on disk in order, and what does it come to? The house's data, or every fault in it at once.


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    menus: Menus
    stages: Mapping[Stage, frozenset[Effect]]
    work_modes: Mapping[WorkMode, frozenset[Effect]]
    hosts: Hosts
    config: OperatorConfig


def load_config_files(
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
        return _make_missing_folder_faults()
    chosen = read_operator_config(config, findings, tools, said) if config is not None else OperatorConfig()
    drafts = load_mode_drafts([*folders, *chosen.menus], findings)
    stages = load_stages(folders[0] / "stages.yaml", findings)
    work_modes = load_work_modes(folders[0] / "work_modes.yaml", findings)
    hosts = Hosts((*chosen.hosts, *load_hosts(folders[0] / "hosts.yaml", findings)))
    faults = (*findings.faults(), *validate_tool_coverage(tools, drafts, longest_name))
    if faults:
        return ConfigFaults(tuple(sorted(set(faults))))
    modes = tuple(mode for draft in drafts.modes if (mode := draft.mode) is not None)
    return ConfigFiles(Menus(modes), stages, work_modes, hosts, chosen)


def _make_missing_folder_faults() -> ConfigFaults:
    findings = FaultCollector()
    findings.add(SourceLocation("menus"), "there is no menus folder")
    return ConfigFaults(findings.faults())


# What holds before anybody calls? The tools, the menus and the rules, read and checked together.
#
# Commands that only look (`menus`, `check`, `explain`) need this and no more; the house is built on it.

DATA = Path(mcp_server.__file__).parents[1]
"""Where `menus/` and `prompts/` lie: beside the packages, in a checkout and in an installed wheel alike."""
PACKS = "menugate.tools"
"""The entry point group of other people's packs; docs/packs.md promises it."""


@dataclass(frozen=True)
class Configuration:
    """What holds before anybody calls: the tools, the menus, the policy."""

    packs: tuple[Pack, ...]
    library: ConfigFiles
    policy: Policy
    posture: Posture
    own: WorkspaceConfig
    """What the workspace says of itself."""
    trusted: bool
    """Does the person trust that, as it is?"""
    words: Prompts
    said: Mapping[Path, str] = field(default_factory=dict[Path, str])
    """What the operator's file and the workspace's own said when they were read."""


def load_installed_packs() -> tuple[Pack, ...]:
    """What third parties ship. A pack that cannot be loaded is named, and the house is not built without it."""
    found: list[Pack] = []
    for point in entry_points(group=PACKS):
        try:
            pack = point.load()
        except Exception as fault:
            raise BuildError(f"the pack `{point.name}` cannot be loaded: {fault}") from fault
        if not isinstance(pack, Pack):
            raise BuildError(
                f"the pack `{point.name}` cannot be loaded: `{point.value}` is no `Pack`;"
                " its entry point has to name one, made with `mcp_server.packs.Pack`"
            )
        found.append(pack)
    return tuple(found)


def load_configuration(
    settings: Settings,
    packs: Sequence[Pack] = (),
    bare: bool = False,
    unheard: bool = False,
    texts: Mapping[Path, str | None] | None = None,
) -> Configuration | ConfigFaults:
    """Everything on disk, read and checked; every fault at once where there is one. `bare` leaves out what third
    parties installed here, `unheard` what the workspace says of itself. `texts` stand for files as they were, the
    workspace's own also for that there was none."""
    every = (*packs, *(() if bare else load_installed_packs()))
    tools = {tool.name: tool for tool in (*CATALOG, *(tool for pack in every for tool in pack.tools))}
    if twice := find_duplicate_tools(every):
        return ConfigFaults(twice)
    folders = [DATA / "menus", *(Path(folder) for pack in every for folder in pack.menus), *settings.menus]
    longest = max(LONGEST_NAME, 0, *(pack.longest_name for pack in every))
    said = read_operator_text(settings, texts or {})
    library = load_config_files(folders, settings.config, tools, longest, said)
    if isinstance(library, ConfigFaults):
        return library
    own = WorkspaceConfig() if unheard else load_workspace_config(settings, texts or {})
    if isinstance(own, ConfigFaults):
        return own
    meant = build_argument_cleaner({tool.name: tool for tool in CATALOG})
    policy = Policy(
        tools=tools,
        menus=library.menus,
        stages=library.stages,
        work_modes=library.work_modes,
        unfit=build_argument_check(tools),
        meant=meant,
        read_line=READ_LINE,
    )
    return apply_configuration(
        Configuration(every, library, policy, Posture(), own, False, Prompts(())), settings, said
    )


def apply_configuration(found: Configuration, settings: Settings, said: str | None) -> Configuration | ConfigFaults:
    """The same under what its configuration and its workspace's own word say: rules, ceilings, budgets, words."""
    config, own, tools = found.library.config, found.own, found.policy.tools
    trusted = Trusted(settings.secrets).is_trusted(settings.workspace, own.digest)
    rules = compile_all_rules(config.rules, own, trusted, tools, settings)
    if isinstance(rules, ConfigFaults):
        return rules
    limits, budget = build_limits(settings, config, own.max_profile), narrow_budget(config.budget, own.budget)
    texts = {settings.workspace / FILE: own.texts[FILE]} if FILE in own.texts else {}
    return replace(
        found,
        policy=replace(found.policy, rules=rules, ceiling=limits.ceiling, budget=budget),
        posture=limits.posture,
        trusted=trusted,
        words=Prompts(list_prompt_folders(settings, config.prompts, own if trusted else WorkspaceConfig())),
        said=texts if said is None or settings.config is None else {**texts, settings.config: said},
    )


@dataclass(frozen=True, slots=True)
class RenewedConfiguration:
    configuration: Configuration
    fault: str
    """What is wrong with what the files say now; empty where nothing is."""
    operators: bool
    """The operator's file counts as it is on disk."""
    own: bool
    """So does the workspace's own."""


def reload_configuration(found: Configuration, settings: Settings) -> RenewedConfiguration:
    """The same tools and menus under what the files say now, and what is wrong with them. For a file that cannot be
    understood, is empty or gone, what it said before counts; the other one counts as it is."""
    config, said, faults = reload_operator_config(found, settings)
    own, ill = reload_workspace_config(found, settings)
    told, wrong = [*faults, *ill], ""
    before = (found.library.config, found.said.get(settings.config) if settings.config else None)
    for (one, text), other in product(((config, said), before), (own, found.own)):
        library = replace(found.library, config=one)
        made = apply_configuration(replace(found, library=library, own=other), settings, text)
        if not isinstance(made, ConfigFaults):
            fault = "\n".join([*told, *([wrong] if wrong else [])])
            return RenewedConfiguration(made, fault, not faults and one is config, not ill and other is own)
        wrong = wrong or str(made)
    return RenewedConfiguration(found, "\n".join([*told, wrong]), False, False)


def reload_operator_config(found: Configuration, settings: Settings) -> tuple[OperatorConfig, str | None, list[str]]:
    before = found.said.get(settings.config) if settings.config else None
    said = read_operator_text(settings, {})
    if settings.config is None:
        return OperatorConfig(), None, []
    if before is not None and (said is None or (before.strip() and not said.strip())):
        return found.library.config, before, [describe_missing_file(settings.config, said)]
    findings = FaultCollector()
    config = read_operator_config(settings.config, findings, found.policy.tools, said)
    if wrong := findings.faults():
        return found.library.config, before, [str(ConfigFaults(wrong))]
    return config, said, []


def reload_workspace_config(found: Configuration, settings: Settings) -> tuple[WorkspaceConfig, list[str]]:
    own, before = load_workspace_config(settings, {}), found.own.texts.get(FILE)
    if isinstance(own, ConfigFaults):
        return found.own, [str(own)]
    now = own.texts.get(FILE)
    if before is not None and (now is None or (before.strip() and not now.strip())):
        return found.own, [describe_missing_file(settings.workspace / FILE, now)]
    return own, []


def describe_missing_file(path: Path, said: str | None) -> str:
    return f"{path}: it is {'gone, or cannot be read' if said is None else 'empty'}"


def read_operator_text(settings: Settings, texts: Mapping[Path, str | None]) -> str | None:
    """What the operator's file says; None where there is none, or where it cannot be read, which `load` tells."""
    if settings.config is None:
        return None
    known = texts.get(settings.config)
    return read_text_file(settings.config, FaultCollector()) if known is None else known


def load_workspace_config(settings: Settings, texts: Mapping[Path, str | None]) -> WorkspaceConfig | ConfigFaults:
    """What the workspace says. A file that the person named as the operator's is not asked a second time."""
    path = settings.workspace / FILE
    if settings.config == path:
        return WorkspaceConfig()
    findings = FaultCollector()
    own = read_workspace_config(settings.workspace, findings, texts.get(path), path in texts and texts[path] is None)
    faults = findings.faults()
    return ConfigFaults(faults) if faults else own


def compile_all_rules(
    operators: Sequence[RuleText], own: WorkspaceConfig, trusted: bool, tools: Mapping[str, Tool], settings: Settings
) -> Rules | ConfigFaults:
    """The operator's rules and the workspace's. Each file has to make sense by itself: what the one says twice over
    because the other says it too is no fault of either."""
    roots = (str(settings.workspace),)
    theirs = compile_rules(operators, tools, READ_LINE, roots)
    mine = compile_rules(own.rules, tools, READ_LINE, roots)
    if not isinstance(theirs, Rules) or not isinstance(mine, Rules):
        found = [fault for one in (theirs, mine) if not isinstance(one, Rules) for fault in one]
        return ConfigFaults(tuple(ConfigFault(fault.source, 0, "rules", fault.message) for fault in found))
    counting = own.rules if trusted else own.narrowing_rules
    sources = {(rule.kind, rule.source, rule.text) for rule in counting}
    kept = [rule for rule in mine.every if (rule.kind, rule.source, rule.text) in sources]
    return Rules((*theirs.every, *kept))


def list_prompt_folders(settings: Settings, operators: Path | None, own: WorkspaceConfig) -> tuple[PromptFolder, ...]:
    """Where words are looked for, in order: the trusted folder's, the operator's, the shipped ones."""
    found: list[PromptFolder] = []
    if own.prompts:
        found.append(PromptFolder("the workspace's, which you trust", settings.workspace / PROMPTS, own.prompts))
    if operators is not None:
        found.append(PromptFolder("the operator's", operators))
    return (*found, PromptFolder("shipped", DATA / "prompts"))


def narrow_budget(one: Budget, other: Budget) -> Budget:
    """The lower of two limits, wherever there is one."""
    limits: dict[str, int | None] = {}
    for each in fields(Budget):
        said = [limit for budget in (one, other) if (limit := getattr(budget, each.name)) is not None]
        limits[each.name] = min(said, default=None)
    return Budget(**limits)


def find_duplicate_tools(packs: Sequence[Pack]) -> tuple[ConfigFault, ...]:
    """A pack that could put its own tool in another's place would be a way around every rule about that one."""
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
    """What the person's choices are limited by under a whole configuration."""
    config, ceiling = configuration.library.config, configuration.policy.ceiling
    return Limits(
        configuration.posture,
        settings.profile or config.posture.profile,
        ceiling,
        {token.principal: token.max_profile for token in config.tokens},
        describe_ceiling_source(ceiling, config.max_profile, settings),
    )
