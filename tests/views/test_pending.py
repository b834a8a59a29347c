"""Is what waits for the person named with whose it is, and with what they type for it?"""

from mcp_server.model.sessions import Hold, Holder
from mcp_server.policy.pending import PausedRun
from mcp_server.views.pending import PendingView, format_owner, format_target_options

MINE = PausedRun("me", "s1", Hold(Holder.PERSON, "wait", at=1_800_000_000 * 10**9))
THEIRS = PausedRun("you", "", Hold(Holder.UNIT, "a unit is done"))


def test_one_reads_whose_it_is_where_it_is_not_ones_own() -> None:
    assert format_owner("me", "me") == ""
    assert format_owner("you", "me") == " of you"


def test_the_command_names_what_it_is_for() -> None:
    assert format_target_options(MINE, "me") == " --session s1"
    assert format_target_options(THEIRS, "me") == " --principal you"
    assert format_target_options(MINE, "you") == " --principal me --session s1"


def test_a_program_reads_the_same() -> None:
    assert PendingView().to_json() == {"paused": [], "approvals": []}
    one, other = PendingView((MINE, THEIRS)).to_json()["paused"]
    assert (one["principal"], one["session"], one["by"], one["reason"]) == ("me", "s1", Holder.PERSON, "wait")
    assert other["session"] is None
