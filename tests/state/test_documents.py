"""Is what a pack remembers there again after a restart, changed by one at a time, and on record without its content?"""

import json
from functools import partial

import anyio
import pytest
from msgspec.structs import replace

from mcp_server.model import documents
from mcp_server.model.documents import Document, DocumentCause, Overtaken, Tally
from mcp_server.state import documents as state_documents
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.store import Store
from tests.state.parts import HOUR, Hands, Place

pytestmark = pytest.mark.anyio
OWNER = state_documents.format_session_owner("s1")
MADE = DocumentCause("made")
ACTOR = {"principal": "me", "session": "s1", "run": "r1", "tool": "TodoCreate"}


async def put(store: Store, document: Document, owner: str = OWNER, why: DocumentCause = MADE) -> object:
    return await store.write(
        partial(state_documents.put_document, write=state_documents.DocumentWrite(owner, document, why, ACTOR))
    )


async def get(store: Store, id: str, owner: str = OWNER) -> Document | None:
    return await store.read(partial(state_documents.find_document, owner=owner, kind="todo", id=id))


async def listed(store: Store, mark: str | None = None, limit: int = 100, offset: int = 0) -> list[str]:
    found = partial(state_documents.load_documents, owner=OWNER, kind="todo", mark=mark, limit=limit, offset=offset)
    return [one.id for one in await store.read(found)]


async def test_what_was_put_is_there_after_a_restart(place: Place, hands: Hands, store: Store) -> None:
    body = {"content": "half a pair \ud800 and ümlaut", "list": [1, None, {"a": True}]}
    made = await put(store, Document("todo", "a", body, "pending"))
    assert isinstance(made, Document)
    changed = await put(store, replace(made, mark="claimed"))
    assert isinstance(changed, Document)
    assert (changed.version, changed.made) == (2, made.made)
    await store.close()
    again = await hands.open(place)
    assert await get(again, "a") == changed
    assert changed.body == body


async def test_who_comes_second_writes_nothing(place: Place, hands: Hands, store: Store) -> None:
    other = await hands.open(place)
    made = await put(store, Document("todo", "a", {"by": "nobody"}, "pending"))
    assert isinstance(made, Document)
    for first, second in ((store, other), (other, store)):
        current = await get(store, "a")
        assert current is not None
        won = await put(first, replace(current, body={"by": "first"}))
        assert isinstance(won, Document)
        assert await put(second, replace(current, body={"by": "second"})) == Overtaken(won)
    assert isinstance(await put(other, Document("todo", "a", {}, "pending")), Overtaken), "new, and there already"
    assert await put(other, Document("todo", "gone", {}, "pending", version=3)) == Overtaken(None)


async def test_of_many_at_once_exactly_one_wins(place: Place, hands: Hands, store: Store) -> None:
    stores = [store, await hands.open(place)]
    made = await put(store, Document("todo", "a", {}, "in_progress"))
    assert isinstance(made, Document)
    won: list[object] = []

    async def claim(number: int) -> None:
        written = await put(stores[number % 2], replace(made, mark="claimed", body={"by": number}))
        if isinstance(written, Document):
            won.append(written)

    async with anyio.create_task_group() as group:
        for number in range(30):
            group.start_soon(claim, number)
    assert len(won) == 1
    assert await get(store, "a") == won[0]


async def test_each_owner_and_kind_has_its_own(store: Store) -> None:
    await put(store, Document("todo", "a", {}, "pending"))
    assert await get(store, "a", state_documents.format_session_owner("s2")) is None
    assert await get(store, "a", state_documents.format_principal_owner("s1")) is None
    assert await store.read(partial(state_documents.find_document, owner=OWNER, kind="phases", id="a")) is None
    assert isinstance(
        await put(store, Document("todo", "a", {}, "pending"), state_documents.format_session_owner("s2")), Document
    )


