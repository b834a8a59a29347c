"""Do the menus and the tools match? Every tool is on a menu, every menu entry is a tool, every mode can be entered.

Checked in both directions at startup, by `menugate check` and in the tests; all faults are reported at once.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from unicodedata import normalize

from mcp_server.config.faults import ConfigFault, FaultCollector, SourceLocation
from mcp_server.config.menus import ModeDraft, ModeDrafts
from mcp_server.model.menus import CARRIERS, META_TOOLS, Menus
from mcp_server.model.text import quote_exactly
from mcp_server.model.tools import HINT_NAMES, READING, Effect, Hints, LazyFunction, Tool

NAME = re.compile(r"[A-Za-z0-9_-]+")
# The lowest limit among hosts: some cut names off, some drop the tool silently.
LONGEST_NAME = 40
ALWAYS_THERE = frozenset({*META_TOOLS, *CARRIERS})
LONGEST_DESCRIPTION = 1024
CHANGING = frozenset(Effect) - READING - {Effect.EXEC}
"""Effects that contradict a `read_only` hint. Running a program does not: asking a language server only reads."""


def validate_tool_coverage(
    registered: Mapping[str, Tool],
    drafts: ModeDrafts,
    longest_name: int = LONGEST_NAME,
    servers: Collection[str] = (),
) -> list[ConfigFault]:
    """`servers`: those under `mcpServers`, whose tools are not known yet."""
    findings = FaultCollector()
    placed = {entry.text for draft in drafts.modes for entry in draft.tools}
    for draft in drafts.modes:
        _check_entries(draft, registered, servers, findings)
    if drafts.complete:
        _check_all_placed(registered, placed, findings)
        _check_none_empty(drafts.modes, findings)
    _check_reachable(drafts.modes, findings)
    _check_names(registered, longest_name, findings)
    for tool in registered.values():
        for message in _find_flaws(tool):
            findings.add(find_tool_source(tool), message)
    return list(findings.faults())


def is_covered(registered: Collection[str], menus: Menus) -> tuple[bool, list[str]]:
    """Return whether every tool is in at least one mode, and the tools that are not."""
    unmapped = sorted(set(registered) - ALWAYS_THERE - {tool for mode in menus for tool in mode.tools})
    return not unmapped, unmapped


def find_tool_source(tool: Tool) -> SourceLocation:
    """Find where the tool is defined, for messages."""
    if isinstance(tool.run, LazyFunction):
        return SourceLocation(tool.run.where.partition(":")[0], key=tool.name)
    code = getattr(tool.run, "__code__", None)
    if code is None:
        return SourceLocation(f"the pack of {type(tool.run).__module__}", key=tool.name)
    return SourceLocation(code.co_filename, code.co_firstlineno, 1, tool.name)


def _check_entries(
    draft: ModeDraft, registered: Mapping[str, Tool], servers: Collection[str], findings: FaultCollector
) -> None:
    first: dict[str, SourceLocation] = {}
    choosable = [name for name, tool in registered.items() if not _is_always_there(tool)]
    for entry in draft.tools:
        name, tool = entry.text, registered.get(entry.text)
        if name in ALWAYS_THERE or (tool is not None and tool.meta):
            findings.add(
                entry.place, f"`{name}` is available in every mode; remove it from the menu `{draft.name.text}`"
            )
        elif name in first:
            findings.add(entry.place, f"`{name}` is already on this menu, in {first[name].source}")
        elif ":" in name:
            # Which tools a server has is known only once it has run.
            server = name.partition(":")[0]
            if server not in servers:
                findings.add(entry.place, f"there is no server {quote_exactly(server)}", server, servers)
        elif tool is None:
            findings.add(entry.place, f"there is no tool {quote_exactly(name)}", name, choosable)
        first.setdefault(name, entry.place)


def _check_all_placed(registered: Mapping[str, Tool], placed: Collection[str], findings: FaultCollector) -> None:
    strangers = [name for name in placed if name not in registered]
    for name, tool in registered.items():
        if name not in placed and not _is_always_there(tool):
            message = f"the tool `{name}` is on no menu; add it to the `tools` of at least one mode"
            findings.add(find_tool_source(tool), message, name, strangers)


def _check_none_empty(drafts: Collection[ModeDraft], findings: FaultCollector) -> None:
    for draft in drafts:
        if not draft.tools:
            findings.add(draft.name.place, f"the mode `{draft.name.text}` has no tools; add some or remove the mode")


def _check_reachable(drafts: Collection[ModeDraft], findings: FaultCollector) -> None:
    """Check that no word stands for two modes: neither could be entered by it."""
    owners: dict[str, ModeDraft] = {}
    for draft in drafts:
        for word in (draft.name, *filter(None, [draft.texts.get("title")]), *draft.triggers):
            spoken = _normalize_word(word.text)
            owner = owners.setdefault(spoken, draft)
            if owner is not draft:
                mode, source = owner.name.text, owner.name.place.source
                message = f"{quote_exactly(word.text)} already enters the mode `{mode}`, in {source}"
                findings.add(word.place, message)
            if spoken.isdecimal():
                findings.add(
                    word.place, f"{quote_exactly(word.text)} is a number, and numbers stand for positions on the menu"
                )


def _normalize_word(word: str) -> str:
    return " ".join(normalize("NFKC", word).casefold().split())


def _check_names(registered: Mapping[str, Tool], longest: int, findings: FaultCollector) -> None:
    sounding: dict[str, str] = {_normalize_tool_name(name): name for name in sorted(ALWAYS_THERE)}
    for key, tool in registered.items():
        name = tool.name
        if key != name:
            findings.add(
                find_tool_source(tool),
                f"the tool {quote_exactly(name)} is registered as {quote_exactly(key)}; the two names must match",
            )
        if not NAME.fullmatch(name) or "__" in name or len(name) > longest:
            wants = f"1 to {longest} letters, digits, `_` or `-`, without `__`, which hosts put between server and tool"
            findings.add(find_tool_source(tool), f"hosts cannot use the name {quote_exactly(name)}; it must be {wants}")
        other = sounding.setdefault(_normalize_tool_name(name), name)
        if other != name:
            findings.add(
                find_tool_source(tool),
                f"{quote_exactly(name)} and `{other}` are too similar; a host that guesses could confuse them",
            )


def _normalize_tool_name(name: str) -> str:
    return re.sub("[-_]", "", name.casefold())


def _is_always_there(tool: Tool) -> bool:
    return tool.meta or tool.name in ALWAYS_THERE


def _find_flaws(tool: Tool) -> Iterator[str]:
    if tool.meta and tool.name not in ALWAYS_THERE:
        yield "only menugate's own meta-tools may be `meta`, because only the blocklist restricts those"
    length = len(tool.description.encode("utf-8", "replace"))
    if length > LONGEST_DESCRIPTION:
        yield f"the description has {length} bytes; the limit is {LONGEST_DESCRIPTION}"
    if not tool.description.strip():
        yield "the description is empty; nothing else tells a model when to use the tool"
    yield from _find_hint_flaws(tool)
    if not _is_object(tool.arguments):
        yield "the schema of the arguments must have `type: object` at its root"
    if tool.result is not None and not _is_object(tool.result):
        yield "the schema of the result must have `type: object` at its root"


def _find_hint_flaws(tool: Tool) -> Iterator[str]:
    hints: Any = tool.hints
    if not isinstance(hints, Hints):
        yield "the four hints are missing; a host assumes the worst for a missing hint"
        return
    left_out = [name for name in HINT_NAMES if not isinstance(getattr(hints, name), bool)]
    if left_out:
        yield f"each hint must be True or False, including {', '.join(left_out)}"
    if hints.read_only and (hints.destructive or tool.effect in CHANGING):
        yield "the hints say that it only reads, but its effect or the destructive hint contradicts that"


def _is_object(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "object"  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # a pack may hand over anything
