"""Which package does a server's command line run, at which version, and is its name like that of a better-known one?

`npx`, `uvx` and their like fetch a package when a server starts, and the next start may run something else than what
you approved. So what `npx`, `uvx` and `pipx run` ask for is fetched once, and kept.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from mcp_server.model.upstream_packages import PackageSource

MIN_LIKE_CHARS = 6
"""Shorter names are alike too often."""
TWO_SLIPS_FROM = 14
"""From this length on, a name may differ in two characters and still be taken for another."""


class PackageRun(Struct, frozen=True):
    """What a command line fetches and runs."""

    source: PackageSource
    name: str
    version: str = ""
    """As written; empty if nothing is said."""

    @property
    def is_exact(self) -> bool:
        """Whether the same is run at every start, as far as the command line decides it."""
        match self.source:
            case PackageSource.NPM:
                return re.fullmatch(r"\d+\.\d+\.\d+(?:[-+][\w.+-]+)?", self.version) is not None
            case PackageSource.PYPI:
                return re.fullmatch(r"={0,3}\s*\d+(?:\.\d+)*(?:[\w.+!-]*\w)?", self.version) is not None
            case PackageSource.IMAGE:
                return re.fullmatch(r"sha256:[0-9a-f]{64}", self.version) is not None
            case PackageSource.ELSEWHERE:
                return False


class _Runner(Struct, frozen=True):
    words: tuple[str, ...]
    source: PackageSource
    package: tuple[str, ...] = ()
    """Options that name the package, which is then not the first word."""
    valued: str = ""
    """Other options with a value of their own."""


NPX = ("-p", "--package")
NPM_VALUES = "-w --workspace --registry --cache -c --call"
UVX_VALUES = """
--with --with-editable --with-requirements --python -p --index --index-url -i --default-index --extra-index-url
--refresh-package --env-file --directory --project --config-file -c --constraints --prerelease --resolution
--exclude-newer --link-mode --cache-dir -w
"""
PIPX_VALUES = "--python --index-url -i --pip-args --with"
DOCKER_VALUES = """
-e --env -v --volume --mount --name --network --net -p --publish -w --workdir -u --user --entrypoint --env-file --label
-l --platform --cap-add --cap-drop --memory -m --cpus --add-host --hostname -h --pull --security-opt --device --gpus
--tmpfs --ulimit --shm-size --pids-limit --runtime
"""
RUNNERS = (
    _Runner(("npx",), PackageSource.NPM, NPX, NPM_VALUES),
    _Runner(("npm", "exec"), PackageSource.NPM, NPX, NPM_VALUES),
    _Runner(("npm", "x"), PackageSource.NPM, NPX, NPM_VALUES),
    _Runner(("pnpm", "dlx"), PackageSource.NPM, NPX),
    _Runner(("pnpx",), PackageSource.NPM, NPX),
    _Runner(("yarn", "dlx"), PackageSource.NPM, NPX),
    _Runner(("bunx",), PackageSource.NPM, NPX),
    _Runner(("uvx",), PackageSource.PYPI, ("--from",), UVX_VALUES),
    _Runner(("uv", "tool", "run"), PackageSource.PYPI, ("--from",), UVX_VALUES),
    _Runner(("pipx", "run"), PackageSource.PYPI, ("--spec",), PIPX_VALUES),
    _Runner(("docker", "run"), PackageSource.IMAGE, (), DOCKER_VALUES),
    _Runner(("podman", "run"), PackageSource.IMAGE, (), DOCKER_VALUES),
)
NPM_NAMES = """
@modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory
@modelcontextprotocol/server-sequential-thinking @modelcontextprotocol/server-github @modelcontextprotocol/server-gitlab
@modelcontextprotocol/server-postgres @modelcontextprotocol/server-slack @modelcontextprotocol/server-puppeteer
@modelcontextprotocol/server-brave-search @modelcontextprotocol/server-google-maps @modelcontextprotocol/inspector
@playwright/mcp @upstash/context7-mcp @notionhq/notion-mcp-server @stripe/mcp @sentry/mcp-server @azure/mcp
@browserbasehq/mcp @supabase/mcp-server-supabase @brave/brave-search-mcp-server @wonderwhy-er/desktop-commander
@elastic/mcp-server-elasticsearch @cloudflare/mcp-server-cloudflare chrome-devtools-mcp mongodb-mcp-server
firecrawl-mcp tavily-mcp exa-mcp-server figma-developer-mcp mcp-remote
"""
PYPI_NAMES = """
mcp-server-git mcp-server-fetch mcp-server-time mcp-server-sqlite mcp-server-sentry mcp-proxy mcp-atlassian
markitdown-mcp blender-mcp fastmcp duckduckgo-mcp-server awslabs-aws-documentation-mcp-server
"""
KNOWN: Mapping[PackageSource, frozenset[str]] = {
    PackageSource.NPM: frozenset(NPM_NAMES.split()),
    PackageSource.PYPI: frozenset(PYPI_NAMES.split()),
    PackageSource.IMAGE: frozenset(),
    PackageSource.ELSEWHERE: frozenset(),
}
"""Names that many people know. This is about names, and says nothing about what is in a package."""


def find_package(argv: Sequence[str]) -> PackageRun | None:
    """Find what a command line fetches; None if it runs a program that is already here."""
    if not argv:
        return None
    words = (argv[0].replace("\\", "/").rpartition("/")[2].removesuffix(".cmd").removesuffix(".exe"), *argv[1:])
    for runner in RUNNERS:
        if tuple(words[: len(runner.words)]) == runner.words:
            spec = _find_spec(runner, words[len(runner.words) :])
            return _parse_spec(runner.source, spec) if spec else None
    return None


def find_better_known(package: PackageRun) -> list[str]:
    """Return the better-known names that this one could be taken for; none if it is one of them."""
    known = KNOWN[package.source]
    name = _normalize_name(package)
    if name in known or len(name) < MIN_LIKE_CHARS:
        return []
    return sorted(one for one in known if _could_be_taken_for(name, one))


def _find_spec(runner: _Runner, words: Sequence[str]) -> str:
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in runner.package:
            return value if equals else next(rest, "")
        if word == "--":
            return next(rest, "")
        if word in runner.valued.split():
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return ""


def _parse_spec(source: PackageSource, spec: str) -> PackageRun:
    if source is PackageSource.IMAGE:
        name, _, digest = spec.partition("@")
        tag = name.rpartition(":")[2] if ":" in name.rpartition("/")[2] else ""
        return PackageRun(source, name.removesuffix(f":{tag}") if tag else name, digest or tag)
    if "://" in spec or spec.startswith((".", "/", "~", "git+", "github:", "file:")) or " @ " in spec:
        return PackageRun(PackageSource.ELSEWHERE, spec)
    if source is PackageSource.NPM:
        at = spec.find("@", 1)
        return PackageRun(source, spec if at < 0 else spec[:at], "" if at < 0 else spec[at + 1 :])
    found = re.match(r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?\s*(?P<version>.*)", spec, re.DOTALL)
    return PackageRun(source, found["name"], found["version"].removeprefix("@")) if found else PackageRun(source, spec)


def _normalize_name(package: PackageRun) -> str:
    name = package.name.lower()
    return re.sub(r"[-_.]+", "-", name) if package.source is PackageSource.PYPI else name


def _could_be_taken_for(name: str, known: str) -> bool:
    bare, other = (re.sub(r"[^a-z0-9]", "", one) for one in (name, known))
    if bare == other:
        return True
    unscoped = known.rpartition("/")[2]
    if name.rpartition("/")[2] == unscoped and len(unscoped) >= MIN_LIKE_CHARS:
        return True
    slips = 2 if len(other) >= TWO_SLIPS_FROM else 1
    return abs(len(bare) - len(other)) <= slips and 0 < _count_slips(bare, other) <= slips


def _count_slips(one: str, other: str) -> int:
    """Count the characters to insert, delete, replace or swap to turn one into the other."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
