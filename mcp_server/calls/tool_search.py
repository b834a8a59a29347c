"""What does a search for tools answer? The tools that fit, their modes, what they need, and the exact call to make.

An answer has at most `MAX_CHARS` characters, text and structured content together, so that asking costs less than
entering a mode on trial.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.carriers import build_sample_arguments, format_example_call
from mcp_server.config.search_words import load_search_words
from mcp_server.model.menus import Mode
from mcp_server.model.policy import Call, Decision, Layer, Policy, Verdict
from mcp_server.model.posture import Posture
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.schema import format_brief_schema
from mcp_server.model.sessions import Session
from mcp_server.model.text import first_sentence, quote_text, shorten_to_line
from mcp_server.model.tools import Schema, Tool
from mcp_server.policy.decision import decide
from mcp_server.policy.refusals import find_mode_with
from mcp_server.policy.search_words import Related
from mcp_server.policy.tool_search import ToolIndex, rank_modes

MAX_CHARS = 4_000
"""About 1,200 tokens of the densest text that answers hold."""
RESERVED_CHARS = 700
"""What the rest of an answer may take: the need, repeated, and the modes."""
MAX_TOOLS = 5
MAX_MODES = 3
MAX_SENTENCE_CHARS = 140
MAX_SIGNATURE_CHARS = 160
HIDING_LAYERS = frozenset({Layer.BLOCK, Layer.RULES})
"""A tool that a rule forbids altogether is not offered. One that the posture does not allow is, with the reason."""


class SearchPlace(Struct, frozen=True):
    """Who searches, and from where."""

    session: Session
    posture: Posture
    policy: Policy
    fixed: bool
    """The client's list never changes."""
    carriers: bool
    """The carriers are in that list."""
    handle: str = ""
    """The menu handle that the call came with."""

    def find_mode(self, tool: Tool) -> Mode | None:
        """Find the mode in which this place can call the tool, preferably the current one."""
        return find_mode_with((tool.name,), self.session, self.policy)

    def decide(self, tool: Tool, mode: Mode) -> Decision:
        """Decide whether the tool would be listed in that mode."""
        return decide(tool, Call(tool.name), replace(self.session, mode=mode.name), self.posture, self.policy)

    def format_call(self, tool: Tool, mode: Mode) -> str:
        """Write the call that runs the tool from here, or the two calls."""
        here = self.session.flat or mode.name == self.session.mode or tool.name in self.session.added
        where = {"menu": self.handle} if self.handle else {}
        if self.carriers and self.fixed:
            return format_example_call(tool, None, **({} if here and where else {"mode": mode.name}), **where)
        call = f"{tool.name} {_dump(build_sample_arguments(tool.arguments) | where)}"
        return call if here else f"menu_enter {_dump({'mode': mode.name, **where})}, then {call}"


class FoundTool(Struct, frozen=True):
    """A tool as an answer shows it."""

    tool: Tool
    modes: tuple[str, ...]
    call: str
    needs: str = ""
    """Why it cannot run now; empty if it can."""

    @property
    def how(self) -> str:
        return f"Not now: {self.needs}" if self.needs else f"Call: {self.call}"

    def format_line(self) -> str:
        signature = shorten_to_line(format_brief_schema(self.tool.arguments), MAX_SIGNATURE_CHARS)
        return f"- {self.tool.name}({signature}), in {', '.join(self.modes)}: {self.describe()} {self.how}"

    def build_entry(self) -> dict[str, Any]:
        how = {"needs": self.needs} if self.needs else {"call": self.call}
        return {"name": self.tool.name, "modes": list(self.modes), **how}

    def describe(self) -> str:
        return shorten_to_line(first_sentence(self.tool.description), MAX_SENTENCE_CHARS)


@dataclass
class ToolFinder:
    """Finds tools by words, with an index that is built when a policy is first searched."""

    load_words: Callable[[], tuple[Related, ...]]
    _built: tuple[Policy, ToolIndex] | None = field(default=None, init=False, repr=False)

    async def find(self, need: str, place: SearchPlace, within: Mode | None = None) -> Done:
        """Answer which tools fit the need; `within`: only those of this mode."""
        tools, modes = await self._search(need, place, within)
        lines = [found.format_line() for found in tools]
        if not lines:
            lines = ["No tool has these words. Try others: what you want to do, and to what."]
        data = {"tools": [found.build_entry() for found in tools], "modes": modes}
        said = [
            f"Tools for {quote_text(need)}, best first:" if tools else "",
            *lines,
            format_nearest_modes(modes, place),
        ]
        return Done("\n".join(line for line in said if line), data)

    async def explain_unknown_mode(self, problem: Problem, need: str, place: SearchPlace) -> Problem:
        """Add the tools that fit the words which name no mode."""
        found = await self.find(need, place)
        return replace(problem, way_out=f"{problem.way_out}\n{found.text}", data=found.data)

    async def _search(self, need: str, place: SearchPlace, within: Mode | None) -> tuple[list[FoundTool], list[str]]:
        index = await self._get_index(place.policy)
        matches = await to_thread.run_sync(index.rank, need)
        if within is not None:
            matches = [match for match in matches if match.tool in within.tools]
        offered = list_offered_tools((place.policy.tools[match.tool] for match in matches), place)
        tools: list[FoundTool] = []
        size = 0
        for found in offered:
            size += len(found.format_line()) + len(_dump(found.build_entry()))
            if len(tools) == MAX_TOOLS or size > MAX_CHARS - RESERVED_CHARS:
                break
            tools.append(found)
        reachable = [mode.name for mode in list_reachable_modes(place)]
        nearest = [name for name in rank_modes(matches, place.policy.menus) if name in reachable]
        return tools, list(dict.fromkeys([*nearest, *reachable]))[:MAX_MODES]

    async def _get_index(self, policy: Policy) -> ToolIndex:
        if self._built is None or self._built[0] is not policy:
            # In a thread: a thousand tools take a third of a second.
            self._built = policy, await to_thread.run_sync(self._build_index, policy)
        return self._built[1]

    def _build_index(self, policy: Policy) -> ToolIndex:
        tools = [tool for tool in policy.tools.values() if tool.is_listed and policy.menus.find_modes_with(tool.name)]
        return ToolIndex.build(tools, policy.menus, self.load_words())


