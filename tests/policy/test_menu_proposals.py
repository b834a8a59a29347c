"""Are the drafted modes small, complete, and files that menugate accepts?"""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_server.config.faults import FaultCollector
from mcp_server.config.menus import load_mode_drafts
from mcp_server.model.tools import HINTS, Effect, Tool
from mcp_server.policy.menu_proposals import MAX_TOOLS, ProposedMode, propose_modes, render_mode
from tests.config.samples import opened
from tests.sizes import scale
from tests.upstreams.catalogues import TOOLS

OURS = tuple(word for mode in opened().menus for word in (mode.name, mode.title))


def make_tools(server: str, count: int, effect: Effect = Effect.READ_LOCAL) -> list[Tool]:
    names = [f"{effect.name.lower()}_{number}" for number in range(count)]
    return [
        dataclasses.replace(
            TOOLS[0], name=f"{server}_{name}", written=f"{server}:{name}", effect=effect, hints=HINTS[effect]
        )
        for name in names
    ]


def load(proposals: tuple[ProposedMode, ...], folder: Path) -> list[str]:
    """Write the files and read them as menugate does; return the names, or the faults."""
    for proposal in proposals:
        # Whether a server is mounted is another question.
        tools = tuple(tool.name for tool in proposal.tools)
        (folder / f"{proposal.mode.name}.yaml").write_text(render_mode(replace(proposal.mode, tools=tools)))
    findings = FaultCollector()
    drafts = load_mode_drafts([folder], findings)
    return [str(fault) for fault in findings.faults()] or [draft.name.text for draft in drafts.modes]


def test_real_servers_get_modes_of_at_most_ten_tools_each_in_one(tmp_path: Path) -> None:
    proposals = propose_modes(TOOLS, OURS)
    assert [proposal.mode.name for proposal in proposals] == [
        *("everything_reads", "everything_changes", "filesystem_reads", "filesystem_changes"),
        *("git_reads", "git_changes", "memory", "playwright_reads", "playwright_changes_1", "playwright_changes_2"),
        "fetch_time",
    ]
    assert max(len(proposal.tools) for proposal in proposals) <= MAX_TOOLS
    assert sorted(tool.name for proposal in proposals for tool in proposal.tools) == sorted(t.name for t in TOOLS)
    assert set(load(proposals, tmp_path)) == {proposal.mode.name for proposal in proposals}


def test_a_large_server_is_split_by_what_its_tools_do() -> None:
    for proposal in propose_modes(TOOLS):
        if proposal.mode.name.endswith("_reads"):
            assert all(tool.hints.read_only for tool in proposal.tools)
        elif "_changes" in proposal.mode.name:
            assert not any(tool.hints.read_only for tool in proposal.tools)


@pytest.mark.parametrize(
    ("sizes", "modes"),
    [
        ({"a": 4}, ["a"]),
        ({"a": 10}, ["a"]),
        ({"a": 11}, ["a_reads_1", "a_reads_2"]),
        ({"a": 1, "b": 3, "c": 3, "d": 3}, ["a_b_c_d"]),
        ({"a": 3, "b": 3, "c": 3, "d": 3}, ["a_b_c", "d"]),
        ({"a": 30}, ["a_reads_1", "a_reads_2", "a_reads_3"]),
        ({}, []),
    ],
)
def test_servers_are_divided_evenly(sizes: dict[str, int], modes: list[str]) -> None:
    tools = [tool for server, count in sizes.items() for tool in make_tools(server, count)]
    assert [proposal.mode.name for proposal in propose_modes(tools)] == modes


def test_no_name_or_title_is_taken_twice() -> None:
    tools = [*make_tools("git", 5), *make_tools("Git", 5), *make_tools("project", 5)]
    proposals = propose_modes(tools, OURS)
    names = [proposal.mode.name for proposal in proposals]
    assert names == ["git_2", "git_3", "project_2"]
    titles = [proposal.mode.title.casefold() for proposal in proposals]
    assert len(set(titles)) == 3


def test_menugates_own_tools_are_left_where_they_are() -> None:
    assert propose_modes([dataclasses.replace(tool, written=None) for tool in make_tools("a", 5)]) == ()


@pytest.mark.heavy
@settings(max_examples=scale(1_000), deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.text(alphabet="aZ9é-. '\"#{", min_size=1, max_size=60), st.integers(1, 25)),
        min_size=1,
        max_size=6,
        unique_by=lambda pair: pair[0],
    )
)
def test_any_server_name_gives_a_file_that_menugate_accepts(
    tmp_path_factory: pytest.TempPathFactory, servers: list[tuple[str, int]]
) -> None:
    tools = [
        dataclasses.replace(tool, name=f"tool_{at}_{number}")
        for at, (server, count) in enumerate(servers)
        for number, tool in enumerate(make_tools(server, count, Effect.EXEC if at % 2 else Effect.READ_LOCAL))
    ]
    proposals = propose_modes(tools, OURS)
    folder = tmp_path_factory.mktemp("modes")
    assert set(load(proposals, folder)) == {proposal.mode.name for proposal in proposals}
