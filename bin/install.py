"""Install this checkout of menugate for whoever runs this, outside of every project, and print how it is started.

    python3 bin/install.py

A copy lies in a folder named by its content, below `~/.local/share/menugate`: a wheel, with what it needs and nothing
that only developers need. The link `~/.local/bin/menugate` leads to the newest and stays. What menugate runs from must
not lie where a model writes, so nobody is told to start the one in `.venv`, which `make test` sets up.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # whoever types `make` may have an older one
    sys.exit("menugate needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3")

import fcntl
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGES = ("mcp_server", "tools", "menus", "prompts")
FILES = ("pyproject.toml", "README.md", "LICENSE")
EXTRAS = "grep"
WHOLE = ".whole"
"""In a copy that was installed to its end."""
KEPT = 3


def main() -> int:
    home = Path(os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
    wish = Path(os.environ.get("XDG_DATA_HOME") or "")
    copies = (wish if wish.is_absolute() else home / ".local" / "share") / "menugate"
    try:
        copies.mkdir(parents=True, exist_ok=True)
        with (copies / ".lock").open("w") as lock:
            # Whoever installs meanwhile is waited for, and mostly leaves nothing to do.
            fcntl.flock(lock, fcntl.LOCK_EX)
            copy = installed(copies)
            prune(copies, copy)
            print(linked(copy, copies, home / ".local" / "bin" / "menugate"))
    except OSError as wrong:
        note(f"menugate is installed in {copies}, and {wrong.filename or 'something there'} cannot be written")
        sys.exit(f"({wrong.strerror}). Name another folder with XDG_DATA_HOME.")
    except subprocess.CalledProcessError as wrong:
        return wrong.returncode  # what went wrong stands above
    return 0


def installed(copies: Path) -> Path:
    copy = copies / named(CHECKOUT)
    if not (copy / WHOLE).exists():
        with tempfile.TemporaryDirectory(prefix="menugate-") as place:
            # From a copy of its own: nobody changes that while it is built, and nothing is built into the checkout.
            source = Path(place) / "menugate"
            source.mkdir()
            for name in PACKAGES:
                shutil.copytree(CHECKOUT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
            for name in FILES:
                shutil.copy2(CHECKOUT / name, source / name)
            copy = copies / named(source)
            build(copy, source)
    (copy / WHOLE).touch()
    return copy


def build(copy: Path, source: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)  # one that was not installed to its end
    setup = ["sh", str(CHECKOUT / "bin" / "setup"), str(copy), f"{source}[{EXTRAS}]"]
    try:
        subprocess.run(setup, check=True, stdout=sys.stderr, env={**os.environ, "PYTHON": sys.executable})
        # It was needed to install the rest, and is a fifth of it.
        pip = [str(copy / "bin" / "python"), "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools"]
        subprocess.run(pip, check=True, capture_output=True)
        unshare(copy)
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise


def unshare(copy: Path) -> None:
    """No file of it may have a second name (hardlink), by which it could be changed from elsewhere."""
    for path in copy.rglob("*"):
        if not path.is_symlink() and path.is_file() and path.stat().st_nlink > 1:
            alone = path.with_name(f"{path.name}.copy")
            shutil.copy2(path, alone)
            alone.replace(path)


def named(source: Path) -> str:
    """The name says what is in it, and for which Python it was made."""
    known = sha256(f"{sys.version}\n{Path(sys.executable).resolve()}\n{EXTRAS}\n".encode())
    for path in contents(source):
        data = path.read_bytes()
        known.update(f"{path.relative_to(source)}\n{len(data)}\n".encode())
        known.update(data)
    return known.hexdigest()[:16]


def contents(source: Path) -> Iterator[Path]:
    yield from (source / name for name in FILES)
    for name in PACKAGES:
        for path in sorted((source / name).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
                yield path


def prune(copies: Path, newest: Path) -> None:
    """Keep the newest few, and what a process still runs from; where that cannot be told, keep all of them."""
    if not Path("/proc/self/cmdline").exists():
        return
    whole = [path.parent for path in copies.glob(f"*/{WHOLE}") if path.parent != newest]
    whole.sort(key=lambda path: (path / WHOLE).stat().st_mtime, reverse=True)
    for old in whole[KEPT - 1 :]:
        if not runs_from(old):
            shutil.rmtree(old, ignore_errors=True)


def runs_from(copy: Path) -> bool:
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(f"{copy}/") in one.read_bytes():
                return True
        except OSError:  # it has just ended, or is somebody else's
            continue
    return False


def linked(copy: Path, copies: Path, link: Path) -> Path:
    """How the copy is started from now on: by the link, unless somebody else has that name."""
    program = copy / "bin" / "menugate"
    try:
        if os.path.lexists(link) and not (link.is_symlink() and link.readlink().is_relative_to(copies)):
            note(f"{link} is there already and is not ours, so it was left as it is; this menugate is {program}")
            return program
        link.parent.mkdir(parents=True, exist_ok=True)
        new = link.with_name(f".menugate-{os.getpid()}")
        new.symlink_to(program)
        new.replace(link)
    except OSError as wrong:
        note(f"{link} cannot be made ({wrong.strerror}); this menugate is {program}")
        return program
    found = shutil.which("menugate")
    if found is None:
        note(f'menugate is {link}; to type it by its name: export PATH="{link.parent}:$PATH"')
    elif Path(found).resolve() != program.resolve():
        note(f"menugate is {link}; `menugate` by itself is another one, {found}, which comes first on your PATH")
    else:
        note(f"menugate is {link}")
    return link


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
