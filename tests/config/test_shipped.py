"""Is what lies in menus/ sound, as planned, and as the schemas that editors use describe it?"""

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from mcp_server.config.schemas import build_schemas
from mcp_server.model.menus import Hosts, Listing
from mcp_server.model.posture import Stage, WorkMode
from mcp_server.model.tools import READING, Effect
from tests.config.samples import SHIPPED, made, mode_text, opened, shipped_tools

SEED: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parents[1] / "tables" / "seed_menus.yaml").read_text())
TABLES = {
    "stages.yaml": "stages.schema.json",
    "work_modes.yaml": "work_modes.schema.json",
    "hosts.yaml": "hosts.schema.json",
}
FILES = sorted(path.name for path in SHIPPED.glob("*.yaml"))


def in_order(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(one in rest for one in part)


def test_the_plan_has_a_row_of_policy_for_each_of_its_tools_and_none_besides() -> None:
    assert [len(mode["tools"]) for mode in SEED] == [mode["count"] for mode in SEED]
    rows = yaml.safe_load((Path(__file__).parents[1] / "tables" / "policy.yaml").read_text())["tools"]
    planned: dict[str, set[str]] = {}
    for mode in SEED:
        for tool in mode["tools"]:
            planned.setdefault(tool, set()).add(mode["name"])
    assert planned == {name: set(row["modes"]) for name, row in rows.items() if row["modes"]}


def test_what_was_planned_stands_in_the_menus_in_the_order_of_the_plan() -> None:
    """What came later may stand anywhere."""
    planned = {mode["name"]: mode for mode in SEED}
    tools = {tool for mode in SEED for tool in mode["tools"]}
    menus = [mode for mode in opened().menus if mode.name in planned]
    assert in_order([mode.name for mode in menus], [mode["name"] for mode in SEED])
    for mode in menus:
        assert mode.title == planned[mode.name]["title"]
        shipped = [tool for tool in mode.tools if tool in tools]
        assert in_order(shipped, planned[mode.name]["tools"]), mode.name


def test_the_whole_plan_can_be_written_one_file_per_mode(tmp_path: Path) -> None:
    ours = {mode.name for mode in opened().menus}
    for number, mode in enumerate(SEED, 1):
        if mode["name"] in ours:
            there = opened().menus.get(mode["name"])
            assert there is not None
            add = [tool for tool in mode["tools"] if tool not in there.tools]
            text = f"extends: {mode['name']}\nadd: [{', '.join(add)}]\n" if add else f"extends: {mode['name']}\n"
        else:
            text = mode_text(name=mode["name"], title=mode["title"], tools=f"[{', '.join(mode['tools'])}]")
            text += f"order: {number * 10}\n"
        (tmp_path / f"{mode['name']}.yaml").write_text(text)
    planned = {tool: made(tool) for mode in SEED for tool in mode["tools"]}
    menus = opened(tmp_path, tools=shipped_tools() | planned).menus
    counts = {mode.name: len([tool for tool in mode.tools if tool in planned]) for mode in menus}
    names = [mode["name"] for mode in SEED]
    assert [name for name in counts if name in names] == names
    assert [counts[name] for name in names] == [mode["count"] for mode in SEED]


@pytest.mark.parametrize("name", FILES)
def test_a_shipped_file_names_its_schema_and_follows_it(name: str) -> None:
    schema = TABLES.get(name, "mode.schema.json")
    text = (SHIPPED / name).read_text()
    assert text.startswith(f"# yaml-language-server: $schema=./{schema}\n")
    jsonschema_rs.validate(build_schemas()[schema], yaml.safe_load(text))


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
    assert jsonschema_rs.is_valid(build_schemas()[schema], yaml.safe_load(text)) is fits


def test_the_schemas_are_schemas_and_always_the_same() -> None:
    assert build_schemas() == build_schemas()
    for schema in build_schemas().values():
        jsonschema_rs.meta.validate(schema)


def test_the_words_of_every_mode_stay_short() -> None:
    for mode in opened().menus:
        assert len(mode.description) <= 600
        assert len(mode.when) <= 90


def test_the_stages_allow_what_the_design_says() -> None:
    stages = opened().stages
    assert set(stages) == set(Stage)
    assert stages[Stage.WARMUP] == stages[Stage.QA_REVIEW] == READING
    assert stages[Stage.ACT] == stages[Stage.TOOL_FOLLOWUP] == stages[Stage.MICRO_STEP] == set(Effect)
    assert stages[Stage.DELIVERY_CHECK] == set()


def test_the_work_modes_allow_what_the_design_says() -> None:
    modes = opened().work_modes
    assert set(modes) == set(WorkMode)
    assert modes[WorkMode.PLAN] == modes[WorkMode.REVIEW] == modes[WorkMode.RESEARCH] == READING
    assert modes[WorkMode.CHAT] == modes[WorkMode.BUILD] == modes[WorkMode.REPAIR] == set(Effect)


def test_every_host_row_has_its_evidence() -> None:
    assert [row.client for row in opened().hosts.rows if not row.evidence] == []


@pytest.mark.parametrize(
    ("client", "listing"),
    [
        ("gemini-cli-mcp-client", Listing.MASKED),
        ("gemini-cli-mcp-client-menugate", Listing.MASKED),
        ("opencode", Listing.MASKED),
        ("Kilo", Listing.MASKED),
        ("kilo-code", Listing.MASKED),
        ("copilot-cli", Listing.MASKED),
        ("claude-code", Listing.CARRIED),
        ("codex-mcp-client", Listing.CARRIED),
        ("mcp", Listing.CARRIED),
        ("mcp-remote", None),
        ("opencode2", None),
        ("", None),
        (None, None),
    ],
)
def test_a_host_is_known_by_the_name_it_gives(client: str | None, listing: Listing | None) -> None:
    row = opened().hosts.find_host(client)
    assert (row.listing if row else None) == listing


def test_the_whole_name_wins_and_then_the_longer_beginning() -> None:
    first = opened().hosts.rows[0]
    rows = [
        type(first)(client, Listing.FLAT, relists=False, evidence=client) for client in ("ab*", "abc*", "abcd", "abc*")
    ]
    hosts = Hosts(tuple(rows))
    assert [hosts.find_host(name) for name in ("abx", "abcx", "ABCD", "a")] == [rows[0], rows[1], rows[2], None]
