"""Which servers does the file of a host or a workspace name, and how does menugate.yaml say the same?

Reading it starts nothing, connects to nothing and fills in no variable: such a file only proposes servers.
"""

import json
import os
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from mcp_server.config.operator_file import UnusableFile
from mcp_server.config.upstream_schema import ENTRY, FOREIGN
from mcp_server.model.text import quote_exactly
from mcp_server.settings import SECRET_NAME, SHORTEST_SECRET

MAX_BYTES = 1 << 20
SECTIONS = ("mcpServers", "servers", "mcp_servers")
"""How hosts name the section, the usual name first."""
SAME = {"httpUrl": "url", "serverUrl": "url", "transport": "type"}
"""Keys of hosts that mean the same as ours."""
WORKSPACE_FILE = ".mcp.json"
CREDENTIALS = frozenset(("authorization", "proxy-authorization", "cookie", "x-api-key"))


@dataclass(frozen=True, slots=True)
class ServerFile:
    path: Path
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]], repr=False)
    faults: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is wrong with single entries, by name."""


def read_server_file(path: Path) -> ServerFile:
    """Read the file, or raise `UnusableFile` with the place of its fault."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnusableFile(f"{path} cannot be read: {(error.strerror or 'no reason given').lower()}") from None
    if len(data) > MAX_BYTES:
        raise UnusableFile(f"{path} is larger than {MAX_BYTES >> 20} MB")
    tree = _parse(path, data)
    section = next((tree[key] for key in SECTIONS if key in tree), None)
    if not isinstance(section, dict):
        raise UnusableFile(f"{path} has no servers; it needs a section `mcpServers`")
    given = cast(dict[str, Any], section)
    faults = {name: fault for name, one in given.items() if (fault := _find_fault(one))}
    return ServerFile(path, {name: one for name, one in given.items() if name not in faults}, faults)


def _parse(path: Path, data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8-sig")
        tree: Any = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text, object_pairs_hook=_take_pairs)
    except json.JSONDecodeError as wrong:
        raise UnusableFile(f"{path}:{wrong.lineno}: this is not JSON ({wrong.msg.lower()})") from None
    except (ValueError, RecursionError) as wrong:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise UnusableFile(f"{path}: this is not {kind} ({str(wrong)[:200]})") from None
    if not isinstance(tree, dict):
        raise UnusableFile(f"{path} has no servers; it needs a section `mcpServers`")
    return cast(dict[str, Any], tree)


def _take_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{quote_exactly(twice)} is there twice")
    return dict(pairs)


def _find_fault(entry: Any) -> str:
    if not isinstance(entry, dict):
        return "a server is written as an object"
    given = cast(dict[str, Any], entry)
    wrong = {
        "command": not isinstance(given.get("command", ""), str),
        "url": not isinstance(given.get("url", ""), str),
        "args": not _is_list_of_texts(given.get("args", [])),
        **{key: not _is_map_of_texts(given.get(key, {})) for key in ("env", "headers")},
    }
    return next((f"{quote_exactly(key)} has another form than hosts use" for key, is_so in wrong.items() if is_so), "")


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in cast(list[Any], value))


def _is_map_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in cast(dict[str, Any], value).values())


def convert_entry(entry: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the entry in our keys, and what of it had to be left out and what to write instead."""
    converted: dict[str, Any] = {}
    left_out: list[str] = []
    for key, value in entry.items():
        if key in ENTRY.keys:
            converted.setdefault(key, value)
        elif key in SAME:
            converted.setdefault(SAME[key], value)
        elif key == "enabled" and isinstance(value, bool):
            converted.setdefault("disabled", not value)
        elif key in FOREIGN:
            left_out.append(f"`{key}` is another program's key and was left out; {FOREIGN[key]}.")
        else:
            left_out.append(f"{quote_exactly(key)} is unknown here and was left out.")
    return converted, left_out


def take_out_secrets(
    server: str, entry: Mapping[str, Any], is_free: Callable[[str, str], bool]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Put references in the place of passwords and tokens; return the entry, and the values by secret. `is_free` says
    whether a secret can have that name and that value."""
    secrets: dict[str, str] = {}

    def refer(key: str, value: str) -> str:
        own = "".join(char if char.isalnum() or char in "_.-" else "_" for char in key).strip("_.-")
        names = (own, f"{server}_{own}", *(f"{server}_{own}_{number}" for number in range(2, 100)))
        name = next(one for one in names if secrets.get(one, value) == value and is_free(one, value))
        secrets[name] = value
        return f"${{secret:{name}}}"

    changed = dict(entry)
    for part, upper in (("env", False), ("headers", True)):
        values = dict(cast(Mapping[str, str], entry.get(part, {})))
        for key, value in values.items():
            scheme, _, rest = value.rpartition(" ") if upper else ("", "", value)
            if is_literal_secret(key, rest):
                name = key.upper().replace("-", "_") if upper else key
                values[key] = f"{scheme} {refer(name, rest)}".lstrip()
        if values:
            changed[part] = values
    return changed, secrets


def is_literal_secret(key: str, value: str) -> bool:
    named = SECRET_NAME.search(key) is not None or key.lower() in CREDENTIALS
    return named and "${" not in value and len(value) >= SHORTEST_SECRET


def describe_entry(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Describe what would be started or called, and what it would get, without any value."""
    given, _ = convert_entry(entry)
    if command := given.get("command"):
        yield "starts", shlex.join([command, *given.get("args", [])])
    if url := given.get("url"):
        yield "calls", str(url)
    if folder := given.get("cwd"):
        yield "in", str(folder)
    for part, word in (("env", "variables"), ("headers", "headers")):
        if names := given.get(part):
            yield word, ", ".join(sorted(names))


def list_differences(entry: Mapping[str, Any], added: Any) -> list[str]:
    """List the keys in which the file's entry differs from what you added. Values of variables and headers are left
    out, because secrets are kept elsewhere once they are added."""
    given, _ = convert_entry(entry)
    mine = cast(dict[str, Any], added if isinstance(added, dict) else {})
    different = [
        key for key in ("command", "args", "cwd", "url") if (given.get(key) or None) != (mine.get(key) or None)
    ]
    names = [key for key in ("env", "headers") if sorted(given.get(key) or {}) != sorted(mine.get(key) or {})]
    return [*different, *names, *_list_changed_values(given, mine)]


def _list_changed_values(given: Mapping[str, Any], mine: Mapping[str, Any]) -> list[str]:
    changed: list[str] = []
    for part in ("env", "headers"):
        theirs = cast(Mapping[str, str], given.get(part) or {})
        ours = cast(Mapping[str, str], mine.get(part) or {})
        if sorted(theirs) == sorted(ours):
            literal = {name: value for name, value in theirs.items() if "${secret:" not in ours[name]}
            changed += [part] if any(value != ours[name] for name, value in literal.items()) else []
    return changed
