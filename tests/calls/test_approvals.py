"""Whose answer counts, and is an id one that nobody guesses?"""

import pytest

from mcp_server.calls.approvals import AnswerTrust, build_answer_trust, new_id
from mcp_server.model.approvals import ApprovalChannel
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Demand, Effect
from tests.config.samples import opened

DESTROYING = Demand(Effect.DESTROY_LOCAL, Profile.TRUSTED, "it is deleted")


@pytest.mark.parametrize(
    ("trust", "may"),
    [
        (AnswerTrust(), True),
        (AnswerTrust(anybody=False), False),
        (AnswerTrust(except_for=frozenset({"fs_delete"})), False),
        (AnswerTrust(except_for=frozenset({str(Effect.DESTROY_LOCAL)})), False),
        (AnswerTrust(except_for=frozenset({str(Effect.EXEC), "bash"})), True),
    ],
)
def test_a_client_answers_where_the_operator_lets_it(trust: AnswerTrust, may: bool) -> None:
    assert trust.may_client_answer("fs_delete", DESTROYING) is may


def test_what_nobody_wrote_lets_clients_answer() -> None:
    config = opened().config
    assert config.approvals is ApprovalChannel.ELICIT
    assert build_answer_trust(config) == AnswerTrust()


def test_an_id_can_be_typed_and_does_not_repeat() -> None:
    ids = {new_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(len(id) == 8 and id.isalnum() and id == id.lower() for id in ids)
