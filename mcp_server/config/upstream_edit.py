"""What does the operator's file say with a server more, a server less, or one that is disabled?

As with rules, the rest of the text stays as it is, and the new text is read back: an edit that changes anything else is
never used.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mcp_server.config.operator_edit import (
    INDENT,
    UneditableLayout,
    find_end,
    insert_into_flow,
    insert_lines,
    is_key,
    quote_text,
    read_plain,
)
from mcp_server.config.operator_schema import KEY, SECTION

if TYPE_CHECKING:
    import yaml

Entry: TypeAlias = Mapping[str, Any]
"""A server as a host's file has it: texts, lists of texts, mappings of texts, numbers and flags."""
PLAIN = re.compile(r"[A-Za-z/][\w./@-]*(?::[\w./@-]+)*", re.ASCII)
WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
"""What YAML or one of its readers takes for something else than a text."""
DISABLED, MENUS = "disabled", "menus"


def add_server(text: str, name: str, entry: Entry, workspace: str | None = None) -> str:
    """Return the text with a server added, for all workspaces or for one."""
    before, path = _read(text), _get_path(workspace)
    edited = _insert(text, (*path, name), entry)
    after = _read(edited)
    added = _find_section(after, path).pop(name, None)
    if not _find_section(before, path, create=True) and not _find_section(after, path):
        _drop_empty(before, path)
        _drop_empty(after, path)
    if after != before or _to_texts(added) != _to_texts(entry):
        raise UneditableLayout
    return edited


def remove_server(text: str, name: str, workspace: str | None = None) -> str:
    """Return the text without that server."""
    before, path = _read(text), _get_path(workspace)
    node, pairs = _find_pairs(text, path)
    at = next(number for number, (key, _) in enumerate(pairs) if key.value == name)
    if len(pairs) == 1:
        start, end = node.start_mark.index, _find_value_end(text, node)
        # What is left of a block begins on the line of its key.
        start = start if node.flow_style else text.rindex(":", 0, start) + 1
        edited = f"{text[:start]}{'' if node.flow_style else ' '}{{}}{text[end:]}"
    elif node.flow_style:
        edited = _remove_from_flow(text, pairs, at)
    else:
        start = text.rfind("\n", 0, pairs[at][0].start_mark.index) + 1
        line_end = text.find("\n", _find_value_end(text, pairs[at][1]))
        edited = text[:start] + (text[line_end + 1 :] if line_end >= 0 else "")
    del _find_section(before, path)[name]
    if _read(edited) != before:
        raise UneditableLayout
    return edited


def set_disabled(text: str, name: str, disabled: bool, workspace: str | None = None) -> str:
    """Return the text with `disabled` set for that server, or without a change if it has that meaning already."""
    import yaml

    before, path = _read(text), (*_get_path(workspace), name)
    _, pairs = _find_pairs(text, path)
    present = next((value for key, value in pairs if key.value == DISABLED), None)
    word = "true" if disabled else "false"
    if isinstance(present, yaml.ScalarNode):
        edited = f"{text[: present.start_mark.index]}{word}{text[present.end_mark.index :]}"
    elif disabled:
        edited = _insert(text, (*path, DISABLED), True)
    else:
        return text
    section = _find_section(before, path)
    section[DISABLED] = (word, True)
    if _read(edited) != before:
        raise UneditableLayout
    return edited


def list_menus_folders(text: str) -> list[str]:
    """List the folders with your own modes."""
    folders: Any = _to_texts(_read(text).get(MENUS, []))
    if not isinstance(folders, list):
        raise UneditableLayout
    return cast(list[str], folders)


def add_menus_folder(text: str, folder: str) -> str:
    """Return the text with a folder for modes; it must have none."""
    before, edited = _read(text), _insert(text, (MENUS,), [folder])
    after = _read(edited)
    if after.pop(MENUS, None) != [(folder, _quote(folder) == folder)] or after != before:
        raise UneditableLayout
    return edited


def find_workspace_section(text: str, name: str, workspace: str) -> str | None:
    """Return the workspace if the server is in its section alone; None if it is for all, or nowhere."""
    tree = _read(text)
    if name in _find_section(tree, _get_path(None)):
        return None
    return workspace if name in _find_section(tree, _get_path(workspace)) else None


def list_servers(text: str, workspace: str) -> list[str]:
    """List the servers for all workspaces, and those for this one."""
    tree = _read(text)
    return [*_find_section(tree, _get_path(None)), *_find_section(tree, _get_path(workspace))]


def read_entry(text: str, name: str, workspace: str | None = None) -> Any:
    """Return what the file says about the server, as plain texts; None if it is not there."""
    return _to_texts(_find_section(_read(text), _get_path(workspace)).get(name))