async def test_they_are_listed_in_order_by_page_and_by_mark(store: Store) -> None:
    marks = ["pending", "claimed", "pending", "verified", "pending"]
    for id, mark in zip("edcba", marks, strict=True):
        await put(store, Document("todo", id, {}, mark))
    first = await get(store, "e")
    assert first is not None
    await put(store, replace(first, mark="claimed"))
    assert await listed(store) == list("edcba")
    assert await listed(store, "pending") == list("ca")
    assert await listed(store, None, 2, 3) == list("ba")
    assert await store.read(partial(state_documents.tally_documents, owner=OWNER, kind="todo")) == {
        "claimed": Tally(2, 3),
        "pending": Tally(2, 2),
        "verified": Tally(1, 1),
    }


async def test_every_change_is_on_record_and_nothing_of_what_it_says(place: Place, store: Store) -> None:
    secret = "correct horse battery staple"  # made up
    made = await put(store, Document("todo", "a", {"content": secret}, "pending"))
    assert isinstance(made, Document)
    await put(store, replace(made, mark="claimed"), why=DocumentCause("claimed", {"evidence": ["diff"]}))
    await store.close()
    with place.reader() as state:
        first, second = (row for row in state.read_rows() if row.kind == "record")
        assert [(row.fields["event"], row.fields.get("from"), row.fields["to"]) for row in (first, second)] == [
            ("made", None, "pending"),
            ("claimed", "pending", "claimed"),
        ]
        assert (second.fields["record"], second.fields["id"], second.fields["version"]) == ("todo", "a", 2)
        assert second.fields["facts"] == {"evidence": ["diff"]}
        assert {key: second.fields[key] for key in ACTOR} == ACTOR
        assert first.fields["body_bytes"] == len(json.dumps({"content": secret}, separators=(",", ":")))
        assert not any(secret in row.body for row in state.read_rows())
        assert state.verify().ok


async def test_only_so_many_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_server.state.documents.MOST_DOCUMENTS", 3)
    for id in "abc":
        assert isinstance(await put(store, Document("todo", id, {}, "pending")), Document)
    assert isinstance(await put(store, Document("todo", "d", {}, "pending")), state_documents.TooManyDocuments)
    assert isinstance(await put(store, Document("phases", "d", {}, "fix")), Document), "of another kind there is room"
    kept = await get(store, "a")
    assert kept is not None
    assert isinstance(await put(store, replace(kept, mark="claimed")), Document), "and so for what is there"


@pytest.mark.heavy
async def test_ten_thousand_are_no_burden(store: Store) -> None:
    def fill(tx: Transaction) -> None:
        for number in range(documents.MOST_DOCUMENTS):
            tx.run(
                "INSERT INTO records (owner, kind, id, mark, version, body, made, changed)"
                " VALUES (:owner, 'todo', :id, 'pending', 1, '{}', 0, 0)",
                owner=OWNER,
                id=f"t{number}",
            )

    await store.write(fill)
    with anyio.fail_after(1.0):
        assert await listed(store, "pending", 100, 9_950) == [f"t{number}" for number in range(9_950, 10_000)]
        assert (await store.read(partial(state_documents.tally_documents, owner=OWNER, kind="todo")))[
            "pending"
        ].documents == 10_000
        kept = await get(store, "t5000")
        assert kept is not None
        for _ in range(20):
            kept = await put(store, replace(kept, mark="claimed"))
            assert isinstance(kept, Document)


async def test_what_a_forgotten_session_remembered_is_forgotten(place: Place, hands: Hands, store: Store) -> None:
    await put(store, Document("todo", "a", {}, "pending"))
    await put(store, Document("todo", "a", {}, "pending"), state_documents.format_principal_owner("me"))
    await store.close()
    place.clock.now += 31 * 24 * HOUR
    again = await hands.open(place)
    assert await get(again, "a") is None
    assert await get(again, "a", state_documents.format_principal_owner("me")) is not None
