"""Do the tools of the project offer the words that the index and the memory know?"""

from mcp_server.model.ports.index import KINDS
from mcp_server.model.ports.memory import Tier
from tools.project import offers


def test_the_kinds_are_those_of_the_index() -> None:
    assert offers.KINDS == KINDS


def test_the_tiers_are_those_of_the_memory() -> None:
    assert tuple(Tier) == offers.TIERS
