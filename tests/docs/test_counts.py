"""Is every number of things that a page, a docstring or a help text names the number of things that there are?"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mcp_server.config.load import DATA
from mcp_server.config.prompts import VARIABLES
from mcp_server.model.menus import CARRIERS, META_TOOLS, Listing
from mcp_server.model.phases import STEPS
from mcp_server.model.posture import AXES, Profile, Stage, WorkMode
from mcp_server.policy.decision import CHECKS

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
COUNTED: Mapping[str, int] = {
    "meta-tools": len(META_TOOLS),
    "carriers": len(CARRIERS),
    "profiles": len(Profile),
    "axes": len(AXES),
    "stages": len(Stage),
    "work modes": len(WorkMode),
    "listings": len(Listing),
    # `the two phases after the fix` are not all of them.
    "phases(?! after)": len(STEPS),
    "layers": len(CHECKS),
    "variables": len(VARIABLES),
    "tools that are always listed": len(META_TOOLS),
}
CLAIM = re.compile(rf"\b(\d+|(?i:{'|'.join(WORDS)}))\s+({'|'.join(COUNTED)})\b")
PLANTED = "It has seven\nmeta-tools, two carriers and 4 stages; the two phases after it are something else."


def texts() -> Iterator[Path]:
    yield from (path for path in DATA.glob("*.md") if path.name != "CHANGELOG.md")
    for folder, ending in (("docs", "md"), ("prompts", "md"), ("mcp_server", "py"), ("tools", "py"), ("menus", "yaml")):
        yield from sorted((DATA / folder).rglob(f"*.{ending}"))


def wrong_claims(text: str) -> Iterator[str]:
    for claim in CLAIM.finditer(text):
        number = int(claim[1]) if claim[1].isdigit() else WORDS.index(claim[1].lower()) + 1
        count = next(count for noun, count in COUNTED.items() if re.fullmatch(noun, claim[2]))
        if number != count:
            yield f"`{' '.join(claim[0].split())}`: there are {count}"


def test_every_number_of_things_is_right() -> None:
    assert [f"{path.relative_to(DATA)}: {wrong}" for path in texts() for wrong in wrong_claims(path.read_text())] == []


@pytest.mark.parametrize("noun", ["meta-tools", "profiles", "axes", "phases(?! after)", "variables"])
def test_the_numbers_are_found(noun: str) -> None:
    """A pattern that finds nothing would find nothing wrong."""
    claims = [claim[2] for path in texts() for claim in CLAIM.finditer(path.read_text())]
    assert any(re.fullmatch(noun, claim) for claim in claims)


def test_a_wrong_number_is_found() -> None:
    assert list(wrong_claims(PLANTED)) == ["`seven meta-tools`: there are 6", "`4 stages`: there are 6"]
