"""Install this checkout of menugate for the current user, outside every project, and print how to start it.

    python3 bin/install.py

Each copy is in a folder named by its content, below `~/.local/share/menugate`: a wheel with its dependencies, without
the development tools. The link `~/.local/bin/menugate` always leads to the newest. Menugate must not run from a folder
that a model can write, so users are never pointed to the one in `.venv`, which `make test` sets up.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # `make` may run an older one
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
"""Marks a copy that was installed completely."""
KEPT = 3


def main() -> int:
    home = Path(os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
    chosen = Path(os.environ.get("XDG_DATA_HOME") or "")
    copies = (chosen if chosen.is_absolute() else home / ".local" / "share") / "menugate"
    try:
        copies.mkdir(parents=True, exist_ok=True)
        with (copies / ".lock").open("w") as lock:
            # If another process is installing, wait for it; usually nothing is left to do then.
            fcntl.flock(lock, fcntl.LOCK_EX)
            copy = install_copy(copies)
            prune(copies, copy)
            print(link_copy(copy, copies, home / ".local" / "bin" / "menugate"))
    except OSError as error:
        note(f"menugate is installed in {copies}, but {error.filename or 'something there'} cannot be written")
        sys.exit(f"({error.strerror}). Name another folder with XDG_DATA_HOME.")
    except subprocess.CalledProcessError as error:
        return error.returncode  # the error is already on the terminal
    return 0


def install_copy(copies: Path) -> Path:
    copy = copies / name_copy(CHECKOUT)
    if not (copy / WHOLE).exists():
        with tempfile.TemporaryDirectory(prefix="menugate-") as place:
            # Build from a copy of the sources: it cannot change meanwhile, and the build leaves nothing in the
            # checkout.
            source = Path(place) / "menugate"
            source.mkdir()
            for name in PACKAGES:
                shutil.copytree(CHECKOUT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
            for name in FILES:
                shutil.copy2(CHECKOUT / name, source / name)
            copy = copies / name_copy(source)
            build(copy, source)
    (copy / WHOLE).touch()
    return copy


def build(copy: Path, source: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)  # an incomplete one
    setup = ["sh", str(CHECKOUT / "bin" / "setup"), str(copy), f"{source}[{EXTRAS}]"]
    try:
        subprocess.run(setup, check=True, stdout=sys.stderr, env={**os.environ, "PYTHON": sys.executable})
        # pip was needed to install the rest, and takes a fifth of the space.
        pip = [str(copy / "bin" / "python"), "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools"]
        subprocess.run(pip, check=True, capture_output=True)
        copy_shared_files(copy)
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise


def copy_shared_files(copy: Path) -> None:
    """Copy every file that has a second name (hardlink), by which it could be changed from elsewhere."""
    for path in copy.rglob("*"):
        if not path.is_symlink() and path.is_file() and path.stat().st_nlink > 1:
            alone = path.with_name(f"{path.name}.copy")
            shutil.copy2(path, alone)
            alone.replace(path)


def name_copy(source: Path) -> str:
    """Name a copy by its content and the Python it was made for."""
    digest = sha256(f"{sys.version}\n{Path(sys.executable).resolve()}\n{EXTRAS}\n".encode())
    for path in list_files(source):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(source)}\n{len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()[:16]


def list_files(source: Path) -> Iterator[Path]:
    yield from (source / name for name in FILES)
    for name in PACKAGES:
        for path in sorted((source / name).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
                yield path


def prune(copies: Path, newest: Path) -> None:
    """Keep the newest few and those that a process still runs from; keep all if that cannot be determined."""
    if not Path("/proc/self/cmdline").exists():
        return
    whole = [path.parent for path in copies.glob(f"*/{WHOLE}") if path.parent != newest]
    whole.sort(key=lambda path: (path / WHOLE).stat().st_mtime, reverse=True)
    for old in whole[KEPT - 1 :]:
        if not is_in_use(old):
            shutil.rmtree(old, ignore_errors=True)


def is_in_use(copy: Path) -> bool:
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(f"{copy}/") in cmdline.read_bytes():
                return True
        except OSError:  # it has just ended, or belongs to another user
            continue
    return False


def link_copy(copy: Path, copies: Path, link: Path) -> Path:
    """Point the link at the copy and return how to start it; another program with that name is left alone."""
    program = copy / "bin" / "menugate"
    try:
        if os.path.lexists(link) and not (link.is_symlink() and link.readlink().is_relative_to(copies)):
            note(f"{link} already exists and is not ours, so it was left alone; this menugate is {program}")
            return program
        link.parent.mkdir(parents=True, exist_ok=True)
        new = link.with_name(f".menugate-{os.getpid()}")
        new.symlink_to(program)
        new.replace(link)
    except OSError as error:
        note(f"{link} cannot be created ({error.strerror}); this menugate is {program}")
        return program
    on_path = shutil.which("menugate")
    if on_path is None:
        note(f'menugate is {link}; to run it by name: export PATH="{link.parent}:$PATH"')
    elif Path(on_path).resolve() != program.resolve():
        note(f"menugate is {link}; plain `menugate` runs another one, {on_path}, which comes first on your PATH")
    else:
        note(f"menugate is {link}")
    return link


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
