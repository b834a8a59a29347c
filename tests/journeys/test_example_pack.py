"""Can somebody else's pack be built, installed and called? The example's own distribution, over a real pipe."""

import json
import re
import shlex
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.pipe import pipe
from tests.clients.served import ROOT, environment
from tests.docs.test_pages import BLOCK, WITH_A_NAME, keeps, promised

EXAMPLE = ROOT / "examples" / "csv_pack"
PAGE = (ROOT / "docs" / "packs.md").read_text()
SALES = "region,amount\nnorth,10\nsouth,7\nnorth,\n"


def run(*command: str | Path) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@dataclass
class Installed:
    """An environment in which the pack is installed beside this menugate."""

    python: Path

    @property
    def command(self) -> list[str]:
        return [str(self.python), "-m", "mcp_server"]

    def type(self, line: str, workspace: Path, home: Path) -> str:
        command = [*self.command, *shlex.split(line), "--workspace", str(workspace)]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment(home), cwd=home, timeout=120)
        return ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Nothing of it needs a network: the backend that builds is here, and what the pack needs is, too."""
    folder = tmp_path_factory.mktemp("pack")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, EXAMPLE)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel)
    (packages,) = (folder / "venv" / "lib").glob("*/site-packages")
    (packages / "menugate.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return Installed(python)


@pytest.fixture
def sales(workspace: Path) -> Path:
    (workspace / "sales.csv").write_text(SALES)
    return workspace / "sales.csv"


def text_of(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def test_its_tools_are_listed_called_refused_and_recorded(
    installed: Installed, sales: Path, workspace: Path, home: Path
) -> None:
    serve = [*installed.command, "serve"]
    with pipe(workspace, home, "--mode", "data", run=serve) as host:
        host.hello()
        assert {"csv_columns", "csv_append"} < set(host.names())
        assert "3 rows, 2 columns in `sales.csv`" in text_of(host.call("csv_columns", path="sales.csv"))
        appended = host.call("csv_append", path="sales.csv", row={"amount": "1,5", "region": "west"})
        assert not appended["isError"], text_of(appended)
        assert "no column `price`" in text_of(host.call("csv_append", path="sales.csv", row={"price": "1"}))
        assert "PATH_REFUSED" in text_of(host.call("csv_columns", path="../elsewhere.csv"))
    assert sales.read_text() == SALES + 'west,"1,5"\n'
    with pipe(workspace, home, "--mode", "data", "--profile", "restricted", run=serve) as host:
        host.hello()
        assert "csv_columns" in host.names()
        assert "csv_append" not in host.names()
        refused = host.call("csv_append", path="sales.csv", row={"region": "east"})
        assert "PROFILE_TOO_LOW" in text_of(refused)
    assert "east" not in sales.read_text()
    told = installed.type("audit tail --json -n 100 --kind intent --kind refusal", workspace, home)
    rows = [json.loads(line) for line in told.splitlines()]
    assert [(row["kind"], row["tool"], row.get("code")) for row in rows] == [
        ("intent", "csv_columns", None),
        ("intent", "csv_append", None),
        ("intent", "csv_append", None),
        ("intent", "csv_columns", None),
        ("refusal", "csv_append", "PROFILE_TOO_LOW"),
    ]
    assert "The record is intact" in installed.type("audit verify", workspace, home)


def test_what_its_page_shows_happens(installed: Installed, sales: Path, workspace: Path, home: Path) -> None:
    lines = [(line, shown) for kind, text in BLOCK.findall(PAGE) if kind == "console" for line, shown in promised(text)]
    assert {line.split()[0] for line, _ in lines} == {"check", "menus", "call", "explain"}
    for line, shown in lines:
        said = installed.type(line, workspace, home)
        assert keeps(shown, said), f"$ menugate {line}\n{said}"


def test_its_page_shows_its_files_as_they_are() -> None:
    shown = {name[1]: text[name.end() :] for _, text in BLOCK.findall(PAGE) if (name := WITH_A_NAME.match(text))}
    written = {str(path.relative_to(EXAMPLE)) for path in EXAMPLE.rglob("*") if path.is_file()}
    assert set(shown) == {name for name in written if "__pycache__" not in name}
    assert {name: (EXAMPLE / name).read_text() for name in shown} == shown
    imported = set(re.findall(r"^(?:from|import) (mcp_server\S*|tools\S*)", "".join(shown.values()), re.MULTILINE))
    assert imported == {"mcp_server.packs"}