def build_tool_finder(menus: Path) -> ToolFinder:
    """Build one that reads the word list of the shipped menus folder on its first search."""
    return ToolFinder(partial(load_search_words, menus))


def list_offered_tools(tools: Iterable[Tool], place: SearchPlace) -> Iterator[FoundTool]:
    """Leave out what a rule hides and what this place cannot reach; say of the rest what it needs, if anything."""
    for tool in tools:
        mode = place.find_mode(tool)
        if mode is None:
            continue
        decision = place.decide(tool, mode)
        if decision.verdict is Verdict.DENY and decision.layer in HIDING_LAYERS:
            continue
        needs = decision.reason if decision.verdict is Verdict.DENY else ""
        names = tuple(one.name for one in place.policy.menus.find_modes_with(tool.name))
        yield FoundTool(tool, names, place.format_call(tool, mode), needs)


def list_reachable_modes(place: SearchPlace) -> list[Mode]:
    menus, session = place.policy.menus, place.session
    return [mode for mode in menus if not session.pinned or mode.name == session.mode]


def format_nearest_modes(names: Sequence[str], place: SearchPlace) -> str:
    modes = [mode for mode in place.policy.menus if mode.name in names]
    ordered = sorted(modes, key=lambda mode: names.index(mode.name))
    return "Nearest modes: " + "; ".join(f"{mode.name} ({mode.when})" for mode in ordered) + "."


def describe_tools(names: Sequence[str], place: SearchPlace) -> Ending:
    """Show the whole schemas of tools, as many as fit into an answer."""
    tools = place.policy.tools
    known = [tools[name] for name in dict.fromkeys(names) if name in tools and tools[name].is_listed]
    offered = {found.tool.name: found for found in list_offered_tools(known, place)}
    unknown = [name for name in names if name not in offered]
    if unknown:
        return Problem(
            Code.UNKNOWN_TOOL,
            f"there is no tool {quote_text(unknown[0])} for you here.",
            "Say in `query` what you want to do; the answer names the tools.",
        )
    lines: list[str] = []
    size, left = 0, list(offered)
    for found in offered.values():
        line = _describe_whole_tool(found)
        size += len(line)
        if lines and size > MAX_CHARS:
            break
        lines.append(line)
        left.remove(found.tool.name)
    if left:
        lines.append(f"Not shown, because the answer would be too long: {', '.join(left)}. Ask for them by themselves.")
    return Done("\n".join(lines), {"tools": [name for name in offered if name not in left], "left": left})


def list_mode_tools(mode: Mode, place: SearchPlace) -> Ending:
    """List the tools of one mode, as many as fit, and name the rest."""
    offered = list(list_offered_tools((place.policy.tools[name] for name in mode.tools), place))
    lines = [f"{mode.title} ({mode.name}). Use it {mode.when}."]
    left = [found.tool.name for found in offered]
    for found in offered:
        line = found.format_line()
        if sum(map(len, lines)) + len(line) > MAX_CHARS - RESERVED_CHARS - sum(map(len, left)):
            break
        lines.append(line)
        left.remove(found.tool.name)
    if left:
        lines.append(f"More, whose schemas `tool_names` shows: {', '.join(left)}.")
    return Done("\n".join(lines), {"mode": mode.name, "tools": [found.tool.name for found in offered]})


def _describe_whole_tool(found: FoundTool) -> str:
    """Show everything about a tool; if that is too long, leave out first the descriptions of its arguments."""
    for schema in (found.tool.arguments, _drop_descriptions(found.tool.arguments)):
        what = f"{found.tool.name}, in {', '.join(found.modes)}: {found.tool.description}"
        text = f"{what}\n{found.how}\nArguments: {_dump(schema)}"
        if len(text) <= MAX_CHARS:
            return text
    return f"{found.format_line()}\nIts schema is too long for this answer; your list of tools has it in its mode."


def _drop_descriptions(schema: Schema) -> Schema:
    return {
        name: _drop_descriptions(value) if isinstance(value, Mapping) else value  # pyright: ignore[reportUnknownArgumentType]  # JSON of any server
        for name, value in schema.items()
        if name != "description" or not isinstance(value, str)
    }


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
