"""Which tools, modes and rules are in force once the servers behind menugate have said what they offer?

All of them are one policy, which is replaced as a whole: a call is judged by one and the same from beginning to end.
"""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_server.config.upstream_modes import build_server_modes
from mcp_server.model.menus import Menus
from mcp_server.model.policy import Policy, RuleOwner, Rules, RuleText
from mcp_server.model.text import to_one_line
from mcp_server.model.tools import Arguments, Tool
from mcp_server.model.upstreams import Catalogue, Mount
from mcp_server.policy.arguments import add_fixed_arguments, build_argument_check
from mcp_server.policy.rules import compile_mounted_rules
from mcp_server.policy.upstream_offers import add_offers_to_modes, build_offer_tools
from mcp_server.policy.upstream_pins import CataloguePart, JudgedCatalogue
from mcp_server.policy.upstream_tools import SetAside, ToolBuilder, build_run, list_duplicates

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.settings import Settings


class MountedTools(Struct, frozen=True):
    """What is mounted, and what of it can be called."""

    mounts: tuple[Mount, ...]
    catalogues: Mapping[str, Catalogue]
    """The last one of each server that is known, by the server's name."""
    judge: Callable[[Mount, Catalogue], JudgedCatalogue]
    """Divides a catalogue by what you approved of its server."""
    tools: tuple[Tool, ...] = ()
    aside: tuple[SetAside, ...] = ()
    """The tools that cannot be offered, and why."""
    waiting: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why a server has no tools yet, by its name, in words for a model."""
    admitted: Mapping[str, tuple[CataloguePart, ...]] = field(default_factory=dict[str, tuple[CataloguePart, ...]])
    """What is offered only because you allowed new parts in advance, by the server's name."""
    find_wire_fault: Callable[[Tool], str | None] = lambda _: None
    clean: Callable[[str, Arguments], Arguments] = lambda _, arguments: arguments
    """`Policy.meant` for menugate's own tools."""


def mount_known_servers(configuration: "Configuration", settings: "Settings") -> "Configuration":
    """Mount the configured servers with the catalogues that they had last, so that nothing has to be started."""
    from mcp_server.state.upstream_catalogues import load_catalogues
    from mcp_server.state.upstream_pins import UpstreamPins

    upstreams = configuration.library.config.upstreams
    mounts = tuple(mount for mount in upstreams.mounts if not mount.disabled) if upstreams else ()
    catalogues = load_catalogues(settings.state, settings.secrets, mounts)
    return mount_catalogues(
        configuration,
        MountedTools(
            mounts,
            catalogues,
            UpstreamPins(settings.secrets, settings.workspace).judge,
            find_wire_fault=configuration.find_wire_fault,
            clean=configuration.policy.meant,
        ),
    )


def mount_catalogues(configuration: "Configuration", mounted: MountedTools) -> "Configuration":
    """Build the tools that the catalogues describe and you approved. The rules must be applied afterwards."""
    own = frozenset(name for name, tool in configuration.policy.tools.items() if tool.written is None)
    builder = ToolBuilder(build_run, mounted.find_wire_fault, own)
    tools: list[Tool] = []
    aside: list[SetAside] = []
    waiting: dict[str, str] = {}
    admitted: dict[str, tuple[CataloguePart, ...]] = {}
    for mount in mounted.mounts:
        if (catalogue := mounted.catalogues.get(mount.name)) is None:
            waiting[mount.name] = f"The server {mount.name} has not said yet which tools it has."
            continue
        judged = mounted.judge(mount, catalogue)
        if judged.admitted:
            admitted[mount.name] = judged.admitted
        more, without = builder.build_tools(mount, judged.offered.tools, approved=True)
        tools += (*more, *build_offer_tools(mount, judged))
        aside += without
        quarantined = [one for one in judged.quarantined if one.part.kind == "tool"]
        aside += [SetAside(mount.name, to_one_line(one.part.name), f"it {one.reason}") for one in quarantined]
        if quarantined and not more:
            waiting[mount.name] = describe_missing_approval(mount)
    shared = list(list_duplicates(tools))
    aside += [_set_aside(tool, "another server without a prefix has a tool of that name") for tool in shared]
    kept = tuple(tool for tool in tools if not any(tool is one for one in shared))
    judged_now = replace(mounted, tools=kept, aside=tuple(aside), waiting=waiting, admitted=admitted)
    return replace(configuration, mounted=judged_now)


def describe_missing_approval(mount: Mount) -> str:
    return (
        f"The tools of the server {mount.name} are not approved, so there are none here. Tell the user, who approves "
        f"them with `menugate upstreams approve {mount.name}`."
    )


def _set_aside(tool: Tool, reason: str) -> SetAside:
    server, _, name = (tool.written or "").partition(":")
    return SetAside(server, name, reason)


def build_mounted_policy(
    configuration: "Configuration", settings: "Settings", trusted: bool
) -> tuple[Policy, MountedTools]:
    """Build the policy over menugate's own tools and those of the servers. A tool to which a rule that narrows cannot
    be applied is left out."""
    mounted, policy = configuration.mounted, configuration.policy
    assert mounted is not None
    own = {name: tool for name, tool in policy.tools.items() if tool.written is None}
    every = own | {tool.name: tool for tool in mounted.tools}
    rules, barred = _compile(configuration, every, str(settings.workspace), trusted)
    tools = {name: tool for name, tool in every.items() if name not in barred}
    fixing = {tool.name: tool for tool in mounted.tools if tool.fixed}
    left_out = tuple(_set_aside(every[name], reason) for name, reason in barred.items())
    menus = _build_menus(configuration.library.menus, mounted, tools)
    return (
        replace(
            policy,
            tools=tools,
            menus=menus,
            rules=rules,
            unfit=build_argument_check(tools),
            meant=add_fixed_arguments(mounted.clean, fixing),
        ),
        replace(mounted, aside=(*mounted.aside, *left_out)),
    )


def _compile(
    configuration: "Configuration", tools: Mapping[str, Tool], workspace: str, trusted: bool
) -> tuple[Rules, Mapping[str, str]]:
    own, read = configuration.own, configuration.policy.read_line
    operators, barred = compile_mounted_rules(configuration.library.config.rules, tools, read, (workspace,))
    applicable: Sequence[RuleText] = own.rules if trusted else own.narrowing_rules
    theirs, also_barred = compile_mounted_rules(applicable, tools, read, (workspace,))
    kept = [replace(rule, owner=RuleOwner.WORKSPACE) for rule in theirs.every]
    return Rules((*operators.every, *kept)), {**barred, **also_barred}


def _build_menus(menus: Menus, mounted: MountedTools, tools: Mapping[str, Tool]) -> Menus:
    """Fill in the tools of servers, and add a mode for every server that no menu names."""

    def find_tools(entry: str) -> list[str]:
        listed = (tool for tool in tools.values() if tool.is_listed)
        return [tool.name for tool in listed if tool.written and fnmatchcase(tool.written, entry)]

    named = {server for mode in menus for server in mode.servers}
    unnamed = [mount for mount in mounted.mounts if mount.name not in named]
    more = build_server_modes(unnamed, menus, mounted.waiting)
    whole = Menus((*menus.modes, *more))
    return add_offers_to_modes(whole.expand(find_tools), {mode.name: mode.servers for mode in whole}, tools)
