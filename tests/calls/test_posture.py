"""Which posture does a call run under, when the list was shown before the state was open?"""

from pathlib import Path

import pytest

from mcp_server.calls.posture import CurrentPostures
from mcp_server.config.limits import Limits
from mcp_server.model.posture import Posture, PostureChoice
from tests.state.parts import Hands, Place

ME = "somebody"


@pytest.mark.anyio
async def test_a_call_does_not_run_under_what_was_only_a_glimpse(tmp_path: Path) -> None:
    """What is glimpsed while another server makes the file is good for a list, not for a call."""
    hands = Hands()
    try:
        postures = CurrentPostures(await hands.open(Place(tmp_path)), Limits())
        postures.assume(ME, PostureChoice.build_most_restricted(0))
        assert postures.get_known(ME) == Posture.most_restricted()
        assert await postures.get_current(ME) == Posture()
        assert postures.get_known(ME) == Posture()
        assert postures.pop_changed_principals() == {ME}
    finally:
        await hands.close()
