"""Is what was learned kept once, by whom it is for, and does the oldest make room?"""

from functools import partial
from itertools import count

import pytest

from mcp_server.model.memory import MOST, MemoryEntry, Tier
from mcp_server.state import memory
from mcp_server.state.memory import NewMemory
from mcp_server.state.store import Store

pytestmark = pytest.mark.anyio
numbers = count()


async def learn(store: Store, *said: tuple[Tier, str], who: str = "me") -> list[MemoryEntry]:
    learned = NewMemory(who, said, "run", {"session": "s1", "run": "r1"})
    new_id = lambda: f"m{next(numbers)}"  # noqa: E731
    return list(await store.write(partial(memory.remember_entries, memory=learned, new_id=new_id)))


async def load(store: Store, who: str = "me") -> list[tuple[Tier, str]]:
    return [(one.tier, one.text) for one in await store.read(partial(memory.load_memory, principal=who))]


async def test_each_person_has_their_own(store: Store) -> None:
    await learn(store, (Tier.FACT, "one"))
    await learn(store, (Tier.FACT, "two"), who="you")
    assert await load(store) == [(Tier.FACT, "one")]
    assert [one.principal for one in await store.read(memory.load_all_memories)] == ["me", "you"]


async def test_what_is_known_already_is_kept_once(store: Store) -> None:
    (first,) = await learn(store, (Tier.FACT, "one"))
    (again,) = await learn(store, (Tier.FACT, "one"))
    assert again.id == first.id
    assert again.at > first.at
    await learn(store, (Tier.OUTCOME, "one"))
    assert len(await load(store)) == 2, "in another tier it is another"


async def test_the_oldest_of_its_tier_makes_room(store: Store) -> None:
    for number in range(MOST[Tier.OUTCOME] + 2):
        await learn(store, (Tier.OUTCOME, str(number)))
    await learn(store, (Tier.FACT, "stays"))
    texts = [text for tier, text in await load(store) if tier is Tier.OUTCOME]
    assert texts == [str(number) for number in range(2, MOST[Tier.OUTCOME] + 2)]


async def test_what_is_forgotten_is_gone_and_the_record_says_so(store: Store) -> None:
    (one,) = await learn(store, (Tier.FACT, "one"))
    await store.write(partial(memory.forget_entry, entry=one))
    assert await load(store) == []
    rows = await store.read(lambda view: view.fetch_all("SELECT body FROM ledger ORDER BY seq DESC LIMIT 1"))
    assert '"event":"forgotten"' in rows[0]["body"]
    assert "one" not in rows[0]["body"].replace("None", "")
