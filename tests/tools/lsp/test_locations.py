"""Are places in the workspace shown, and those outside of it only counted?"""

from pathlib import Path

import pytest

from tests.tools.lsp.ground import Started

pytestmark = pytest.mark.anyio


async def test_places_outside_are_counted_and_not_shown(started: Started, tmp_path: Path) -> None:
    (tmp_path / "work_evil").mkdir()
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "outside.py").write_text("SECRET\n")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    (root / "secrets.yaml").write_text("SECRET\n")
    (root / "blob.py").write_bytes(b"SECRET\0\n")
    here = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
    outside = [
        "file:///etc/passwd",
        f"{root.as_uri()}/../outside.py",
        f"{root.as_uri()}/%2e%2e/outside.py",
        f"{root.as_uri()}_evil/a.py",
        f"file://elsewhere{root}/a.py",
        f"{root.as_uri()}/a.py?x",
        f"{root.as_uri()}/a%00.py",
        root.as_uri(),
        "https://example.org/a.py",
        "vscode-vfs://x/typeshed/os.pyi",
        "//[",
        "",
    ]
    unreadable = ["link.py", "secrets.yaml", "blob.py", "gone.py", ".menugate/state.db"]
    uris = [*outside, *(f"{root.as_uri()}/{name}" for name in unreadable), f"file://localhost{root}/a%2epy"]
    found = [{"uri": uri, "range": here} for uri in uris] + [
        {"uri": 3, "range": here},
        {"uri": uris[-1], "range": {"start": {"line": 99, "character": 0}, "end": {}}},
        {"uri": uris[-1], "range": {"start": {"line": 99, "character": 0}, "end": {"line": 99, "character": 0}}},
        "x",
        None,
    ]
    async with started(on={"textDocument/definition": [["answer", found]]}) as one:
        text = await one.text("goto_definition", symbol="greet", line=1)
    assert "SECRET" not in text
    lines = text.splitlines()
    assert lines[0] == "a.py:1:1\tdef greet(name):"
    assert lines[1] == ""
    assert f"{len(outside)} definitions" in lines[2]
    assert "`passwd`" in lines[2]
    assert f"{len(unreadable) + 1} cannot be shown" in lines[2]


async def test_a_yes_to_one_file_of_secrets_shows_no_other(started: Started, tmp_path: Path) -> None:
    here = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
    uris = [(tmp_path / "work" / name).as_uri() for name in (".ssh/asked.py", ".ssh/other.py", "key.pem")]
    found = [{"uri": uri, "range": here} for uri in uris]
    async with started(on={"textDocument/definition": [["answer", found]]}) as one:
        (one.root / ".ssh").mkdir()
        for name in (".ssh/asked.py", ".ssh/other.py", "key.pem"):
            (one.root / name).write_text("greet = 'SECRET'\n")
        text = await one.text("goto_definition", ".ssh/asked.py", symbol="greet", line=1)
        assert text.count("SECRET") == 1
        assert "2 cannot be shown" in text
