"""Are messages kept for the person, in their order, until they were read?"""

from functools import partial

import pytest

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


async def test_any_text_can_be_left(place: Place, store: Store) -> None:
    await store.leave_message("s1", "half \ud800 a sign", ["caf\udce9"])
    with place.reader() as state:
        (message,) = state.load_messages()
    assert (message.text, message.attachments) == ("half \ud800 a sign", ("caf\udce9",))
