"""Which files does a type stand for, and which are not searched because they usually hold secrets?"""

import pytest

from mcp_server.guards.search.file_types import ALIASES, GLOBS_BY_TYPE, find_type_globs, may_hold_secrets
from mcp_server.model.files import is_secret
from mcp_server.model.results import Code, Refusal


@pytest.mark.parametrize("kind", ["py", ".py", "PY", "python"])
def test_a_type_is_found_by_any_of_its_names(kind: str) -> None:
    assert find_type_globs(kind) == GLOBS_BY_TYPE["py"]


def test_every_other_name_stands_for_a_type() -> None:
    assert set(ALIASES.values()) <= set(GLOBS_BY_TYPE)
    assert not ALIASES.keys() & GLOBS_BY_TYPE.keys()


def test_one_that_is_not_known_is_refused_with_those_nearby() -> None:
    with pytest.raises(Refusal) as refused:
        find_type_globs("pythn")
    problem = refused.value.problem
    assert problem.code is Code.INVALID_ARGUMENTS
    assert "Did you mean `python`" in (problem.way_out or "")
    assert "`*.pythn`" in (problem.way_out or "")


@pytest.mark.parametrize(
    "path", [".env", "a/.env", ".ssh/config", "deep/.ssh/x/known", "key.pem", "notes.md", "src/main.py", "a/b/.npmrc"]
)
def test_it_says_the_same_as_for_the_whole_path(path: str) -> None:
    assert may_hold_secrets(path) is is_secret(path)
