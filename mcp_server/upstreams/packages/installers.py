"""How does each package manager install a server, and what did it install?

None of them runs code of the packages: npm leaves out install scripts, and Python packages are taken as wheels alone.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from mcp_server.guards.processes.commands import CommandHost
from mcp_server.guards.processes.upstream import UpstreamNotStarted, run_installer
from mcp_server.model.processes import CommandResult
from mcp_server.model.text import to_one_line
from mcp_server.model.upstream_packages import Installer, LockedPackage, PackageRequest

SECONDS = 600.0
ENVIRONMENT = "env"
"""The virtual environment, below the folder to install into."""
MAX_TOLD_CHARS = 600
NODE_SHEBANG = re.compile(rb"#!.*\bnode\b")
NPM_OPTIONS = """
--ignore-scripts --no-audit --no-fund --no-update-notifier --omit=dev --save-exact --package-lock --no-global
--install-strategy=hoisted --loglevel=error
"""
REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==(?P<version>[^\s\\;]+)", re.MULTILINE)
HASH = re.compile(r"--hash=(\S+)")


class PackageNotFetched(Exception):
    """Nothing was installed; the message says why."""


class InstalledPackage(Struct, frozen=True):
    """What was installed, before its files are read."""

    packages: tuple[LockedPackage, ...]
    program: str
    """Below the folder."""
    interpreter: str = ""
    scripts: tuple[str, ...] = ()


class Installation(Struct, frozen=True):
    """One folder to install into."""

    host: CommandHost
    request: PackageRequest
    place: Path
    env: Mapping[str, str]

    async def run(self, *argv: str) -> CommandResult:
        try:
            return await run_installer(self.host, argv, self.env, str(self.place), SECONDS)
        except UpstreamNotStarted as wrong:
            raise PackageNotFetched(f"{argv[0]} could not start: {wrong}") from None

    async def run_or_raise(self, *argv: str) -> bytes:
        result = await self.run(*argv)
        if result.timed_out:
            raise PackageNotFetched(f"`{Path(argv[0]).name}` did not end within {SECONDS:g} s")
        if result.code:
            raise PackageNotFetched(f"`{Path(argv[0]).name}` failed: {describe_end(result)}")
        return result.out


async def install(installation: Installation) -> InstalledPackage:
    match installation.request.installer:
        case Installer.NPM:
            return await install_with_npm(installation)
        case Installer.UV:
            return await install_with_uv(installation)
        case Installer.PIP:
            return await install_with_pip(installation)


async def install_with_npm(installation: Installation) -> InstalledPackage:
    request, place = installation.request, installation.place
    (place / "package.json").write_text('{"private": true}\n')
    words = ("npm", "install", "--prefix", str(place), *NPM_OPTIONS.split(), *request.options, "--", *request.specs)
    await installation.run_or_raise(*words)
    entries = _read_json(place / "package-lock.json").get("packages")
    known = cast(Mapping[str, Mapping[str, Any]], entries if isinstance(entries, dict) else {})
    found = {path: one for path, one in known.items() if path}
    packages = [
        LockedPackage(path.rpartition("node_modules/")[2], str(one.get("version")), str(one.get("integrity", "")))
        for path, one in sorted(found.items())
    ]
    scripts = sorted({path.rpartition("node_modules/")[2] for path in found if found[path].get("hasInstallScript")})
    program = find_npm_program(place, request)
    with (place / program).open("rb") as file:
        interpreter = "node" if NODE_SHEBANG.match(file.readline(200)) else ""
    return InstalledPackage(put_own_first(packages, request.name), program, interpreter, tuple(scripts))


def find_npm_program(place: Path, request: PackageRequest) -> str:
    """Find what `npx` would start: the package's only program, or the one that is called like it."""
    if request.program:
        path = place / "node_modules" / ".bin" / request.program
    else:
        folder = place / "node_modules" / request.name
        written: Any = _read_json(folder / "package.json").get("bin")
        bare = request.name.rpartition("/")[2]
        programs: Mapping[str, Any] = {bare: written} if isinstance(written, str) else written or {}
        path = folder / str(choose_program(programs, bare, request))
    real = path.resolve()
    if not (real.is_relative_to(place.resolve()) and real.is_file()):
        raise PackageNotFetched(f"`{request.name}` has no program {request.program or 'to start'}")
    return str(real.relative_to(place.resolve()))


def choose_program(programs: Mapping[str, Any], name: str, request: PackageRequest) -> Any:
    if len(programs) == 1:
        return next(iter(programs.values()))
    if name not in programs:
        there = ", ".join(sorted(programs)) or "none"
        raise PackageNotFetched(f"`{request.name}` does not say which of its programs to start; it has {there}")
    return programs[name]


