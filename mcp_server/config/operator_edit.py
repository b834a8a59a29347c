"""What does the operator's file say with one more rule? The same text, comments and layout, and a line or a few more.

The parser says where each part ends. Whatever the layout is, the new text is read back and compared with the old one,
so an edit that changes anything else is never used.
"""

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from mcp_server.config.faults import FaultCollector
from mcp_server.config.reader import Fields, Items, Leaf, Node, parse_yaml

if TYPE_CHECKING:
    import yaml

SECTION, LISTS, KIND = "workspaces", "rules", "allow"
PLAIN = re.compile(r"/[\w./+-]*", re.ASCII)
"""Paths that YAML reads as they are, without quotes."""
INDENT = 2


class UneditableLayout(ValueError):
    """The file is laid out in a way that leaves no safe place for the rule."""


def add_workspace_rule(text: str, workspace: str, rule: str) -> str:
    """Return the text with an allow rule for the workspace added."""
    import yaml

    root = cast("yaml.Node | None", yaml.compose(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]  # the stub leaves out what a stream is
    edited = _insert(text, root, (SECTION, workspace, LISTS, KIND), rule)
    if read_plain(edited) != _add_to_tree(read_plain(text), workspace, rule):
        raise UneditableLayout
    return edited


def format_workspace_rule(workspace: str, rule: str) -> str:
    """Write the rule as a section of its own."""
    return _format_block((SECTION, workspace, LISTS, KIND), rule, 0)


def _insert(text: str, root: "yaml.Node | None", path: Sequence[str], rule: str) -> str:
    import yaml

    if root is None:
        return insert_lines(text, len(text), _format_block(path, rule, 0))
    node, depth = root, 0
    while isinstance(node, yaml.MappingNode) and depth < len(path):
        below = next((value for key, value in node.value if is_key(key.value, path[depth])), None)
        if below is None:
            break
        node, depth = below, depth + 1
    if not isinstance(node, yaml.SequenceNode if depth == len(path) else yaml.MappingNode):
        raise UneditableLayout
    if node.flow_style:
        return insert_into_flow(text, node, _format_flow(path[depth:], rule))
    return insert_lines(text, find_end(text, node), _format_block(path[depth:], rule, node.start_mark.column))


def is_key(written: str, wanted: str) -> bool:
    return (os.path.normpath(written) if wanted.startswith("/") else written) == wanted


def insert_into_flow(text: str, node: "yaml.Node", fragment: str) -> str:
    children: list[Any] = node.value
    if not children:
        at = node.start_mark.index + 1
        return f"{text[:at]}{fragment}{text[at:]}"
    at = _get_last_child(children).end_mark.index
    return f"{text[:at]}, {fragment}{text[at:]}"


def insert_lines(text: str, end: int, lines: str) -> str:
    """Insert the lines below the one with this place, which may end with a comment."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    lines = lines.replace("\n", line_end)
    if (at := text.find("\n", end)) >= 0:
        return f"{text[: at + 1]}{lines}{text[at + 1 :]}"
    return f"{text}{lines}" if not text or text.endswith("\n") else f"{text}{line_end}{lines}"


def find_end(text: str, node: "yaml.Node") -> int:
    """Find where the last thing in the node ends: the mark of a block is behind the comments that follow it."""
    import yaml

    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = _get_last_child(cast(list[Any], node.value))
    end = node.end_mark.index
    return len(text[:end].rstrip()) if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">") else end


def _get_last_child(children: list[Any]) -> "yaml.Node":
    """Return the last item of a sequence, or the last value of a mapping."""
    last = children[-1]
    return cast("yaml.Node", last[1] if isinstance(last, tuple) else last)


def _format_block(path: Sequence[str], rule: str, column: int) -> str:
    lines = [f"{' ' * (column + INDENT * depth)}{_format_key(key)}:" for depth, key in enumerate(path)]
    lines.append(f"{' ' * (column + INDENT * len(path))}- {quote_text(rule)}")
    return "".join(f"{line}\n" for line in lines)


def _format_flow(path: Sequence[str], rule: str) -> str:
    if not path:
        return quote_text(rule)
    inner = f"[{quote_text(rule)}]"
    for key in reversed(path[1:]):
        inner = f"{{{_format_key(key)}: {inner}}}"
    return f"{_format_key(path[0])}: {inner}"


def _format_key(key: str) -> str:
    return key if key in (SECTION, LISTS, KIND) or PLAIN.fullmatch(key) else quote_text(key)


def quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# The same edit on what the file says, to compare.


def read_plain(text: str) -> Any:
    findings = FaultCollector()
    node = parse_yaml(text, "", findings)
    if findings.faults():
        raise UneditableLayout
    return _to_plain(node)


def _to_plain(node: Node | None) -> Any:
    match node:
        case Fields():
            return {name: _to_plain(one) for name, one in node.fields.items()}
        case Items():
            return [_to_plain(one) for one in node.items]
        case Leaf():
            return (node.text, node.plain)
        case None:
            raise UneditableLayout


def _add_to_tree(tree: Any, workspace: str, rule: str) -> Any:
    sections: dict[str, Any] = tree.setdefault(SECTION, {})
    name = next((one for one in sections if is_key(one, workspace)), workspace)
    lists: dict[str, Any] = sections.setdefault(name, {}).setdefault(LISTS, {})
    lists.setdefault(KIND, []).append((rule, False))
    return tree
