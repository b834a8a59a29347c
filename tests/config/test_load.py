"""What is said of an installed pack that cannot be used? Entry points as pip leaves them, in a folder on the path."""

import sys
from pathlib import Path

import pytest

from mcp_server.config.load import load_installed_packs
from mcp_server.settings import BuildError


def install(folder: Path, value: str, source: str) -> None:
    about = folder / "broken-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[menugate.tools]\nbroken = {value}\n")
    (folder / "a_broken_pack.py").write_text(source)


@pytest.mark.parametrize(
    ("value", "source", "told"),
    [
        ("a_broken_pack:PACK", "PACK = []", "`a_broken_pack:PACK` is not a `Pack`; its entry point must name one"),
        ("a_broken_pack:PACK", "def PACK(): ...", "is not a `Pack`"),
        ("a_broken_pack:PACKS", "PACK = []", "has no attribute 'PACKS'"),
        ("no_such_pack:PACK", "", "No module named 'no_such_pack'"),
        ("a_broken_pack:PACK", "raise RuntimeError('out of order')", "out of order"),
    ],
)
def test_a_pack_that_cannot_be_used_is_named(
    value: str, source: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, value, source)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "a_broken_pack", raising=False)
    with pytest.raises(BuildError) as refused:
        load_installed_packs()
    assert str(refused.value).startswith("the pack `broken` cannot be loaded: ")
    assert told in str(refused.value)
