"""Do the tools of the project offer the words that the index and the memory know?"""

from mcp_server.model.index import KINDS
from mcp_server.model.memory import Tier
from tools.project import definitions


def test_the_kinds_are_those_of_the_index() -> None:
    assert definitions.KINDS == KINDS


def test_the_tiers_are_those_of_the_memory() -> None:
    assert tuple(Tier) == definitions.TIERS
