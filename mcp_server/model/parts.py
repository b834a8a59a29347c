"""Which parts does a value have? Values are msgspec's structs; the few that these cannot express are dataclasses."""

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct


def list_parts(kind: Any) -> tuple[str, ...]:
    """The names of its parts, in their order."""
    return kind.__struct_fields__ if issubclass(kind, Struct) else tuple(one.name for one in dataclasses.fields(kind))


def asdict(value: Any) -> dict[str, Any]:
    """Values within it become mappings as well."""
    return {name: _copy_part(getattr(value, name)) for name in list_parts(type(value))}


def _copy_part(part: Any) -> Any:
    if isinstance(part, Struct) or dataclasses.is_dataclass(part):
        return asdict(part)
    if isinstance(part, Mapping):
        return {key: _copy_part(one) for key, one in cast(Mapping[Any, Any], part).items()}
    if isinstance(part, list | tuple) and not hasattr(cast(Any, part), "_fields"):
        copies = [_copy_part(one) for one in cast(list[Any], part)]
        return copies if isinstance(part, list) else tuple(copies)
    return cast(Any, part)
