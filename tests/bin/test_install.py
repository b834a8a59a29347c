"""Does `make serve` start a copy that lies outside of the checkout, by a link that stays?

What pip would bring is put there by a stand-in; `make wheel` does the whole of it.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETUP = """
mkdir -p "$1/bin"
echo "$@" >> "$(dirname "$0")/calls"
printf '#!/bin/sh\\necho copy: "$@"\\n' > "$1/bin/menugate"
printf '#!/bin/sh\\n' > "$1/bin/python"
chmod +x "$1/bin/menugate" "$1/bin/python"
echo installing >&2
"""


@dataclass
class Checkout:
    root: Path
    home: Path

    def install(self, **more: str) -> "subprocess.CompletedProcess[str]":
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), **more}
        program = [sys.executable, str(self.root / "bin" / "install.py")]
        return subprocess.run(program, env=env, cwd=self.root, capture_output=True, text=True, timeout=120)

    def calls(self) -> list[str]:
        listed = self.root / "bin" / "calls"
        return listed.read_text().splitlines() if listed.exists() else []

    @property
    def copies(self) -> list[Path]:
        return sorted(path.parent for path in self.home.rglob(".whole"))

    @property
    def link(self) -> Path:
        return self.home / ".local" / "bin" / "menugate"


@pytest.fixture
def checkout(tmp_path: Path, home: Path) -> Checkout:
    root = tmp_path / "checkout"
    for name in ("mcp_server", "tools", "menus", "prompts"):
        (root / name).mkdir(parents=True)
        (root / name / "one.py").write_text(f"# {name}\n")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (root / name).write_text(name)
    (root / "bin").mkdir()
    shutil.copy(ROOT / "bin" / "install.py", root / "bin" / "install.py")
    (root / "bin" / "setup").write_text(SETUP)
    return Checkout(root, home)


def test_the_copy_lies_outside_and_a_link_leads_to_it(checkout: Checkout) -> None:
    done = checkout.install()
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{checkout.link}\n"
    (copy,) = checkout.copies
    assert copy.parent == checkout.home / ".local" / "share" / "menugate"
    assert checkout.link.readlink() == copy / "bin" / "menugate"
    assert f'export PATH="{checkout.link.parent}:$PATH"' in done.stderr
    (call,) = checkout.calls()
    # A wheel of the sources, and nothing that only developers need.
    assert call.split()[0] == str(copy)
    assert call.endswith("[grep]") and "editable" not in call and str(checkout.root) not in call


def test_no_file_of_the_copy_has_a_second_name(checkout: Checkout) -> None:
    cached = checkout.home / "cached.py"
    cached.write_text("x")
    cached.chmod(0o755)
    with (checkout.root / "bin" / "setup").open("a") as setup:
        setup.write(f'ln "{cached}" "$1/one.py"\n')
    done = checkout.install()
    assert done.returncode == 0, done.stderr
    (copy,) = checkout.copies
    assert {path.stat().st_nlink for path in copy.rglob("*") if path.is_file()} == {1}
    assert (copy / "one.py").read_text() == "x" and os.access(copy / "one.py", os.X_OK)


def test_it_is_installed_once_for_each_content(checkout: Checkout) -> None:
    checkout.install()
    (checkout.root / "tools" / "__pycache__").mkdir()
    (checkout.root / "tools" / "__pycache__" / "one.pyc").write_text("x")
    (checkout.root / "notes.md").write_text("x")
    first = checkout.install().stdout
    assert len(checkout.calls()) == 1
    (checkout.root / "tools" / "one.py").write_text("# another\n")
    assert checkout.install().stdout == first
    assert len(checkout.calls()) == len(checkout.copies) == 2
    assert checkout.link.exists()


def test_one_that_was_not_installed_to_its_end_is_begun_anew(checkout: Checkout) -> None:
    checkout.install()
    (copy,) = checkout.copies
    (copy / ".whole").unlink()
    (copy / "half").write_text("x")
    checkout.install()
    assert checkout.copies == [copy] and not (copy / "half").exists()
    (checkout.root / "tools" / "one.py").write_text("# another\n")
    (checkout.root / "bin" / "setup").write_text('mkdir -p "$1"; exit 7\n')
    done = checkout.install()
    assert (done.returncode, done.stdout) == (7, "")
    assert checkout.copies == [copy] and len(list(copy.parent.glob("[!.]*"))) == 1
    assert checkout.link.readlink() == copy / "bin" / "menugate"


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_a_menugate_of_somebody_else_is_left_alone(checkout: Checkout, kind: str) -> None:
    checkout.link.parent.mkdir(parents=True)
    if kind == "file":
        checkout.link.write_text("theirs")
    elif kind == "link":
        checkout.link.symlink_to("/opt/menugate/bin/menugate")
    else:
        checkout.link.mkdir()
    done = checkout.install()
    (copy,) = checkout.copies
    assert done.stdout == f"{copy / 'bin' / 'menugate'}\n"
    assert f"{checkout.link} already exists" in done.stderr
    assert not checkout.link.is_symlink() or str(checkout.link.readlink()) == "/opt/menugate/bin/menugate"


def test_old_copies_go_but_not_one_that_runs(checkout: Checkout) -> None:
    made: list[Path] = []

    def another(number: int) -> None:
        (checkout.root / "tools" / "one.py").write_text(f"# {number}\n")
        checkout.install()
        made.append(checkout.link.resolve().parents[1])
        os.utime(made[-1] / ".whole", (number, number))

    another(0)
    waiting = made[0] / "bin" / "waiting"
    waiting.write_text("read line\n")
    with subprocess.Popen(["sh", str(waiting)], stdin=subprocess.PIPE) as child:
        for number in range(1, 6):
            another(number)
        assert set(checkout.copies) == {made[0], *made[-3:]}
        child.communicate(b"\n")
    another(6)
    assert set(checkout.copies) == set(made[-3:])


def test_a_folder_that_cannot_be_written_is_named(checkout: Checkout) -> None:
    (checkout.home / "file").write_text("x")
    done = checkout.install(XDG_DATA_HOME=str(checkout.home / "file"))
    assert done.returncode == 1 and done.stdout == ""
    assert str(checkout.home / "file") in done.stderr and "XDG_DATA_HOME" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_make_serve_starts_what_was_installed(checkout: Checkout) -> None:
    shutil.copy(ROOT / "Makefile", checkout.root / "Makefile")
    words = ["make", "serve", f"PYTHON={sys.executable}", "HTTP=127.0.0.1:0"]
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(checkout.home)}
    done = subprocess.run(words, env=env, cwd=checkout.root, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "copy: serve --http 127.0.0.1:0", done.stderr
    assert not (checkout.root / ".venv").exists()


def test_no_page_tells_anybody_to_start_a_copy_in_a_workspace() -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for line in page.read_text().splitlines():
            named = re.search(r"\.venv/bin/menugate", line)
            assert named is None or "do not run" in line, f"{page.name}: {line}"
    assert "~/.local/bin/menugate" in (ROOT / "README.md").read_text()
    assert "~/.local/bin/menugate" in (ROOT / "docs" / "hosts.md").read_text()
