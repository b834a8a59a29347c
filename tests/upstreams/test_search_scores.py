"""Does the search find the tools of real servers from what a model types? Never worse than plain BM25 beside it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from mcp_server.model.menus import Menus
from mcp_server.policy.menu_proposals import propose_modes
from mcp_server.policy.search_words import Related, parse_related
from mcp_server.policy.tool_search import ToolIndex, rank_modes
from tests.upstreams.catalogues import NO_MENUS, TOOLS, WRITTEN
from tests.upstreams.search_scores import OPEN_TASKS, PlainRanking, SearchScore, score_ranking
from tests.upstreams.search_tasks import SERVERS, SearchTask

WORDS = parse_related((Path(__file__).parents[2] / "menus" / "search_words.txt").read_text())
PLAIN = PlainRanking(TOOLS)


def score(tasks: tuple[SearchTask, ...], words: tuple[Related, ...] = WORDS) -> SearchScore:
    index = ToolIndex.build(TOOLS, NO_MENUS, words)
    return score_ranking(lambda need: [WRITTEN[match.tool] for match in index.rank(need)], tasks)


def is_at_least(one: SearchScore, other: SearchScore) -> bool:
    return one.first >= other.first and one.three >= other.three and one.five >= other.five


def test_the_recorded_servers_offer_what_the_tasks_are_about() -> None:
    recorded = {tool.written for tool in TOOLS}
    missing = {f"{server}:{tool}" for server, tools in SERVERS.items() for tool in tools} - recorded
    # It runs only as a task.
    assert missing == {"everything:simulate-research-query"}


def test_open_tasks_are_found() -> None:
    figures = score(OPEN_TASKS)
    assert figures.first >= 0.45, figures
    assert figures.five >= 0.70, figures


@pytest.mark.parametrize("words", [WORDS, ()], ids=["with the word list", "without it"])
def test_the_ranking_is_never_below_plain_bm25(words: tuple[Related, ...]) -> None:
    assert is_at_least(score(OPEN_TASKS, words), score_ranking(PLAIN.rank, OPEN_TASKS))


def find_menus() -> Menus:
    """Every server in the modes that menugate would propose for it."""
    drafts = propose_modes(TOOLS)
    return Menus(tuple(replace(draft.mode, tools=tuple(tool.name for tool in draft.tools)) for draft in drafts))


def score_with_modes(tasks: tuple[SearchTask, ...]) -> float:
    """The share of tasks for which a right tool, or a mode that has one, is among three."""
    menus = find_menus()
    index = ToolIndex.build(TOOLS, menus, WORDS)
    found = 0
    for task in tasks:
        matches = index.rank(task.need)
        right = {
            mode.name for name, own in WRITTEN.items() if own in task.tools for mode in menus.find_modes_with(name)
        }
        tools = {WRITTEN[match.tool] for match in matches[:3]}
        found += bool(tools & set(task.tools) or right & set(rank_modes(matches, menus)[:3]))
    return found / len(tasks)


def test_the_right_tool_or_its_mode_is_among_three() -> None:
    assert score_with_modes(OPEN_TASKS) >= 0.85
