"""Is what lies in menus/ sound, as planned, and as the schemas that editors use describe it?"""

from pathlib import Path
from typing import Any

from tests.config.samples import made, mode_text, opened, shipped_tools
from tests.yaml_text import load_yaml

SEED: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables" / "seed_menus.yaml").read_text())


def in_order(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(one in rest for one in part)


def test_the_plan_has_a_row_of_policy_for_each_of_its_tools_and_none_besides() -> None:
    assert [len(mode["tools"]) for mode in SEED] == [mode["count"] for mode in SEED]
    rows = load_yaml((Path(__file__).parents[1] / "tables" / "policy.yaml").read_text())["tools"]
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
            there = opened().menus.by_name.get(mode["name"])
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


def test_the_words_of_every_mode_stay_short() -> None:
    for mode in opened().menus:
        assert len(mode.description) <= 600
        assert len(mode.when) <= 90
