"""Are data files and folders made, moved and taken away as asked, and never by the way?"""

from pathlib import Path

from mcp_server.model.results import Code
from tests.tools.workbench import Workbench, code, text


def test_data_is_written_and_written_over(bench: Workbench) -> None:
    assert "Created `a/b`: 3 bytes" in text(bench, "fs_write_file", path="a/b", content="one")
    (bench.root / "a" / "b").chmod(0o600)
    assert "6 bytes, 3 before" in text(bench, "fs_write_file", path="a/b", content="AAECAwQF", encoding="base64")
    assert (bench.root / "a" / "b").read_bytes() == bytes(range(6))
    assert (bench.root / "a" / "b").stat().st_mode & 0o777 == 0o600
    assert code(bench, "fs_write_file", path="a/b", content="not base64!", encoding="base64") is Code.INVALID_ARGUMENTS
    assert code(bench, "fs_write_file", path="a/b", content="\ud800") is Code.INVALID_ARGUMENTS
    assert code(bench, "fs_write_file", path="a", content="x") is Code.PATH_REFUSED
    assert (bench.root / "a" / "b").read_bytes() == bytes(range(6))


def test_a_huge_file_is_replaced_without_being_read(bench: Workbench) -> None:
    with (bench.root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert "3 bytes" in text(bench, "fs_write_file", path="huge", content="new")


def test_folders_moves_and_deletions(bench: Workbench) -> None:
    assert "exists" in text(bench, "fs_create_directory", path="x/y")
    assert "exists" in text(bench, "fs_create_directory", path="x/y")
    (bench.root / "f").write_text("1")
    (bench.root / "g").write_text("2")
    assert code(bench, "fs_move", source="f", destination="g") is Code.ALREADY_EXISTS
    assert code(bench, "fs_move", source="f", destination="../f") is Code.PATH_REFUSED
    assert "to `x/y/f`" in text(bench, "fs_move", source="f", destination="x/y/f")
    assert code(bench, "fs_move", source="x", destination="node_modules/x") is Code.APPROVAL_REQUIRED
    assert code(bench, "fs_delete", path="g") is Code.APPROVAL_REQUIRED
    told = text(bench, "fs_delete", yes=True, path="g")
    assert Path(told.split("`")[-2]).read_text() == "2"
    assert "for good" in text(bench, "fs_delete", yes=True, path="x/y/f", permanent=True)
    assert code(bench, "fs_delete", yes=True, path="x") is Code.ALREADY_EXISTS
    assert code(bench, "fs_delete", yes=True, path=".") is Code.PATH_REFUSED
    assert "Deleted `x/y`" in text(bench, "fs_delete", yes=True, path="x/y")
    assert sorted(path.name for path in bench.root.iterdir()) == [".menugate", "x"]
