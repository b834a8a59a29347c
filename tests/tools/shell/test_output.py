"""Are both ends of a long output kept, and is the middle had back part by part?"""

import re

from tests.clients.pipe import Pipe
from tests.tools.shell.house import bash, text


def test_a_long_output_keeps_its_ends_and_the_rest_in_a_file(at: Pipe) -> None:
    said = bash(at, "seq 1 100000")
    assert len(said) <= 30_000
    assert said.startswith("1\n2\n")
    assert "99999\n100000" in said
    path = re.search(r"Read (\{.*\})", said)
    assert path
    import json

    call = json.loads(path[1])
    rest = text(at.call("Read", **call, limit=3))
    assert str(call["offset"]) in rest


def test_the_middle_of_a_long_output_is_had_back_part_by_part(at: Pipe) -> None:
    said = bash(at, "seq -f %07g 1 500000")
    found = re.search(
        r'(\d[\d,]*) characters in the middle.*bash_output (\{"bash_id": "([^"]+)", "offset": (\d+)\})', said
    )
    assert found is not None, said[-500:]
    offset, left = int(found[4]), int(found[1].replace(",", ""))
    assert 1_000_000 < left < 4_000_000 - offset
    parts = 0
    while (
        window := re.search(r"\[up to offset (\d+) of 4000000\]", shown := at_offset(at, found[3], offset))
    ) is not None:
        first = next(line for line in shown.splitlines() if re.fullmatch(r"\d{7}", line))
        assert 0 <= int(first) - offset // 8 <= 2
        offset, left, parts = int(window[1]), left - (int(window[1]) - offset), parts + 1
    assert (left, parts) == (0, 2)
    assert "0500000" in shown
    assert "[ended with exit code 0]" in shown


def at_offset(at: Pipe, name: str, offset: int) -> str:
    return text(at.call("bash_output", bash_id=name, offset=offset))
