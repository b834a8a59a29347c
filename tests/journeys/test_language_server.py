"""Does a client get to its language server through every gate, and does the server end with the session?"""

import sysconfig
from pathlib import Path

import pytest

from tests.clients.pipe import pipe


def children(pid: int) -> list[str]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [*found, *(one for child in found for one in children(int(child)))]


def test_from_the_menu_to_the_server_and_its_end(workspace: Path, home: Path) -> None:
    """The server is the one that was installed beside us: the client's search path does not have it."""
    if not (Path(sysconfig.get_path("scripts")) / "ty").exists():
        pytest.skip("ty is not installed beside this Python")
    (workspace / "a.py").write_text("greet = 1\n")
    (workspace / "a.rs").write_text("fn greet() {}\n")
    with pipe(workspace, home) as one:
        one.hello("mcp")
        asking = {"command": "goto_references", "path": "a.py", "symbol": "greet", "line": 1}
        assert "WRONG_MODE" in str(one.call("lsp_tool", **asking))
        one.call("menu_enter", mode="swe")
        assert "a.py:1:1\\tgreet = 1" in str(one.call("lsp_tool", **asking))
        rust = str(one.call("lsp_tool", command="document_symbols", path="a.rs"))
        assert "PROFILE_TOO_LOW" in rust
        assert "trusted" in rust
        running = children(one.process.pid)
        assert running
        assert one.bye() == 0
    assert not [pid for pid in running if Path(f"/proc/{pid}").exists()]
