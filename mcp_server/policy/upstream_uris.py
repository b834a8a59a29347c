"""What are the resources of other servers called here? Each address names its server, and loses that on its way back.

`memo://notes` of the server `time` is `memo://time/notes`, whatever its scheme: hosts know `ui:` by its scheme. A web
address stays as it is, because hosts may open it themselves, and so does every address of a server without a prefix.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

ADDRESS = re.compile(r"(?P<scheme>[^:/?#\s]+:)(?P<slashes>//)?(?P<rest>.*)", re.DOTALL)
WEB = frozenset({"http:", "https:"})
UI = "ui/resourceUri"
"""The older spelling of `ui: {resourceUri: …}` in a `_meta`."""
HOLE = re.compile(r"\{([^{}]*)\}")
SIMPLE = re.compile(r"\w+(?::\d+)?")


def prefix_uri(prefix: str, uri: str) -> str:
    found = ADDRESS.fullmatch(uri)
    if not prefix or found is None or found["scheme"].lower() in WEB:
        return uri
    return f"{found['scheme']}{found['slashes'] or ''}{prefix}/{found['rest']}"


def strip_uri(prefix: str, uri: str) -> str | None:
    """Return the server's own address; None if this one does not name the server."""
    found = ADDRESS.fullmatch(uri)
    if not prefix or found is None or found["scheme"].lower() in WEB or not found["rest"].startswith(f"{prefix}/"):
        return None
    return f"{found['scheme']}{found['slashes'] or ''}{found['rest'][len(prefix) + 1 :]}"


def matches_template(template: str, uri: str) -> bool:
    """True if the address may be one that the template describes; in linear time, whatever the server wrote."""
    parts = HOLE.split(template)
    literals, holes = parts[::2], parts[1::2]
    if not uri.startswith(literals[0]):
        return False
    at = len(literals[0])
    for index, (hole, literal) in enumerate(zip(holes, literals[1:], strict=True)):
        last = index == len(holes) - 1
        end = uri.find(literal, at) if literal and not last else len(uri) - len(literal) if last else at
        if end < at or not uri.startswith(literal, end):
            return False
        if SIMPLE.fullmatch(hole) and "/" in uri[at:end]:
            return False
        at = end + len(literal)
    return at == len(uri)


def prefix_meta(prefix: str, meta: Mapping[str, Any]) -> dict[str, Any]:
    """Prefix the address of the view that a `_meta` names."""
    prefixed = dict(meta)
    if isinstance(meta.get(UI), str):
        prefixed[UI] = prefix_uri(prefix, meta[UI])
    view: Any = meta.get("ui")
    uri: Any = cast(Mapping[str, Any], view).get("resourceUri") if isinstance(view, Mapping) else None
    return prefixed | ({"ui": {**view, "resourceUri": prefix_uri(prefix, uri)}} if isinstance(uri, str) else {})


def prefix_block(prefix: str, block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Prefix the address in a content block, or in a part of a resource."""
    prefixed = dict(block)
    if isinstance(uri := block.get("uri"), str):
        prefixed["uri"] = prefix_uri(prefix, uri)
    if isinstance(resource := block.get("resource"), Mapping):
        prefixed["resource"] = prefix_block(prefix, cast(Mapping[str, Any], resource))
    if isinstance(meta := block.get("_meta"), Mapping):
        prefixed["_meta"] = prefix_meta(prefix, cast(Mapping[str, Any], meta))
    return prefixed


def list_uris(blocks: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    """Yield the addresses that content blocks name."""
    for block in blocks:
        if isinstance(uri := block.get("uri"), str):
            yield uri
        if isinstance(resource := block.get("resource"), Mapping):
            yield from list_uris((cast(Mapping[str, Any], resource),))


def find_view(meta: Any) -> str | None:
    """Return the address of the view that a tool's `_meta` names."""
    if not isinstance(meta, Mapping):
        return None
    given = cast(Mapping[str, Any], meta)
    view: Any = given.get("ui")
    uri: Any = cast(Mapping[str, Any], view).get("resourceUri") if isinstance(view, Mapping) else given.get(UI)
    return uri if isinstance(uri, str) else None
