"""Do the schemas that editors use say what the loader says?"""

import jsonschema_rs
import pytest

from mcp_server.config.schemas import build_schemas
from tests.config.samples import SHIPPED, mode_text
from tests.yaml_text import load_yaml

TABLES = {
    "stages.yaml": "stages.schema.json",
    "work_modes.yaml": "work_modes.schema.json",
    "hosts.yaml": "hosts.schema.json",
}


FILES = sorted(path.name for path in SHIPPED.glob("*.yaml"))


@pytest.mark.parametrize("name", FILES)
def test_a_shipped_file_names_its_schema_and_follows_it(name: str) -> None:
    schema = TABLES.get(name, "mode.schema.json")
    text = (SHIPPED / name).read_text()
    assert text.startswith(f"# yaml-language-server: $schema=./{schema}\n")
    jsonschema_rs.validate(build_schemas()[schema], load_yaml(text))


@pytest.mark.parametrize(
    ("schema", "text", "fits"),
    [
        ("mode.schema.json", mode_text(), True),
        ("mode.schema.json", mode_text(name="root"), False),
        ("mode.schema.json", mode_text(tools="[]"), False),
        ("mode.schema.json", mode_text() + "extra: 1\n", False),
        ("mode.schema.json", "extends: swe\nadd: [bash]\n", True),
        ("mode.schema.json", "extends: swe\ntitle: Mine\n", False),
        ("mode.schema.json", "extends: swe\nname: mine\ntitle: Mine\nwhen: to work\n", True),
        ("mode.schema.json", "extends: swe\nname: mine\ntitle: Mine\n", False),
        ("config.schema.json", "rules:\n  deny: [bash, {rule: Read, reason: because}]\n", True),
        ("config.schema.json", "rules:\n  deny: [{reason: because}]\n", False),
        ("config.schema.json", "budget: {calls: 0}\n", False),
        ("config.schema.json", "listing: auto\nprofile: normal\n", True),
    ],
)
def test_the_schemas_say_what_the_loader_says(schema: str, text: str, fits: bool) -> None:
    assert jsonschema_rs.is_valid(build_schemas()[schema], load_yaml(text)) is fits


def test_the_schemas_are_schemas_and_always_the_same() -> None:
    assert build_schemas() == build_schemas()
    for schema in build_schemas().values():
        jsonschema_rs.meta.validate(schema)
