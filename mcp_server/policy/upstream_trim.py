"""What does the operator want to keep of a server's results? Paths into JSON, such as `items.*.id`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from msgspec.structs import replace

from mcp_server.model.results import Relayed
from mcp_server.model.upstreams import ResultTrim

ANY = "*"
MAX_DEPTH = 64
Path: TypeAlias = tuple[str, ...]


def trim_result(ending: Relayed, trim: ResultTrim) -> Relayed:
    """Trim the structured content, and each text that is JSON. An error stays whole."""
    if ending.failed or not (trim.keep or trim.drop):
        return ending
    blocks = tuple(_trim_block(block, trim) for block in ending.blocks)
    return replace(ending, blocks=blocks, data=ending.data and trim_json(ending.data, trim))


def _trim_block(block: Mapping[str, Any], trim: ResultTrim) -> Mapping[str, Any]:
    text = block.get("text")
    if block.get("type") != "text" or not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return block
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return block
    return {**block, "text": json.dumps(trim_json(value, trim), ensure_ascii=False)}


def trim_json(value: Any, trim: ResultTrim) -> Any:
    keep, drop = ([tuple(path.split(".")) for path in paths] for paths in (trim.keep, trim.drop))
    return _drop(_keep(value, keep) if keep else value, drop)


def _keep(value: Any, paths: Sequence[Path], depth: int = 0) -> Any:
    if any(not path for path in paths) or depth > MAX_DEPTH:
        return value
    if isinstance(value, list):
        items = cast(list[Any], value)
        kept = [(one, _step_into_list(paths, index)) for index, one in enumerate(items)]
        return [_keep(one, inner, depth + 1) for one, inner in kept if inner]
    if isinstance(value, Mapping):
        entries = cast(Mapping[str, Any], value)
        kept = {key: _step(paths, key) for key in entries}
        return {key: _keep(entries[key], inner, depth + 1) for key, inner in kept.items() if inner}
    return None


def _drop(value: Any, paths: Sequence[Path], depth: int = 0) -> Any:
    if not paths or depth > MAX_DEPTH:
        return value
    if isinstance(value, list):
        items = [(one, _step_into_list(paths, index)) for index, one in enumerate(cast(list[Any], value))]
        return [_drop(one, inner, depth + 1) for one, inner in items if () not in inner]
    if isinstance(value, Mapping):
        entries = {key: (one, _step(paths, key)) for key, one in cast(Mapping[str, Any], value).items()}
        return {key: _drop(one, inner, depth + 1) for key, (one, inner) in entries.items() if () not in inner}
    return value


def _step(paths: Sequence[Path], key: str) -> list[Path]:
    """Return what is left of the paths that lead through this key."""
    return [path[1:] for path in paths if path and path[0] in (key, ANY)]


def _step_into_list(paths: Sequence[Path], index: int) -> list[Path]:
    """The same for an entry of a list, which a path may name by its number, by `*`, or not at all."""
    named = (ANY, str(index))
    return [
        path[1:] if path[0] in named else path for path in paths if path and (path[0] in named or not path[0].isdigit())
    ]
