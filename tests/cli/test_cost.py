"""Are tokens counted as the o200k encoding counts them, of what is really served, and is the start cheap enough?"""

import json
from functools import cache
from pathlib import Path

import pytest

from mcp_server.cli import menus
from mcp_server.cli.menus import MenuCosts, TokenCounter, count_tokens, estimate_tokens, measure_costs
from mcp_server.config.load import Configuration, load_configuration
from mcp_server.model.menus import Listing
from mcp_server.settings import read_settings
from tests.cli.conftest import Type
from tests.clients.pipe import pipe


@cache
def shipped() -> Configuration:
    found = load_configuration(read_settings({"workspace": str(Path(__file__).parent)}, {}), bare=True)
    assert isinstance(found, Configuration), str(found)
    return found


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("hello world", 2),
        ("naïve café Straße ÅÄÖ", 8),
        ("日本語のテキスト。漢字とかな", 11),
        ("\t\tif x:\r\n\t\t\treturn  y   # tabs", 11),
        ("1234567890 12,345.67 0xDEADBEEF", 16),
    ],
)
def test_counts_equal_those_of_the_reference_encoders(text: str, count: int) -> None:
    assert count_tokens(text) == count


def test_a_structure_costs_what_its_compact_json_costs() -> None:
    assert count_tokens({"name": "é", "items": [1, 2]}) == count_tokens('{"name":"é","items":[1,2]}')


def test_the_start_is_cheap() -> None:
    spent = measure_costs(shipped())
    assert spent.exact
    assert spent.root[Listing.MASKED] <= 1200
    assert spent.root[Listing.CARRIED] <= 1500
    assert spent.root[Listing.STABLE] <= 1500


@pytest.mark.parametrize(("client", "face"), [("opencode", Listing.MASKED), ("somebody", Listing.CARRIED)])
def test_what_is_counted_is_what_a_client_is_served(client: str, face: Listing, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as line:
        words = line.hello(client)["result"]["instructions"]
        at_root = line.request("tools/list")["result"]["tools"]
        line.call("menu_enter", mode="data")
        in_data = line.request("tools/list")["result"]["tools"]
    spent = measure_costs(shipped())

    def read_by_a_model(tools: list[dict[str, object]]) -> int:
        keys = ("name", "description", "inputSchema", "outputSchema")
        return count_tokens([{key: tool[key] for key in keys if key in tool} for tool in tools])

    assert spent.instructions == count_tokens(words)
    assert spent.root[face] == read_by_a_model(at_root) + count_tokens(words)
    # Between the lists of two modes only the mode's own tools differ; a token may straddle the place they join.
    assert abs(spent.modes["data"] - (read_by_a_model(in_data) - read_by_a_model(at_root))) <= 1


def test_without_the_counter_there_is_an_estimate_that_says_so(monkeypatch: pytest.MonkeyPatch, menugate: Type) -> None:
    exact = measure_costs(shipped())
    monkeypatch.setattr(menus, "get_token_counter", lambda: TokenCounter(estimate_tokens, exact=False))
    about = measure_costs(shipped())
    assert not about.exact
    assert [near(about.root[face], exact.root[face]) for face in Listing] == [True] * 4
    assert [near(about.modes[name], exact.modes[name]) for name in exact.modes] == [True] * len(exact.modes)
    said = menugate("menus --tokens")
    assert "The token counts are estimates" in said.err
    assert json.loads(menugate("menus --tokens --json").out)["tokens"]["exact"] is False


def near(about: int, exact: int) -> bool:
    return abs(about - exact) <= exact * 0.15


def test_a_missing_counter_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> None:
        raise ImportError

    menus.get_token_counter.cache_clear()
    monkeypatch.setattr("importlib.import_module", missing)
    assert menus.get_token_counter() == TokenCounter(estimate_tokens, exact=False)
    menus.get_token_counter.cache_clear()


def test_the_page_and_the_figures_agree(menugate: Type) -> None:
    figures = json.loads(menugate("menus --tokens --json").out)["tokens"]
    page = menugate("menus --tokens").out
    for count in (*figures["root"].values(), *figures["modes"].values(), figures["instructions"]):
        assert f"{count:,}" in page
    assert figures["root"]["flat"] == max(figures["root"].values())
    assert isinstance(measure_costs(shipped()), MenuCosts)
