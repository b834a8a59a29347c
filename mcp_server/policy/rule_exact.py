"""Which allow rule matches exactly this call, and no other?

The rule names the value of every argument that decides what the call does. If the rule language cannot say that, there
is no rule: one that matches a little more would let through calls that nobody looked at.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from mcp_server.model.text import quote_as_json, quote_text
from mcp_server.model.tools import Arguments, Tool

NAME = re.compile(r"-?[A-Za-z_][\w$-]*")
"""The names that a predicate can be about; a dot would lead into the argument."""
DIGITS = re.compile(r"-?\d{1,18}(?:\.\d{1,18})?")
"""The numbers that a rule can contain."""
NO_DEFAULT = object()


class InexactRule(ValueError):
    """No rule matches exactly this call; the message says why, to the user who asked for one."""


def write_exact_rule(tool: Tool, arguments: Arguments, free: Collection[str] = ()) -> str:
    """Write the rule. It is about every argument but those that the tool declares incidental, and those in `free`,
    which may have any value. Raises `InexactRule` if there is none."""
    name = tool.written or tool.name
    given = {one: value for one, value in arguments.items() if one not in {*tool.incidental, *free}}
    properties: Mapping[str, Any] = tool.arguments.get("properties", {})
    if free:
        # The rest has to be listed, because `nothing else` would forbid the free ones.
        named = [one for one in properties if one not in {*tool.incidental, *free}]
        return f"{name}({' and '.join(_write_predicates(tool, given, named))})" if named else name
    named = [*tool.places, *given] or [*properties][:1]
    if named:
        return f"{name}({' and '.join(_write_predicates(tool, given, named))} and nothing else)"
    if tool.arguments.get("additionalProperties") is not False:
        raise InexactRule(f"{quote_text(tool.name)} takes arguments that it does not declare")
    return name


def _write_predicates(tool: Tool, given: Arguments, names: Collection[str]) -> Iterator[str]:
    """Write a predicate for each argument, the subject first."""
    properties: Mapping[str, Any] = tool.arguments.get("properties", {})
    subject = (tool.subject[0],) if tool.subject and tool.subject[0] in names else ()
    for name in dict.fromkeys((*subject, *names)):
        if name not in properties or not NAME.fullmatch(name):
            raise InexactRule(f"a rule cannot name the argument {quote_text(name)}")
        value = given.get(name, cast(Mapping[str, Any], properties[name]).get("default", NO_DEFAULT))
        if value is NO_DEFAULT:
            yield f"{name} exists false"
        elif not isinstance(value, list) and _may_be_list(properties[name]):
            # A rule about one value also matches a list that holds nothing but that value.
            raise InexactRule(f"a rule cannot tell the value of {quote_text(name)} from a list of it")
        else:
            yield f"{name} eq {_format_value(name, _locate(tool, name, value, given))}"


def _locate(tool: Tool, name: str, value: Any, given: Arguments) -> Any:
    """Write a path relative to the workspace, as predicates compare it."""
    if name not in tool.places:
        return value
    if isinstance(value, list):
        return [_locate(tool, name, one, given) for one in cast(list[Any], value)]
    return tool.join_base_path(name, value, given) if isinstance(value, str) else value


def _may_be_list(schema: Any) -> bool:
    node = cast(Mapping[str, Any], schema)
    branches = [one for key in ("anyOf", "oneOf") for one in node.get(key, ())]
    if branches:
        return any(map(_may_be_list, branches))
    kinds = node.get("type", () if node.keys() & {"enum", "const"} else "array")
    return "array" in ([kinds] if isinstance(kinds, str) else kinds)


def _format_value(name: str, value: Any) -> str:
    if isinstance(value, list):
        items = cast(list[Any], value)
        if any(isinstance(one, list) for one in items):
            raise InexactRule(f"a rule cannot contain the value of {quote_text(name)}, a list of lists")
        return f"[{', '.join(_format_value(name, one) for one in items)}]"
    if isinstance(value, str):
        return quote_as_json(value)
    if isinstance(value, bool | None):
        return {True: "true", False: "false", None: "null"}[value]
    number = repr(value)
    if not isinstance(value, int | float) or not DIGITS.fullmatch(number):
        raise InexactRule(f"a rule cannot contain the value of {quote_text(name)}")
    return number
