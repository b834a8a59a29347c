"""What does a command line with `npx`, `uvx` or `pipx run` ask for, so that it can be fetched once and kept?

Whatever is not understood completely is not kept: the command line then runs as it is written, and you are told.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from mcp_server.model.upstream_packages import Installer, PackageRequest

PYPI_NAME = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?P<extras>\[[\w.,\s-]*\])?\s*(?P<version>.*)", re.DOTALL)
NPM_SPEC = re.compile(r"(?P<name>(?:@[\w.~-]+/)?[\w.~-]+)(?:@(?P<version>[^@/:]*))?")
PYPI_VERSION = re.compile(r"(?:(?:===?|~=|!=|[<>]=?)\s*[\w.*+!-]+\s*,?\s*)*")


class UnkeptPackage(Exception):
    """The command line fetches something that is not kept; the message completes "because "."""


class _KeptRunner(Struct, frozen=True):
    words: tuple[str, ...]
    installer: Installer
    package: tuple[str, ...]
    """Options that name the package; the first word that is no option is then the program."""
    more: tuple[str, ...] = ()
    """Options that name packages to install besides."""
    passed: str = ""
    """Options with a value that the installer takes as well."""
    ignored: str = ""
    """Options without a value that say nothing about what is installed."""
    python: tuple[str, ...] = ()


NPX_IGNORED = "-y --yes -q --quiet -s --silent --prefer-online --prefer-offline"
UVX_PASSED = """
--index --default-index -i --index-url --extra-index-url --index-strategy --prerelease --resolution --exclude-newer
"""
UVX_IGNORED = "-q --quiet -v --verbose --no-progress --isolated --refresh -n --no-cache"
PIPX_IGNORED = "-q --quiet -v --verbose --no-cache"
RUNNERS = (
    *(
        _KeptRunner(words, Installer.NPM, ("-p", "--package"), (), "--registry", NPX_IGNORED)
        for words in (("npx",), ("npm", "exec"), ("npm", "x"))
    ),
    *(
        _KeptRunner(words, Installer.UV, ("--from",), ("--with", "-w"), UVX_PASSED, UVX_IGNORED, ("-p", "--python"))
        for words in (("uvx",), ("uv", "tool", "run"))
    ),
    _KeptRunner(
        ("pipx", "run"),
        Installer.PIP,
        ("--spec",),
        ("--with",),
        "-i --index-url",
        PIPX_IGNORED,
        ("--python",),
    ),
)


@dataclass
class _Reading:
    """What was read of the words so far."""

    packages: list[str] = field(default_factory=list[str])
    more: list[str] = field(default_factory=list[str])
    options: list[str] = field(default_factory=list[str])
    python: str = ""


def find_request(argv: Sequence[str]) -> PackageRequest | None:
    """Find what is asked for; None if no such program runs. Raises `UnkeptPackage`."""
    if not argv:
        return None
    words = (argv[0].replace("\\", "/").rpartition("/")[2].removesuffix(".cmd").removesuffix(".exe"), *argv[1:])
    for runner in RUNNERS:
        if words[: len(runner.words)] == runner.words:
            return _read_words(runner, list(words[len(runner.words) :]))
    return None


def _read_words(runner: _KeptRunner, words: list[str]) -> PackageRequest:
    reading = _Reading()
    while words and words[0].startswith("-") and words[0] != "--":
        _read_option(runner, reading, words)
    if words[:1] == ["--"]:
        del words[0]
    if not words:
        raise UnkeptPackage("it names no package or program")
    program, arguments = words[0], tuple(words[1:])
    named = [_normalize(runner.installer, spec) for spec in reading.packages or [program]]
    specs = [*named, *(_normalize(runner.installer, spec) for spec in reading.more)]
    name = named[0][0]
    # Without a package of its own, the word names both.
    started = program if reading.packages else ""
    return PackageRequest(
        runner.installer,
        tuple(spec for _, spec in specs),
        name,
        started,
        arguments,
        tuple(reading.options),
        reading.python,
    )


def _read_option(runner: _KeptRunner, reading: _Reading, words: list[str]) -> None:
    option, equals, value = words.pop(0).partition("=")
    if option in runner.ignored.split() and not equals:
        return
    known = (*runner.package, *runner.more, *runner.passed.split(), *runner.python)
    if option not in known:
        raise UnkeptPackage(f"of its option `{option}`")
    if not equals:
        if not words:
            raise UnkeptPackage(f"its option `{option}` has no value")
        value = words.pop(0)
    if option in runner.package:
        reading.packages.append(value)
    elif option in runner.more:
        reading.more += [one.strip() for one in value.split(",") if one.strip()]
    elif option in runner.python:
        reading.python = value
    else:
        reading.options += [option, value]


def _normalize(installer: Installer, spec: str) -> tuple[str, str]:
    """Return the package's name, and the words to give to the installer."""
    if installer is Installer.NPM:
        found = NPM_SPEC.fullmatch(spec)
        if found is None or spec.startswith((".", "/", "~")):
            raise UnkeptPackage("its package comes from an address or folder")
        return found["name"], spec
    # `uvx` writes a version like npm, or `latest`; `pip` knows only `==`.
    text = re.sub(r"@\s*latest$", "", spec)
    text = re.sub(r"@\s*(?=\d)", "==", text)
    found = PYPI_NAME.fullmatch(text)
    if found is None or PYPI_VERSION.fullmatch(found["version"].strip()) is None:
        raise UnkeptPackage("its package comes from an address or folder")
    return found["name"], text
