"""Does Read stop at its limits, and name the call that goes on?"""

from typing import Any

from mcp_server.model.results import Code
from tests.tools.workbench import Workbench, code, next_offset, text
from tools.files.definitions import LINES
from tools.files.lines import LINE_CHARS, PAGE_CHARS


def test_read_stops_at_its_limits_and_names_the_next_call(bench: Workbench) -> None:
    (bench.root / "long").write_text("".join(f"{number}\n" for number in range(1, 5001)))
    shown = text(bench, "Read", file_path="long")
    assert shown.count("\n") == LINES
    assert f'Lines 1-{LINES} of 5000 shown, 8,893 of 23,893 bytes. Next: Read(file_path="long", offset=2001)' in shown
    (bench.root / "wide").write_text(("w" * 1500 + "\n") * 400)
    shown = text(bench, "Read", file_path="wide")
    assert len(shown) < PAGE_CHARS + 300
    assert "Next: Read(" in shown
    assert len(text(bench, "Read", file_path="wide", allow_large=True)) > 3 * PAGE_CHARS
    (bench.root / "line").write_text("é" * 5000 + "\nend\n")
    lines = text(bench, "Read", file_path="line").split("\n")
    assert lines[0] == "1\t" + "é" * LINE_CHARS + "… [this line has 10,000 bytes]"
    assert lines[1] == "2\tend"
    assert "longer than shown" in lines[2]


def test_following_read_shows_every_line_once(bench: Workbench) -> None:
    (bench.root / "f").write_text("".join(f"{number} {'x' * (number % 300)}\n" for number in range(1, 3000)))
    seen: list[int] = []
    offset: int | None = 1
    while offset is not None:
        shown = text(bench, "Read", file_path="f", offset=offset)
        seen += [int(line.split("\t")[0]) for line in shown.split("\n") if not line.startswith("[")]
        offset = next_offset(shown)
    assert seen == list(range(1, 3000))


def test_a_file_too_large_to_open_is_said_to_be(bench: Workbench) -> None:
    with (bench.root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    ways: dict[str, dict[str, Any]] = {
        "Read": {},
        "Edit": {"old_string": "a", "new_string": "b"},
        "Write": {"content": "x"},
    }
    for name, more in ways.items():
        assert code(bench, name, file_path="huge", **more) is Code.TOO_LARGE
    (bench.root / "big.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(4_000_000))
    assert code(bench, "Read", file_path="big.png") is Code.TOO_LARGE
