"""Does a request go through few enough hands? Files and named functions of the second request of each kind."""

import subprocess
from pathlib import Path

import pytest

from tests.architecture.flow_counter import COMMAND, OURS, ROOT, TICKS, Counts, Flow, counted
from tests.clients.served import PATIENCE, environment
from tests.yaml_text import load_yaml

TABLE = Path(__file__).parents[1] / "tables" / "flows.yaml"
BUDGETS: dict[str, dict[str, int]] = load_yaml(TABLE.read_text())
RULES = "rules:\n  ask:\n    - Write(*.lock)\n"


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Flow]:
    folder = tmp_path_factory.mktemp("flows")
    workspace, home, config = (folder / name for name in ("work", "home", "menugate.yaml"))
    workspace.mkdir()
    home.mkdir()
    # Not beside the configuration, whose folder is watched: to write the count would be a change there.
    counts = Counts(tmp_path_factory.mktemp("counter") / "fifo")
    (workspace / "notes.txt").write_text("one\ntwo\n")
    config.write_text(RULES)
    found: dict[str, Flow] = {}
    with counted(workspace, home, counts, "--config", str(config)) as one:
        client = one.client
        client.hello("opencode")
        client.names()
        with one.count(found, "tools/list"):
            client.names()
        assert not client.call("menu_enter", mode="swe")["isError"]
        for _ in range(2):
            # What the first one saw of the file is written with the next call.
            client.call("Read", file_path="notes.txt")
        with one.count(found, "Read"):
            assert not client.call("Read", file_path="notes.txt")["isError"]
        client.call("bash", command="echo one")
        with one.count(found, "bash"):
            assert not client.call("bash", command="echo two")["isError"]
        client.call("Write", file_path="a.lock", content="1")
        with one.count(found, "approval"):
            answer = client.call("Write", file_path="b.lock", content="2")
            assert "APPROVAL_REQUIRED" in answer["content"][0]["text"]
    for profile in ("normal", "trusted"):
        found["profile"] = typed(workspace, home, counts, "profile", profile)
    return found


def typed(workspace: Path, home: Path, counts: Counts, *words: str) -> Flow:
    """A command of its own process, from the first import to the end."""
    command = [*COMMAND, str(counts.fifo), *words, "--workspace", str(workspace)]
    with subprocess.Popen(command, env=environment(home), stdout=subprocess.DEVNULL) as process:
        found = counts.read()
        assert process.wait(timeout=PATIENCE) == 0
    return found


@pytest.mark.parametrize("name", BUDGETS)
def test_a_flow_keeps_its_budget(flows: dict[str, Flow], name: str) -> None:
    flow, budget = flows[name], BUDGETS[name]
    spent = {"files": flow.files, "functions": flow.functions, "loaded": flow.loaded}
    over = {what: (spent[what], most) for what, most in budget.items() if spent[what] > most}
    assert not over, f"{over}, of {flow.describe()}"


def test_a_choice_at_the_terminal_loads_no_tool_and_no_menu(flows: dict[str, Flow]) -> None:
    modules = {str(Path(one).relative_to(ROOT)) for one in flows["profile"].modules}
    assert "mcp_server/cli/posture.py" in modules
    heavy = ("tools/", "mcp_server/config/menus", "mcp_server/config/load", "mcp_server/wire/", "mcp_server/guards/")
    assert [one for one in modules if one.startswith(heavy)] == []


def test_what_is_not_on_the_way_is_not_counted(flows: dict[str, Flow]) -> None:
    assert flows["Read"].functions > flows["tools/list"].functions
    assert not [one for flow in flows.values() for one in flow.entered if "follow" in one and "reload" in one]


def test_every_tick_that_is_left_out_exists() -> None:
    texts = [path.read_text() for top in OURS for path in Path(top).rglob("*.py")]
    for tick in TICKS:
        owner, _, name = tick.partition(".")
        assert any(f"class {owner}" in text and f"def {name}(" in text for text in texts), (
            f"there is no {tick}: name the tick that took its place"
        )
