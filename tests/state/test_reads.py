"""Is it remembered how a file looked when a session read it?"""

import pytest

from mcp_server.model.files import Stamp
from mcp_server.state.store import Store

pytestmark = pytest.mark.anyio
ONE, OTHER = Stamp(7, 1, "aa"), Stamp(8, 2, "bb")


async def test_the_last_look_counts(store: Store) -> None:
    assert store.recall_seen("s1", "a.py") is None
    for stamp in (ONE, OTHER):
        store.remember_seen("s1", "a.py", stamp)
        assert store.recall_seen("s1", "a.py") == stamp


async def test_each_session_has_its_own_and_each_path(store: Store) -> None:
    store.remember_seen("s1", "a.py", ONE)
    assert store.recall_seen("s2", "a.py") is None
    assert store.recall_seen("s1", "b.py") is None


async def test_a_name_that_is_no_text_is_one_like_any_other(store: Store) -> None:
    store.remember_seen("s1", "caf\udce9", ONE)
    assert store.recall_seen("s1", "caf\udce9") == ONE
