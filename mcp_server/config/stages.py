"""Which effects does each stage of a run allow?"""

from collections.abc import Mapping
from pathlib import Path

from mcp_server.config.faults import FaultCollector, SourceLocation
from mcp_server.config.reader import Fields, read_yaml_file
from mcp_server.config.shapes import EnumField, KeySpec, ListField, RecordField, fit, get_leaves
from mcp_server.model.posture import Stage
from mcp_server.model.tools import Effect

EFFECTS = ListField(EnumField(tuple(effect.value for effect in Effect)))
STAGES = RecordField(
    {
        stage.value: KeySpec(EFFECTS, f"what tools may do in `{stage}`; `[]` for nothing", required=True)
        for stage in Stage
    },
    "The effects that each stage of a run allows. Meta-tools are exempt; a stage nobody knows only reads.",
)


def load_stages(path: Path, findings: FaultCollector) -> Mapping[Stage, frozenset[Effect]]:
    node = read_yaml_file(path, findings)
    table = fit(node, STAGES, findings) if node is not None else None
    fields = table if isinstance(table, Fields) else Fields(SourceLocation(str(path)))
    return {stage: frozenset(Effect(effect.text) for effect in get_leaves(fields, stage.value)) for stage in Stage}
