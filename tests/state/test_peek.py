"""Is a posture known before the engine is there, and the least where there is any doubt?"""

import sqlite3

import pytest

from mcp_server.model.posture import Posture, PostureChoice, Profile
from mcp_server.state.peek import open_read_only, peek_posture_choice
from mcp_server.state.store import Store
from tests.state.parts import Hands, Place, choose_all

pytestmark = pytest.mark.anyio


def peek(place: Place, who: str = "me") -> PostureChoice | None:
    return peek_posture_choice(place.file, place.secrets, who)


async def test_it_says_what_the_state_says(place: Place, hands: Hands) -> None:
    assert peek(place) is None
    await choose_all(await hands.open(place), "me", Posture(profile=Profile.TRUSTED))
    await hands.close()
    choice = peek(place)
    assert choice is not None
    assert choice.apply_to(Posture()).profile is Profile.TRUSTED
    assert peek(place, "you") is None


async def test_where_the_file_is_gone_or_broken_the_least_holds(place: Place, hands: Hands) -> None:
    await choose_all(await hands.open(place), "me", Posture(profile=Profile.TRUSTED))
    await hands.close()
    whole = place.file.read_bytes()
    place.file.write_bytes(b"no database" * 1000)
    assert peek(place) == PostureChoice.build_most_restricted(0)
    place.file.unlink()
    assert peek(place) == PostureChoice.build_most_restricted(0)
    place.file.write_bytes(whole)
    place.sql("CREATE VIEW v AS SELECT 1")
    assert peek(place) == PostureChoice.build_most_restricted(0)


async def test_nothing_is_written_by_looking(place: Place, store: Store) -> None:
    with open_read_only(place.file) as plain, pytest.raises(sqlite3.OperationalError):
        plain.execute("CREATE TABLE t (a)")
