"""Does every tool of another server get a name that hosts take, and never that of another tool?"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.policy.upstream_names import LONGEST_NAME, format_written_name, slug_server, slug_tool
from tools.catalog import CATALOG

OURS = frozenset(tool.name for tool in CATALOG)


@pytest.mark.parametrize(
    ("server", "slug"),
    [
        ("github", "github"),
        ("Brave-Search", "bravesearch"),
        ("my_server.v2", "myserverv2"),
        ("sequential-thinking", "sequentialthin"),
    ],
)
def test_a_slug_is_the_beginning_of_the_servers_name(server: str, slug: str) -> None:
    assert slug_server(server) == slug


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("search", "a_search"),
        ("read_file", "a_read_file"),
        ("getUser", "a_getuser_"),
        ("create-issue", "a_create_issue_"),
        ("create_Issue", "a_create_issue_"),
        ("a__b", "a_a_b_"),
        ("_hidden_", "a_hidden_"),
        ("ünï", "a_n_"),
        ("日本", "a_"),
        ("x" * 60, "a_" + "x" * 32 + "_"),
    ],
)
def test_what_was_changed_or_cut_gets_a_hash(tool: str, name: str) -> None:
    slugged = slug_tool("a", tool)
    assert slugged.startswith(name)
    assert len(slugged) == len(name) + (5 if name.endswith("_") else 0)


def test_no_tool_gets_one_of_our_own_names() -> None:
    assert slug_tool("git", "status", OURS) not in OURS
    assert slug_tool("git", "git_status", OURS) == "git_git_status"


@given(
    st.lists(st.text(min_size=1, max_size=80), min_size=2, max_size=6, unique=True), st.sampled_from(["a", "x" * 14])
)
def test_names_fit_and_differ(tools: list[str], slug: str) -> None:
    names = [slug_tool(slug, tool, OURS) for tool in tools]
    assert len(set(names)) == len(tools)
    for name in names:
        assert re.fullmatch(rf"{slug}_[a-z0-9]+(_[a-z0-9]+)*", name) and len(name) <= LONGEST_NAME
        assert name not in OURS


def test_what_rules_cannot_spell_is_written_as_its_hash() -> None:
    assert format_written_name("github", "issues/list.all") == "github:issues/list.all"
    assert re.fullmatch("github:[a-z0-9]{5}", format_written_name("github", "two words*"))
    # `github:resource` and `github:prompt` are its resources and prompts.
    for name in ("resource", "prompt"):
        assert re.fullmatch(f"github:{name}_[a-z0-9]{{5}}", format_written_name("github", name))
