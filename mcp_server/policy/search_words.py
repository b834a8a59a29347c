"""Which words say nothing about a tool, and which mean nearly the same? The second list is menus/search_words.txt."""

from typing import TypeAlias

Related: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Words, and what they may mean."""

STOP_WORDS = frozenset(
    """
    a about above after again all already also although always am an and another any anyone anything are around as at
    away be because been before being below between both but by can cannot could did do does doing done down during each
    either else even ever every everything few for from further get gets getting give given go goes going gone got had
    has have having he her here him his how however i if in instead into is it its itself just keep kind later least let
    lets like ll look looking lot made make makes many may me might mine more most much must my myself need needs never
    no none nor not nothing now of off on once one only onto or other our out over own per perhaps please put quite
    rather really see seem shall she should since so some somebody someone something somewhere soon still
    such take takes than that the their them then there these they thing things this those though through thus till to
    together too toward under until up upon us use used uses using very via want wants was way we well were what when
    where whether which while who whole whom whose why will with within without won would yet you your
    """.split()  # noqa: SIM905  # one word a line would be a page
)


def parse_related(text: str) -> tuple[Related, ...]:
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition(">") for line in lines if line and not line.startswith("#"))
    return tuple((tuple(words.split()), tuple((means or words).split())) for words, _, means in pairs)
