"""Is what a server offered last kept, and believed only if this account wrote it for this very server?"""

from dataclasses import replace
from pathlib import Path

import pytest

from mcp_server.model.upstreams import Catalogue, HttpTarget, Mount, StdioTarget
from mcp_server.state.upstream_catalogues import load_catalogues, save_catalogue

MOUNT = Mount("a-b", "ab", StdioTarget(("x", "-v"), {"KEY": "1"}))
CATALOGUE = Catalogue(({"name": "t", "inputSchema": {"type": "object"}},), instructions="Be.", read_at=5)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("state", "keys"):
        (tmp_path / name).mkdir(mode=0o700)
    save_catalogue(tmp_path / "state", tmp_path / "keys", MOUNT, CATALOGUE)
    return tmp_path / "state", tmp_path / "keys"


def test_a_catalogue_comes_back(places: tuple[Path, Path]) -> None:
    assert load_catalogues(*places, [MOUNT]) == {"a-b": CATALOGUE}


@pytest.mark.parametrize(
    "other",
    [
        replace(MOUNT, target=StdioTarget(("y", "-v"), {"KEY": "1"})),
        replace(MOUNT, target=StdioTarget(("x", "-v"), {"OTHER": "1"})),
        replace(MOUNT, target=StdioTarget(("x", "-v"), {"KEY": "1"}, "/elsewhere")),
        replace(MOUNT, target=HttpTarget("https://example.org")),
    ],
)
def test_another_definition_has_no_catalogue_yet(places: tuple[Path, Path], other: Mount) -> None:
    assert load_catalogues(*places, [other]) == {}


def test_another_value_of_a_variable_is_the_same_server(places: tuple[Path, Path]) -> None:
    assert load_catalogues(*places, [replace(MOUNT, target=StdioTarget(("x", "-v"), {"KEY": "2"}))])


@pytest.mark.parametrize(("old", "new"), [("Be.", "Do."), ("read_at", "read"), ("}", ""), ("\n", " ")])
def test_a_changed_file_counts_for_nothing(places: tuple[Path, Path], old: str, new: str) -> None:
    file = places[0] / "upstreams" / "ab.json"
    file.write_text(file.read_text().replace(old, new))
    assert load_catalogues(*places, [MOUNT]) == {}


def test_a_file_of_another_account_counts_for_nothing(places: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir(mode=0o700)
    assert load_catalogues(places[0], tmp_path / "other", [MOUNT]) == {}


def test_without_keys_nothing_is_kept(tmp_path: Path) -> None:
    save_catalogue(tmp_path, None, MOUNT, CATALOGUE)
    assert load_catalogues(tmp_path, None, [MOUNT]) == {}
