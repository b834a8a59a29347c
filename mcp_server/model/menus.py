"""What is on the menu? The modes in their order, the tools of each, and the kind of list a host gets."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

META_TOOLS = ("menu_list", "menu_enter", "menu_exit", "complete", "think", "message_user")
CARRIERS = ("menu_read", "menu_call")
SERVER_TOOL = "mcp_tool"
"""Calls tools of other servers by their names. What it reaches from an endpoint with one mode is in that mode."""


class Mode(Struct, frozen=True):
    name: str
    title: str
    role: str
    goal: str
    offers: str
    when: str
    remember: str
    tools: tuple[str, ...]
    triggers: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    """What passes through the gate here and is no tool to clients: the resources and prompts of servers."""
    everywhere: bool = False
    """Its tools are in every list, also at ROOT."""

    @property
    def servers(self) -> frozenset[str]:
        """The servers that its entries name, before they are expanded."""
        return frozenset(entry.partition(":")[0] for entry in self.tools if ":" in entry)

    def expand(self, find_tools: Callable[[str], Iterable[str]]) -> "Mode":
        if not self.servers:
            return self
        tools = (name for entry in self.tools for name in (find_tools(entry) if ":" in entry else (entry,)))
        return replace(self, tools=tuple(dict.fromkeys(tools)))

    @property
    def description(self) -> str:
        return f"{self.role} {self.goal} {self.offers} Use it {self.when}. Remember: {self.remember}"


class Menus(Struct, frozen=True, dict=True):
    """Every mode, in display order. The number that a person types is the position, from 1."""

    modes: tuple[Mode, ...]

    def __iter__(self) -> Iterator[Mode]:
        return iter(self.modes)

    def find_modes_with(self, tool: str) -> tuple[Mode, ...]:
        """Return the modes that list a tool, in menu order."""
        return self._by_tool.get(tool, ())

    def expand(self, find_tools: Callable[[str], Iterable[str]]) -> "Menus":
        """Return the menus with the tools of other servers in place of entries such as `server:*`."""
        return Menus(tuple(mode.expand(find_tools) for mode in self.modes))

    def add_behind(self, find_behind: Callable[[str, tuple[str, ...]], tuple[str, ...]]) -> "Menus":
        """`find_behind` gets a mode's name and tools."""
        return Menus(tuple(replace(mode, behind=find_behind(mode.name, mode.tools)) for mode in self.modes))

    @cached_property
    def by_name(self) -> Mapping[str | None, Mode]:
        """None is ROOT, which is no mode."""
        return {mode.name: mode for mode in self.modes}

    @cached_property
    def tools_everywhere(self) -> Mapping[str, None]:
        """The tools that are in every list, in menu order."""
        return dict.fromkeys(tool for mode in self.modes if mode.everywhere for tool in mode.tools)

    @cached_property
    def _by_tool(self) -> dict[str, tuple[Mode, ...]]:
        modes: dict[str, tuple[Mode, ...]] = {}
        for mode in self.modes:
            for tool in (*mode.tools, *mode.behind):
                modes[tool] = (*modes.get(tool, ()), mode)
        return modes


class Listing(StrEnum):
    """What `tools/list` shows. `auto` is not a listing: it asks for era, transport and host to decide."""

    MASKED = "masked"
    CARRIED = "carried"
    STABLE = "stable"
    FLAT = "flat"


class Commands(StrEnum):
    """Who can use commands that act on a host. Few hosts are known to keep programs and models from using
    prompts."""

    PERSON = "person"
    NOBODY = "nobody"


class Host(Struct, frozen=True):
    """What is known about a client program, by the name it gives itself. Never a reason to permit anything."""

    client: str
    """The whole name, or its beginning and a `*`."""
    listing: Listing
    relists: bool
    """It fetches the list as soon as it hears of a change, so holding a result back until then is worth the wait."""
    evidence: str = ""
    commands: Commands = Commands.NOBODY
    notices: bool = True
    """It can handle notifications of list changes. If they would do harm, it gets only what it subscribed to."""
    major: int | None = None
    """The newest major version that the evidence covers; None if it covers every version."""

    def is_named(self, client: str) -> bool:
        mine, theirs = self.client.casefold(), client.casefold()
        return theirs.startswith(mine[:-1]) if mine.endswith("*") else theirs == mine

    def is_known_version(self, version: str) -> bool:
        """True if the evidence covers this version. One that cannot be read is not covered."""
        major = version.removeprefix("v").partition(".")[0]
        return self.major is None or (major.isascii() and major.isdigit() and int(major) <= self.major)


class Hosts(Struct, frozen=True):
    """Every host known by name. The operator's rows come before ours and win over them."""

    rows: tuple[Host, ...] = ()

    def find_host(self, client: str | None) -> Host | None:
        """Return the first row with the whole name, else the one with the longest beginning, the first among equals."""
        fitting = [row for row in self.rows if client and row.is_named(client)]
        whole = next((row for row in fitting if not row.client.endswith("*")), None)
        return whole or max(fitting, key=lambda row: len(row.client), default=None)
