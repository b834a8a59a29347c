"""Which effects does each stage of a run allow, and which does each work mode?"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from mcp_server.config.faults import FaultCollector, SourceLocation
from mcp_server.config.reader import Fields, read_yaml_file
from mcp_server.config.shapes import EnumField, KeySpec, ListField, RecordField, fit, get_leaves
from mcp_server.model.posture import Stage, WorkMode
from mcp_server.model.tools import Effect

Key = TypeVar("Key", bound=StrEnum)
EFFECTS = ListField(EnumField(tuple(effect.value for effect in Effect)))


def _build_effects_shape(keys: type[StrEnum], says: str) -> RecordField:
    """One required key per member, so that none can be forgotten."""
    return RecordField(
        {key.value: KeySpec(EFFECTS, f"what tools may do in `{key}`; `[]` for nothing", required=True) for key in keys},
        says,
    )


STAGES = _build_effects_shape(
    Stage, "The effects that each stage of a run allows. Meta-tools are exempt; an unknown stage only reads."
)
WORK_MODES = _build_effects_shape(
    WorkMode, "The effects that each work mode allows. Meta-tools are exempt; an unknown work mode only reads."
)


def load_stages(path: Path, findings: FaultCollector) -> Mapping[Stage, frozenset[Effect]]:
    return _load_effects(path, STAGES, Stage, findings)


def load_work_modes(path: Path, findings: FaultCollector) -> Mapping[WorkMode, frozenset[Effect]]:
    return _load_effects(path, WORK_MODES, WorkMode, findings)


def _load_effects(
    path: Path, shape: RecordField, keys: type[Key], findings: FaultCollector
) -> Mapping[Key, frozenset[Effect]]:
    node = read_yaml_file(path, findings)
    table = fit(node, shape, findings) if node is not None else None
    fields = table if isinstance(table, Fields) else Fields(SourceLocation(str(path)))
    return {key: frozenset(Effect(effect.text) for effect in get_leaves(fields, key.value)) for key in keys}