async def install_with_uv(installation: Installation) -> InstalledPackage:
    request, place = installation.request, installation.place
    python = ("--python", request.python) if request.python else ()
    environment, wanted, locked = place / ENVIRONMENT, place / "wanted.txt", place / "locked.txt"
    await installation.run_or_raise("uv", "venv", "--quiet", "--no-project", *python, str(environment))
    wanted.write_text("".join(f"{spec}\n" for spec in request.specs))
    into = ("--python", str(environment / "bin" / "python"), "--only-binary", ":all:", "--quiet")
    resolve = ("--generate-hashes", "--no-header", "--no-annotate", "--output-file", str(locked), str(wanted))
    await installation.run_or_raise("uv", "pip", "compile", *into, *request.options, *resolve)
    install_words = ("--require-hashes", "--compile-bytecode", "--link-mode", "copy", "--no-deps", "-r", str(locked))
    await installation.run_or_raise("uv", "pip", "install", *into, *request.options, *install_words)
    packages = parse_requirements(locked.read_text())
    for draft in (wanted, locked):
        draft.unlink()
    return InstalledPackage(put_own_first(packages, request.name), find_python_program(place, request))


async def install_with_pip(installation: Installation) -> InstalledPackage:
    request, place = installation.request, installation.place
    python = find_python(request.python)
    environment, report = place / ENVIRONMENT, place / "report.json"
    inside = str(environment / "bin" / "python")
    has_pip = (await installation.run(python, "-m", "pip", "--version")).code == 0
    bare = ("--without-pip",) if has_pip else ()
    await installation.run_or_raise(python, "-m", "venv", *bare, str(environment))
    pip = (python, "-m", "pip", "--python", inside) if has_pip else (inside, "-m", "pip")
    options = ("--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--quiet")
    await installation.run_or_raise(
        *pip, "install", *options, *request.options, "--report", str(report), "--", *request.specs
    )
    packages = parse_report(_read_json(report))
    report.unlink()
    return InstalledPackage(put_own_first(packages, request.name), find_python_program(place, request))


def find_python(asked: str) -> str:
    """`3.12` means `python3.12`; a path or another name stays."""
    return f"python{asked}" if re.fullmatch(r"3(\.\d+)?", asked) else asked or "python3"


def find_python_program(place: Path, request: PackageRequest) -> str:
    """Find what `uvx` or `pipx run` would start: the program called like the package, or its only one."""
    scripts = place / ENVIRONMENT / "bin"
    name = request.program or request.name
    if not (scripts / name).is_file():
        own = [] if request.program else sorted(_list_scripts(place, request.name))
        if len(own) != 1:
            there = f"; it has {', '.join(own)}" if own else ""
            raise PackageNotFetched(f"`{request.name}` has no program {name}{there}")
        name = own[0]
    program = scripts / name
    if program.is_symlink() or not program.resolve().is_relative_to(place.resolve()):
        raise PackageNotFetched(f"{name} is no program of `{request.name}`")
    return f"{ENVIRONMENT}/bin/{name}"


def _list_scripts(place: Path, name: str) -> list[str]:
    from configparser import ConfigParser, Error

    for info in (place / ENVIRONMENT).glob("lib/python*/site-packages/*.dist-info"):
        if normalize_name(info.name.rpartition("-")[0].removesuffix(".dist")) != normalize_name(name):
            continue
        parser = ConfigParser(delimiters=("=",), interpolation=None)
        parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]  # names of programs keep their case
        try:
            parser.read(info / "entry_points.txt", "utf-8")
        except (Error, UnicodeDecodeError):
            return []
        return parser.options("console_scripts") if parser.has_section("console_scripts") else []
    return []


def parse_requirements(text: str) -> list[LockedPackage]:
    """Read what `uv pip compile` wrote: each package with the hash of every file it may be installed from."""
    starts = list(REQUIREMENT.finditer(text))
    ends = [one.start() for one in starts[1:]] + [len(text)]
    return [
        LockedPackage(one["name"], one["version"], " ".join(sorted(HASH.findall(text[one.end() : end]))))
        for one, end in zip(starts, ends, strict=True)
    ]


def parse_report(report: Mapping[str, Any]) -> list[LockedPackage]:
    """Read what `pip install --report` wrote."""
    found: list[LockedPackage] = []
    for one in cast(Sequence[Any], report.get("install") or ()):
        hashes = one["download_info"].get("archive_info", {}).get("hashes", {})
        integrity = " ".join(sorted(f"{name}:{value}" for name, value in hashes.items()))
        found.append(LockedPackage(str(one["metadata"]["name"]), str(one["metadata"]["version"]), integrity))
    return sorted(found, key=lambda one: one.name)


def put_own_first(packages: Sequence[LockedPackage], name: str) -> tuple[LockedPackage, ...]:
    own = [one for one in packages if normalize_name(one.name) == normalize_name(name)]
    if not own or not all(one.integrity for one in packages):
        missing = [one.name for one in packages if not one.integrity] or [name]
        raise PackageNotFetched(f"its registry gives no hash for {', '.join(missing[:3])}")
    return (own[0], *(one for one in packages if one is not own[0]))


def normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower() if not name.startswith("@") else name


def describe_end(result: CommandResult) -> str:
    text = (result.err or result.out).decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip() and "complete log of this run" not in line]
    return to_one_line(" ".join(lines[-6:]), MAX_TOLD_CHARS) or f"exit code {result.code}"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        raise PackageNotFetched(f"{path.name} of the package cannot be read") from None
    if not isinstance(found, dict):
        raise PackageNotFetched(f"{path.name} of the package has another form")
    return cast(dict[str, Any], found)
