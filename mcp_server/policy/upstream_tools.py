"""Which tools does another server have here? Its definitions become tools like our own; what cannot is set aside.

One bad tool never harms its neighbours: it is set aside with the reason, and is then neither listed nor callable.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, cast

from msgspec import Struct

from mcp_server.model.text import CONTROLS, INVISIBLE, quote_text, to_one_line
from mcp_server.model.tools import ACTING, READING, REVIEWING, WARMUP, Confirmation, LazyFunction, Run, Schema, Tool
from mcp_server.model.upstreams import Definition, Mount, MountBinding, ToolShape
from mcp_server.policy.upstream_effects import ToolEffect, judge_tool
from mcp_server.policy.upstream_names import UNCHANGED, format_written_name, slug_tool
from mcp_server.policy.upstream_pins import compute_mount_digest
from mcp_server.policy.upstream_schemas import find_schema_fault, leave_out_arguments, normalize_schema
from mcp_server.policy.upstream_uris import prefix_meta

MAX_NAME_CHARS = 200
MAX_DESCRIPTION_BYTES = 1024
MAX_ENTRY_CHARS = 50_000
NO_DESCRIPTION = "Its server does not describe it."
UNSEEN = re.compile(f"[{CONTROLS}{INVISIBLE}\ud800-\udfff]")
HEADER = "x-mcp-header"
SECRET_ARGUMENT = re.compile(r"(?i)key|secret|token|passw|credential|auth")
SHOWN_SEPARATELY = ("annotations", "icons", "_meta")

RELAY = LazyFunction("mcp_server.calls.upstreams:relay_call")
BuildRun: TypeAlias = Callable[[Mount, str], Run]
"""Builds the code that calls a tool of a server by the server's own name for it."""
FindWireFault: TypeAlias = Callable[[Tool], str | None]
"""Says why a tool cannot be listed in some revision of the protocol."""


class SetAside(Struct, frozen=True):
    """A tool that is not offered, and why."""

    server: str
    tool: str
    reason: str


class ToolBuilder(Struct, frozen=True):
    build_run: BuildRun
    find_wire_fault: FindWireFault
    own: Collection[str]
    """The names of menugate's own tools, and those of packs."""

    def build_tools(
        self, mount: Mount, definitions: Collection[Definition], approved: bool
    ) -> tuple[tuple[Tool, ...], tuple[SetAside, ...]]:
        """Build the tools of one server. `approved`: what it says about what they do counts."""
        tools: dict[str, Tool] = {}
        aside: list[SetAside] = []
        listed, written = set[str](), set[str | None]()
        for definition in definitions:
            name = definition.get("name")
            try:
                if name in listed:
                    raise UnusableTool("the server lists this name twice, and the first one counts")
                tool = self._build_tool(mount, definition, approved)
                if tool.name in tools:
                    raise UnusableTool(f"its name here would be {quote_text(tool.name)}, which another tool has")
                if tool.written in written:
                    raise UnusableTool(f"rules could not tell it from another tool, {quote_text(tool.written or '')}")
                tools[tool.name] = tool
                written.add(tool.written)
            except UnusableTool as unusable:
                aside.append(SetAside(mount.name, to_one_line(str(name)), str(unusable)))
            if isinstance(name, str):
                listed.add(name)
        return tuple(tools.values()), tuple(aside)

    def _build_tool(self, mount: Mount, definition: Definition, approved: bool) -> Tool:
        original = _check_name(definition)
        shape = mount.tools.get(original, ToolShape())
        schema = _check_schema(definition, shape)
        effect = judge_tool(definition.get("annotations"), shape, approved)
        fixed = frozenset(shape.fix)
        tool = Tool(
            name=self._choose_name(mount, original, shape),
            title=_clean(_find_title(definition)) or original,
            description=_cut(_clean(shape.description or _get_text(definition, "description"))) or NO_DESCRIPTION,
            arguments=leave_out_arguments(schema, shape.hide),
            profile=effect.profile,
            effect=effect.effect,
            stages=WARMUP | ACTING | REVIEWING if effect.effect in READING else ACTING,
            run=self.build_run(mount, original),
            hints=effect.hints,
            result=_choose_result_schema(definition, mount),
            written=format_written_name(mount.name, original),
            shown=_build_shown_schema(schema, shape),
            fixed=shape.fix,
            hidden=shape.hide | fixed,
            entry=_build_entry(definition, effect, mount.uri_prefix),
            timeout=shape.seconds or mount.call_seconds,
        )
        if effect.asks:
            tool = replace(tool, demand=effect.get_demand, confirmation=Confirmation.BY_ARGUMENTS)
        if mount.result.max_chars:
            tool = replace(tool, max_result_chars=mount.result.max_chars)
        if fault := self.find_wire_fault(tool):
            raise UnusableTool(fault)
        return tool

    def _choose_name(self, mount: Mount, original: str, shape: ToolShape) -> str:
        wanted = shape.name or original
        if not mount.prefixed and UNCHANGED.fullmatch(wanted):
            if wanted in self.own:
                raise UnusableTool("menugate itself has a tool of that name; give it another one in `tools`")
            return wanted
        return slug_tool(mount.slug, wanted, self.own)


