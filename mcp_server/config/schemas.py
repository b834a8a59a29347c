"""How does an editor know what a file may contain? JSON Schemas, made from the shapes that check the files."""

from typing import Any

from mcp_server.config.hosts import HOSTS
from mcp_server.config.menus import CHANGE, DERIVED, WHOLE
from mcp_server.config.operator_schema import CONFIG, SERVERS
from mcp_server.config.shapes import (
    AnyField,
    BoolField,
    EnumField,
    IntField,
    LineField,
    ListField,
    MapField,
    RecordField,
    ScalarField,
    Shape,
    TextOrField,
)
from mcp_server.config.stages import STAGES, WORK_MODES
from mcp_server.config.upstream_schema import ENTRY

# The dialect that editors' YAML plugins speak.
DIALECT = {"$schema": "http://json-schema.org/draft-07/schema#"}


def build_schemas() -> dict[str, dict[str, Any]]:
    """Build the schemas in `menus/`, by file name."""
    mode = {
        "if": {"required": ["extends"]},
        "then": {"if": {"required": ["name"]}, "then": to_json_schema(DERIVED), "else": to_json_schema(CHANGE)},
        "else": to_json_schema(WHOLE),
    }
    return {
        "config.schema.json": DIALECT | to_json_schema(CONFIG),
        "hosts.schema.json": DIALECT | to_json_schema(HOSTS),
        "mode.schema.json": DIALECT | {"type": "object"} | mode,
        "stages.schema.json": DIALECT | to_json_schema(STAGES),
        "work_modes.schema.json": DIALECT | to_json_schema(WORK_MODES),
    }


def to_json_schema(shape: Shape) -> dict[str, Any]:
    match shape:
        case RecordField():
            return _build_record_schema(shape)
        case MapField():
            key, value = to_json_schema(shape.key), to_json_schema(ENTRY if shape is SERVERS else shape.value)
            return {"type": "object", "propertyNames": key, "additionalProperties": value}
        case ListField():
            min_items = {"minItems": shape.min_items} if shape.min_items else {}
            return {
                "type": "array",
                "items": to_json_schema(shape.item),
                **({"uniqueItems": True} if shape.unique else {}),
                "maxItems": shape.max_items,
            } | min_items
        case TextOrField():
            return {"anyOf": [to_json_schema(shape.text), to_json_schema(shape.record)]}
        case LineField():
            pattern = {"pattern": f"^(?:{shape.pattern})$"} if shape.pattern else {}
            return {"type": "string", "minLength": 1, "maxLength": shape.max_chars} | pattern
        case EnumField():
            return {"type": "string", "enum": [str(name) for name in shape.names]}
        case IntField():
            return {"type": "integer", "minimum": shape.minimum, "maximum": shape.maximum}
        case BoolField():
            return {"type": "boolean"}
        case ScalarField():
            return {"type": ["string", "number", "boolean"]}
        case AnyField():
            return {}


def _build_record_schema(shape: RecordField) -> dict[str, Any]:
    required = [name for name, key in shape.keys.items() if key.required]
    return (
        {"type": "object"}
        | ({"description": shape.description} if shape.description else {})
        | {
            "properties": {
                name: to_json_schema(key.shape) | {"description": key.description} for name, key in shape.keys.items()
            },
            "additionalProperties": False,
        }
        | ({"required": required} if required else {})
    )
