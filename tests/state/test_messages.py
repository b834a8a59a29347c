"""Are messages kept for the person, in their order, until they were read?"""

from functools import partial

import pytest
from msgspec.structs import replace

from mcp_server.model.sessions import Session
from mcp_server.state import messages
from mcp_server.state.engine.rows import Reply
from mcp_server.state.messages import mark_messages_read
from mcp_server.state.store import Store
from tests.state.parts import Place

pytestmark = pytest.mark.anyio


async def test_they_are_read_in_their_order_and_then_not_new_any_more(place: Place, store: Store) -> None:
    ids = [await store.leave_message("s1", text, ["a.txt"], "me") for text in ("one", "two")]
    with place.reader() as state:
        messages = state.load_messages()
        assert [(one.id, one.text, one.read) for one in messages] == [(ids[0], "one", False), (ids[1], "two", False)]
        assert {(one.session, one.principal, one.attachments) for one in messages} == {("s1", "me", ("a.txt",))}
    await store.write(partial(mark_messages_read, ids=ids[:1]))
    with place.reader() as state:
        assert [one.read for one in state.load_messages()] == [True, False]


@pytest.mark.parametrize("by_handle", [True, False])
async def test_a_reply_is_for_the_session_that_asked_until_that_is_gone(store: Store, by_handle: bool) -> None:
    asking, other = Session("s1", "me"), Session("s2", "me")
    await store.put_session(asking, "digest")
    id = await store.leave_message(asking.key, "which?", principal="me", asks=True, by_handle=by_handle)
    await store.write(lambda tx: messages.reply_to_message(tx, id, Reply("this", session=asking.key)))

    async def find(session: Session, connected: tuple[str, ...] = ("s1", "s2")) -> list[str]:
        pending = await store.read(messages.load_pending_replies)
        return [one.id for one in pending if messages.is_reply_for(one, session, connected)]

    assert (await find(asking), await find(other)) == ([id], [])
    assert await find(replace(other, principal="you"), ()) == []
    assert await find(other, ("s2",)) == ([] if by_handle else [id])
    await store.write(lambda tx: tx.run("DELETE FROM sessions"))
    assert (await find(asking), await find(other)) == ([id], [id] if by_handle else [])
    assert await find(replace(other, principal="you")) == []


async def test_any_text_can_be_left(place: Place, store: Store) -> None:
    await store.leave_message("s1", "half \ud800 a sign", ["caf\udce9"])
    with place.reader() as state:
        (message,) = state.load_messages()
    assert (message.text, message.attachments) == ("half \ud800 a sign", ("caf\udce9",))