def build_run(mount: Mount, tool: str) -> Run:
    """Build the code that calls a tool of a server by the server's own name for it. The digest binds it to the server
    as it is defined now: a call is judged by it, and must not reach another that has the name by then."""
    return partial(RELAY, mount.name, tool, mount.result, MountBinding(compute_mount_digest(mount), mount.uri_prefix))


class UnusableTool(Exception):
    """The tool cannot be offered; the message says why."""


def _check_name(definition: Definition) -> str:
    name = definition.get("name")
    if not isinstance(name, str) or not name.strip():
        raise UnusableTool("it has no name")
    if len(name) > MAX_NAME_CHARS:
        raise UnusableTool(f"its name has {len(name):,} characters; the limit is {MAX_NAME_CHARS}")
    if UNSEEN.search(name):
        raise UnusableTool("its name contains invisible characters")
    execution = definition.get("execution")
    if isinstance(execution, Mapping) and cast(Definition, execution).get("taskSupport") == "required":
        raise UnusableTool("it can only run as a task, which menugate does not support")
    return name


def _check_schema(definition: Definition, shape: ToolShape) -> Schema:
    given = definition.get("inputSchema")
    if fault := find_schema_fault(given):
        raise UnusableTool(f"the schema of its arguments cannot be used: {fault}")
    result = definition.get("outputSchema")
    if result is not None and (fault := find_schema_fault(result)):
        raise UnusableTool(f"the schema of its result cannot be used: {fault}")
    schema = cast(Schema, normalize_schema(given))
    properties = schema.get("properties", {})
    for name in sorted(shape.hide | shape.fix.keys()):
        if name not in properties:
            raise UnusableTool(f"`tools` hides or fixes its argument {quote_text(name)}, which it does not have")
        if name in shape.hide and name in schema.get("required", ()):
            raise UnusableTool(f"`tools` hides its argument {quote_text(name)}, which it requires; fix it instead")
    for name, value in shape.fix.items():
        if not _is_valid(schema, properties[name], value):
            raise UnusableTool(f"the value that `tools` fixes for {quote_text(name)} does not fit its schema")
    return {"properties": {}, **schema}


def _is_valid(schema: Schema, part: Schema, value: Any) -> bool:
    from jsonschema_rs import Draft202012Validator

    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return Draft202012Validator({**shared, **part}, offline=True).is_valid(value)


def _choose_result_schema(definition: Definition, mount: Mount) -> Schema | None:
    """A result that is trimmed no longer fits the schema that its server gave it."""
    return None if mount.result.keep or mount.result.drop else definition.get("outputSchema")


def _build_shown_schema(schema: Schema, shape: ToolShape) -> Schema:
    shown = leave_out_arguments(schema, shape.hide | frozenset(shape.fix))
    return {
        **shown,
        "properties": {name: _without_unsafe_header(name, one) for name, one in shown["properties"].items()},
    }


def _without_unsafe_header(name: str, schema: Any) -> Any:
    """Ask no client to repeat a secret in a header, where others would read it."""
    if not isinstance(schema, Mapping):
        return cast(object, schema)
    given = cast(Schema, schema)
    return {key: value for key, value in given.items() if key != HEADER or not SECRET_ARGUMENT.search(name)}


def _build_entry(definition: Definition, effect: ToolEffect, prefix: str) -> dict[str, Any]:
    """Collect what clients see besides: annotations that you approved, icons, and `_meta`."""
    kept = {key: definition[key] for key in SHOWN_SEPARATELY[1:] if key in definition}
    if isinstance(kept.get("_meta"), Mapping):
        kept["_meta"] = prefix_meta(prefix, kept["_meta"])
    if len(json.dumps(kept)) > MAX_ENTRY_CHARS:
        raise UnusableTool("its icons and `_meta` are too large")
    return kept | ({"annotations": effect.annotations} if effect.annotations is not None else {})


def _find_title(definition: Definition) -> str:
    annotations = definition.get("annotations")
    more = _get_text(cast(Definition, annotations), "title") if isinstance(annotations, Mapping) else ""
    return _get_text(definition, "title") or more


def _get_text(definition: Definition, key: str) -> str:
    value = definition.get(key)
    return value if isinstance(value, str) else ""


def _clean(text: str) -> str:
    return UNSEEN.sub("", text).strip()


def _cut(text: str) -> str:
    data = text.encode()
    return (
        text if len(data) <= MAX_DESCRIPTION_BYTES else f"{data[: MAX_DESCRIPTION_BYTES - 3].decode(errors='ignore')}…"
    )


def list_duplicates(tools: Collection[Tool]) -> Iterator[Tool]:
    """Yield the tools whose name an earlier one has: servers without a prefix can share names."""
    names: set[str] = set()
    for tool in tools:
        if tool.name in names:
            yield tool
        names.add(tool.name)
