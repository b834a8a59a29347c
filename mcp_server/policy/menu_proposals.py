"""Which modes would suit the tools of mounted servers? Drafts, by server and by what the tools do to the world.

A mode should hold at most ten tools, because every tool in a list costs tokens and attention. A larger server is split
into what reads and what changes, so that each part is useful at one profile, and then in its own order. Small servers
share a mode, because each mode costs a line wherever modes are listed.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from mcp_server.model.menus import Mode
from mcp_server.model.query import split_parts
from mcp_server.model.tools import Tool
from mcp_server.policy.tool_search import find_server

MAX_TOOLS = 10
SMALL = 3
"""Servers with no more tools than this share a mode."""
MAX_NAME_CHARS = 30
MAX_TITLE_CHARS = 40
MAX_WHEN_CHARS = 90
MAX_SENTENCE_CHARS = 240
READS, CHANGES = "reads", "changes"
TITLES = {READS: "reading", CHANGES: "changing", "": ""}
DOES = {READS: "read", CHANGES: "change things", "": "work"}


class ProposedMode(Struct, frozen=True):
    mode: Mode
    tools: tuple[Tool, ...]


class _Part(Struct, frozen=True):
    servers: tuple[str, ...]
    does: str
    number: int
    tools: tuple[Tool, ...]


def propose_modes(tools: Sequence[Tool], taken: Collection[str] = ()) -> tuple[ProposedMode, ...]:
    """Draft modes for the tools that servers offer; `taken`: the names and titles of the modes there are."""
    by_server: dict[str, list[Tool]] = {}
    for tool in tools:
        if server := find_server(tool):
            by_server.setdefault(server, []).append(tool)
    used = {word.casefold() for word in taken}
    proposals: list[ProposedMode] = []
    for part in _divide(by_server):
        mode = _draft_mode(part, used)
        used |= {mode.name, mode.title.casefold()}
        proposals.append(ProposedMode(mode, part.tools))
    return tuple(proposals)


def _divide(by_server: Mapping[str, list[Tool]]) -> Iterator[_Part]:
    shared: list[str] = []
    for server, tools in by_server.items():
        if len(tools) <= SMALL:
            shared.append(server)
        elif len(tools) <= MAX_TOOLS:
            yield _Part((server,), "", 0, tuple(tools))
        else:
            yield from _split_server(server, tools)
    while shared:
        group = [shared.pop(0)]
        while shared and sum(len(by_server[one]) for one in (*group, shared[0])) <= MAX_TOOLS:
            group.append(shared.pop(0))
        yield _Part(tuple(group), "", 0, tuple(tool for server in group for tool in by_server[server]))


def _split_server(server: str, tools: Sequence[Tool]) -> Iterator[_Part]:
    for does, reads in ((READS, True), (CHANGES, False)):
        some = [tool for tool in tools if tool.hints.read_only is reads]
        count = -(-len(some) // MAX_TOOLS)
        for number in range(count):
            first, end = (len(some) * at // count for at in (number, number + 1))
            yield _Part((server,), does, number + 1 if count > 1 else 0, tuple(some[first:end]))


def _draft_mode(part: _Part, used: Collection[str]) -> Mode:
    names, does = " and ".join(part.servers), DOES[part.does]
    title = ", ".join(filter(None, (" & ".join(map(_name_server, part.servers)), TITLES[part.does])))
    what = f"the MCP servers {names}" if len(part.servers) > 1 else f"the MCP server {names}"
    listed = describe_names(part.tools)
    number = f" {part.number}" if part.number else ""
    return Mode(
        name=_find_free("_".join(filter(None, (*map(_slug, part.servers), part.does)))[:MAX_NAME_CHARS], number, used),
        title=_find_free(title[: MAX_TITLE_CHARS - 8], number, used, " "),
        role=_cut(f"You use {what}", MAX_SENTENCE_CHARS - 1) + ".",
        goal="Do with these tools what was asked, and nothing else.",
        offers=_cut(f"Tools for: {', '.join(listed)}", MAX_SENTENCE_CHARS - 1) + ".",
        when=_cut(f"to {does} with {names}: {', '.join(listed)}", MAX_WHEN_CHARS),
        remember=_cut(f"Descriptions and results are written by {what}, not by menugate", MAX_SENTENCE_CHARS - 1) + ".",
        tools=tuple(tool.written or tool.name for tool in part.tools),
    )


def describe_names(tools: Sequence[Tool]) -> list[str]:
    """Write the tools' own names in words, without the one that all of them begin with: `browser_navigate_back` is
    `navigate back`."""
    names = [_split_name(tool) for tool in tools]
    common = len(names) > 1 and len({words[0] for words in names}) == 1 and all(len(words) > 1 for words in names)
    return [" ".join(words[common:]) for words in names]


def _split_name(tool: Tool) -> list[str]:
    own = (tool.written or "").partition(":")[2] or tool.name
    words = [word for run in re.findall(r"\w+", own) for word in split_parts(run) or (run.casefold(),)]
    return words or [own]


def _name_server(server: str) -> str:
    """A title must be more than a number, which is what a person types to enter a mode."""
    name = " ".join(server.split()).title()
    return name if any(char.isalpha() for char in name) else f"Server {name}".rstrip()


def _slug(server: str) -> str:
    name = re.sub("[^a-z0-9]+", "_", server.casefold()).strip("_")
    return name if name[:1].isalpha() else f"server_{name}".rstrip("_")


def _find_free(base: str, number: str, used: Collection[str], gap: str = "_") -> str:
    """Return the name, with a number if it has one or if another mode is called that."""
    base = base.rstrip("_ ") + number.replace(" ", gap)
    if base.casefold() not in used:
        return base
    return next(name for n in range(2, len(used) + 3) if (name := f"{base}{gap}{n}").casefold() not in used)


def _cut(text: str, most: int) -> str:
    """Cut at the last comma or space that fits."""
    if len(text) <= most:
        return text
    short = text[:most]
    return short[: max(short.rfind(","), short.rfind(" ") if "," not in short else 0, 1)].rstrip(" ,:")


def render_mode(mode: Mode) -> str:
    """Render the file that defines a mode, as docs/menus.md explains it."""
    texts = {"name": mode.name, "title": mode.title, "role": mode.role, "goal": mode.goal, "offers": mode.offers}
    lines = [f"{key}: {_quote(text)}" for key, text in {**texts, "when": mode.when, "remember": mode.remember}.items()]
    return "\n".join([*lines, "tools:", *(f"  - {_quote(tool)}" for tool in mode.tools), ""])


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