def format_server(name: str, entry: Entry) -> str:
    """Write the server as a section of its own."""
    return _format_block((KEY, name), entry, 0)


def _get_path(workspace: str | None) -> tuple[str, ...]:
    return (KEY,) if workspace is None else (SECTION, workspace, KEY)


def _insert(text: str, path: Sequence[str], value: Any) -> str:
    import yaml

    root = _compose(text)
    if root is None:
        return insert_lines(text, len(text), _format_block(path, value, 0))
    node, depth = root, 0
    while isinstance(node, yaml.MappingNode) and depth < len(path):
        below = next((one for key, one in node.value if is_key(key.value, path[depth])), None)
        if below is None:
            break
        node, depth = below, depth + 1
    if not isinstance(node, yaml.MappingNode) or depth == len(path):
        raise UneditableLayout
    if node.flow_style:
        return insert_into_flow(text, node, _format_flow(path[depth:], value))
    return insert_lines(text, find_end(text, node), _format_block(path[depth:], value, node.start_mark.column))


def _compose(text: str) -> "yaml.Node | None":
    import yaml

    return cast("yaml.Node | None", yaml.compose(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]  # the stub leaves out what a stream is


def _find_pairs(text: str, path: Sequence[str]) -> "tuple[yaml.MappingNode, list[tuple[Any, yaml.Node]]]":
    import yaml

    node = _compose(text)
    for name in path:
        if not isinstance(node, yaml.MappingNode):
            raise UneditableLayout
        node = next((value for key, value in node.value if is_key(key.value, name)), None)
    if not isinstance(node, yaml.MappingNode):
        raise UneditableLayout
    return node, node.value


def _find_value_end(text: str, node: "yaml.Node") -> int:
    return find_end(text, node) if not getattr(node, "flow_style", True) else node.end_mark.index


def _remove_from_flow(text: str, pairs: "list[tuple[Any, yaml.Node]]", at: int) -> str:
    if at + 1 < len(pairs):
        start, end = pairs[at][0].start_mark.index, pairs[at + 1][0].start_mark.index
    else:
        start, end = pairs[at - 1][1].end_mark.index, pairs[at][1].end_mark.index
    return text[:start] + text[end:]


def _format_block(path: Sequence[str], value: Any, column: int) -> str:
    lines = [f"{' ' * (column + INDENT * depth)}{_quote(key)}:" for depth, key in enumerate(path)]
    if not isinstance(value, Mapping):
        lines[-1] += f" {_format_value(value)}"
    else:
        pad = " " * (column + INDENT * len(path))
        lines += [f"{pad}{_quote(key)}: {_format_value(one)}" for key, one in cast(Entry, value).items()]
    return "".join(f"{line}\n" for line in lines)


def _format_flow(path: Sequence[str], value: Any) -> str:
    inner = _format_value(value)
    for key in reversed(path[1:]):
        inner = f"{{{_quote(key)}: {inner}}}"
    return f"{_quote(path[0])}: {inner}"


def _format_value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return _quote(value)
        case list() | tuple():
            return f"[{', '.join(map(_format_value, cast(Sequence[Any], value)))}]"
        case Mapping():
            pairs = cast(Entry, value).items()
            return f"{{{', '.join(f'{_quote(key)}: {_format_value(one)}' for key, one in pairs)}}}"
        case _:
            raise UneditableLayout


def _quote(text: str) -> str:
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    return quote_text(text) if text.isprintable() else json.dumps(text)


# What the file says, to compare.


def _read(text: str) -> dict[str, Any]:
    tree: Any = read_plain(text) if _compose(text) is not None else {}
    return cast(dict[str, Any], tree)


def _find_section(tree: dict[str, Any], path: Sequence[str], create: bool = False) -> dict[str, Any]:
    found = tree
    for name in path:
        below = next((key for key in found if is_key(key, name)), name)
        inner: Any = found.setdefault(below, {}) if create else found.get(below, {})
        if not isinstance(inner, dict):
            raise UneditableLayout
        found = cast(dict[str, Any], inner)
    return found


def _drop_empty(tree: dict[str, Any], path: Sequence[str]) -> None:
    """Remove sections that are there only because something was looked up or taken out."""
    for depth in range(len(path), 0, -1):
        holder = _find_section(tree, path[: depth - 1])
        key = next((one for one in holder if is_key(one, path[depth - 1])), None)
        if key is not None and not holder[key]:
            del holder[key]


def _to_texts(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _to_texts(one) for key, one in cast(Entry, value).items()}
        case list():
            return [_to_texts(one) for one in cast(list[Any], value)]
        case (str() as text, bool()):
            return text
        case tuple():
            return [_to_texts(one) for one in cast(tuple[Any, ...], value)]
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return value
