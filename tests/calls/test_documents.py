"""Is a pack's document kept for whom it is for, no larger and no more than there may be?"""

from itertools import count

import pytest

from mcp_server.calls.documents import DocumentStores, build_document_stores
from mcp_server.calls.live_sessions import LiveSession, SharedSession
from mcp_server.model.documents import LARGEST_DOCUMENT, Document, DocumentCause, Overtaken
from mcp_server.model.results import Code, Refusal
from mcp_server.model.sessions import Session
from mcp_server.state.store import Store

pytestmark = pytest.mark.anyio
MADE = DocumentCause("created")
ids = (f"id{number}" for number in count())


def stores(store: Store, session: str = "s1", who: str = "me", passing: bool = False) -> DocumentStores:
    value = Session(session, who, run="r1")
    return build_document_stores(store, LiveSession(value, SharedSession("r1"), passing=passing), value, "tool")


def draft(text: str = "x") -> Document:
    return Document("todo", next(ids), {"text": text}, "open")


async def test_each_drawer_is_seen_by_those_it_is_for(store: Store) -> None:
    mine, later, others = stores(store), stores(store, "s2"), stores(store, "s1", "you")
    one = await mine.session.put(draft("mine"), MADE)
    shared = await mine.workspace.put(draft("ours"), MADE)
    assert isinstance(one, Document)
    assert isinstance(shared, Document)
    assert await mine.session.get("todo", one.id) == one
    assert await later.session.get("todo", one.id) is None
    assert await later.workspace.get("todo", shared.id) == shared
    assert await others.workspace.get("todo", shared.id) is None


async def test_what_was_changed_meanwhile_is_not_written_over(store: Store) -> None:
    drawer = stores(store).session
    first = await drawer.put(draft(), MADE)
    assert isinstance(first, Document)
    assert isinstance(await drawer.put(first, MADE), Document)
    late = await drawer.put(first, MADE)
    assert isinstance(late, Overtaken)
    assert late.current is not None
    assert late.current.version == first.version + 1


async def test_what_nobody_comes_back_to_is_not_kept(store: Store) -> None:
    passing = stores(store, passing=True)
    with pytest.raises(Refusal):
        await passing.session.put(draft(), MADE)
    assert isinstance(await passing.workspace.put(draft(), MADE), Document)


async def test_a_document_has_a_largest_size(store: Store) -> None:
    with pytest.raises(Refusal) as refused:
        await stores(store).session.put(draft("x" * LARGEST_DOCUMENT), MADE)
    assert refused.value.problem.code is Code.TOO_LARGE


async def test_documents_are_listed_and_counted_by_their_mark(store: Store) -> None:
    drawer = stores(store).session
    for _ in range(3):
        await drawer.put(draft(), MADE)
    assert len(await drawer.list_documents("todo", limit=2)) == 2
    assert await drawer.list_documents("todo", mark="done") == []
    assert set(await drawer.count_by_mark("todo")) == {"open"}
