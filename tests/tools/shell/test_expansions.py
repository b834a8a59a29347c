"""Do expansions that run unasked only insert text?"""

import pytest

from tools.shell.expansions import find_set_by_expansion, require_plain_expansion
from tools.shell.verdicts import NeedsApproval

INSERTING = r"""
$x ${x} ${#x} $1 $@ ${@:2} ${x%.py} ${x##*/} ${x//#/} ${x//\//_} ${x:-y} ${x:-"a_b"} ${x:-$y} ${x:?no} ${x^^}
${x,} ${x@Q} ${x:0:2} ${x:$n:1} ${x:n} ${x:n+1:2} ${a[0]} ${a[-1]} ${a[@]} ${a[*]} ${a[n]} ${a[$n]} ${#a[@]}
${!a[@]} ${x:=y} $((n+1)) ((n++)) ((n=0;n<3;n++)) {1..9} ${x/$y/_}
"""
DOING_MORE = r"""
${x@P} ${!x} ${!x*} ${x:y} ${x:$y:1} ${a[y]} ${a[$y]} ${a[$(z)]} ${x:-$(y)} ${x:-`y`} ${x:-<(y)} ${x:-${y@P}}
${x:-'}'} ${PATH:=y} ${a[0]:=y} ${x:=$(y)} $((y)) ((y++)) $((a[n])) ((n=y;n<3;n++)) ((PATH=3)) ${x[@]@P} $'x'
${x:n[0]} ${x@A} ${x@E}
"""


def is_number(name: str, begun: frozenset[str] = frozenset()) -> bool:
    return name == "n" or name in begun


@pytest.mark.parametrize(
    "source",
    INSERTING.split(),
)
def test_these_do(source: str) -> None:
    require_plain_expansion(source, is_number)


@pytest.mark.parametrize(
    "source",
    DOING_MORE.split(),
)
def test_these_may_do_more(source: str) -> None:
    with pytest.raises(NeedsApproval):
        require_plain_expansion(source, is_number)


def test_what_an_expansion_sets_is_known() -> None:
    assert find_set_by_expansion("${x:=3}") == find_set_by_expansion("${x=$y}") == {"x"}
    assert not find_set_by_expansion("${x:-3}")
