"""What is on the menu? The modes in their order, and the tools of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

META_TOOLS = ("menu_list", "menu_enter", "menu_exit", "complete", "think", "message_user")
CARRIERS = ("menu_read", "menu_call")


@dataclass(frozen=True, slots=True)
class Mode:
    name: str
    title: str
    role: str
    goal: str
    offers: str
    when: str
    remember: str
    tools: tuple[str, ...]
    triggers: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        return f"{self.role} {self.goal} {self.offers} Use it {self.when}. Remember: {self.remember}"


@dataclass(frozen=True)
class Menus:
    """Every mode, in display order. The number a person types is the position, from 1."""

    modes: tuple[Mode, ...]

    def __iter__(self) -> Iterator[Mode]:
        return iter(self.modes)

    def get(self, name: str | None) -> Mode | None:
        return self._by_name.get(name or "")

    def holding(self, tool: str) -> tuple[Mode, ...]:
        """The modes in which a tool can be found, in menu order."""
        return self._by_tool.get(tool, ())

    @cached_property
    def _by_name(self) -> dict[str, Mode]:
        return {mode.name: mode for mode in self.modes}

    @cached_property
    def _by_tool(self) -> dict[str, tuple[Mode, ...]]:
        found: dict[str, tuple[Mode, ...]] = {}
        for mode in self.modes:
            for tool in mode.tools:
                found[tool] = (*found.get(tool, ()), mode)
        return found
