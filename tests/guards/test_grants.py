"""Does a grant hold for the place that a path led to, and not only for its text?"""

from pathlib import Path

import pytest

from mcp_server.guards.grants import Grant
from mcp_server.guards.jail import Jail, JailPath
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Refusal
from mcp_server.model.tools import Demand, Effect

READING = Grant(Demand(Effect.READ_LOCAL, Profile.RESTRICTED))
WRITING = Grant(Demand(Effect.WRITE_LOCAL, Profile.NORMAL))
CONFIRMED = Grant(Demand(Effect.WRITE_LOCAL, Profile.NORMAL, "the person was asked"))
DESTROYING = Grant(Demand(Effect.DESTROY_LOCAL, Profile.NORMAL, "the person was asked"))


@pytest.fixture
def jail(tmp_path: Path) -> Jail:
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "notes.md").write_text("x")
    (tmp_path / "link").symlink_to(".env")
    return Jail(tmp_path, (), ())


def code(refused: pytest.ExceptionInfo[Refusal]) -> Code:
    return refused.value.problem.code


def at(jail: Jail, path: str) -> JailPath:
    with jail.open_place(path) as place:
        return place


def test_a_secret_is_read_after_a_yes_alone_whatever_it_was_called(jail: Jail) -> None:
    for asked in (".env", "link"):
        with pytest.raises(Refusal) as refused:
            READING.require_read(asked, at(jail, ".env"))
        assert code(refused) is Code.PATH_REFUSED
        CONFIRMED.require_read(asked, at(jail, ".env"))
    READING.require_read("notes.md", at(jail, "notes.md"))


def test_who_was_granted_reading_changes_nothing(jail: Jail) -> None:
    with pytest.raises(Refusal) as refused:
        READING.require_change("notes.md", at(jail, "notes.md"))
    assert code(refused) is Code.NOT_GRANTED
    WRITING.require_change("notes.md", at(jail, "notes.md"))


def test_what_is_fixed_stays_whatever_the_person_said(jail: Jail) -> None:
    fixed = Grant(CONFIRMED.demand, lambda _place: True)
    with pytest.raises(Refusal) as refused:
        fixed.require_change("notes.md", at(jail, "notes.md"))
    assert code(refused) is Code.PATH_REFUSED


def test_what_others_obey_is_changed_after_a_yes(jail: Jail) -> None:
    with pytest.raises(Refusal):
        WRITING.require_change(".envrc", at(jail, ".envrc"))
    CONFIRMED.require_change(".envrc", at(jail, ".envrc"))


def test_taking_away_is_a_grant_of_its_own() -> None:
    with pytest.raises(Refusal) as refused:
        CONFIRMED.require_destroy()
    assert code(refused) is Code.NOT_GRANTED
    DESTROYING.require_destroy()
