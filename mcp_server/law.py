"""What holds before anybody calls? The tools, the menus and the rules, read and checked together.

Commands that only look (`menus`, `check`, `explain`) need this and no more; the house is built on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path

import mcp_server
from mcp_server.library import LONGEST_NAME, Fault, Faults, Library, load
from mcp_server.model.pack import Pack
from mcp_server.model.policy import Policy, Rules
from mcp_server.model.posture import Posture, Profile
from mcp_server.rules.arguments import checks
from mcp_server.rules.compiling import compile_rules
from mcp_server.settings import Settings
from tools.catalog import CATALOG

DATA = Path(mcp_server.__file__).parents[1]
"""Where `menus/` and `prompts/` lie: beside the packages, in a checkout and in an installed wheel alike."""


class Unbuildable(Exception):
    """The house cannot be built; the message names every fault."""


@dataclass(frozen=True)
class Law:
    """What holds before anybody calls: the tools, the menus, the policy."""

    packs: tuple[Pack, ...]
    library: Library
    policy: Policy
    posture: Posture


def installed_packs() -> tuple[Pack, ...]:
    """What third parties ship. A pack that cannot be loaded is named, and the house is not built without it."""
    found: list[Pack] = []
    for point in entry_points(group="menugate.tools"):
        try:
            found.append(point.load())
        except Exception as fault:
            raise Unbuildable(f"the pack `{point.name}` cannot be loaded: {fault}") from fault
    return tuple(found)


def law(settings: Settings, packs: Sequence[Pack] = (), bare: bool = False) -> Law | Faults:
    """Everything on disk, read and checked; every fault at once where there is one. `bare` leaves out what third
    parties installed here."""
    every = (*packs, *(() if bare else installed_packs()))
    tools = {tool.name: tool for tool in (*CATALOG, *(tool for pack in every for tool in pack.tools))}
    if twice := registered_twice(every):
        return Faults(twice)
    folders = [DATA / "menus", *(Path(folder) for pack in every for folder in pack.menus), *settings.menus]
    library = load(folders, settings.config, tools, max(LONGEST_NAME, 0, *(pack.longest_name for pack in every)))
    if isinstance(library, Faults):
        return library
    rules = compile_rules(library.config.rules, tools, (str(settings.workspace),))
    if not isinstance(rules, Rules):
        return Faults(tuple(Fault(fault.source, 0, "rules", fault.message) for fault in rules))
    ceiling = lowest(library.config.max_profile, settings.max_profile)
    policy = Policy(
        tools=tools,
        menus=library.menus,
        stages=library.stages,
        rules=rules,
        ceiling=ceiling,
        budget=library.config.budget,
        unfit=checks(tools),
    )
    return Law(every, library, policy, start_posture(library, settings, ceiling))


def registered_twice(packs: Sequence[Pack]) -> tuple[Fault, ...]:
    """A pack that could put its own tool in another's place would be a way around every rule about that one."""
    owners = {tool.name: "menugate itself" for tool in CATALOG}
    faults: list[Fault] = []
    for pack in packs:
        for tool in pack.tools:
            if tool.name in owners:
                faults.append(Fault(f"pack {pack.name}", 0, tool.name, f"{owners[tool.name]} has a tool of that name"))
            owners.setdefault(tool.name, f"the pack {pack.name}")
    return tuple(faults)


def ceiling_set_by(settings: Settings, library: Library) -> str:
    """Who says how high the profile may go, in words for the person."""
    if settings.max_profile is not None and settings.max_profile.covers(library.config.max_profile) is False:
        return "`--max-profile` (or MENUGATE_MAX_PROFILE)"
    return f"`max_profile` in {settings.config}" if settings.config else "nobody: it is the highest there is"


def lowest(one: Profile, other: Profile | None) -> Profile:
    return other if other is not None and one.covers(other) else one


def start_posture(library: Library, settings: Settings, ceiling: Profile) -> Posture:
    usual = library.config.posture
    return (replace(usual, profile=settings.profile) if settings.profile else usual).capped(ceiling)
