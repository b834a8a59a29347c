"""What does a package's registry say about the version that was fetched? Who published it, when, and built from what.

Nothing of this is proved: it is what the registry says. A registry that does not answer is no reason to stop.
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import urljoin

from mcp_server.guards.network.http import HttpClient
from mcp_server.guards.processes.commands import CommandHost
from mcp_server.guards.processes.upstream import UpstreamNotStarted, run_installer
from mcp_server.model.destinations import USUAL_INDEX, Destinations
from mcp_server.model.network import Request
from mcp_server.model.results import Refusal
from mcp_server.model.text import to_one_line
from mcp_server.model.upstream_packages import Installer, MountPackage, PackageFacts, PackageLock, PackageRequest
from mcp_server.model.upstreams import HttpTarget
from mcp_server.upstreams.http import build_mount_egress
from mcp_server.upstreams.packages.installers import normalize_name

SECONDS = 20.0
MOST_BYTES = 20 << 20
SIMPLE = "application/vnd.pypi.simple.v1+json"
INDEX_OPTIONS = ("--default-index", "--index-url", "-i")
INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
INDEX_LINE = re.compile(r"""^\s*(?:index-url\s*=|url\s*=)\s*["']?([^"'\s]+)""", re.MULTILINE)
CONFIG_FILES: Mapping[Installer, tuple[str, ...]] = {
    Installer.NPM: (),
    Installer.UV: (".config/uv/uv.toml",),
    Installer.PIP: (".config/pip/pip.conf", ".pip/pip.conf"),
}
"""Below the home: where an account says which registry it uses. npm is asked itself."""
MAX_NAME_CHARS = 100


async def find_facts(
    host: CommandHost, package: MountPackage, lock: PackageLock, variables: Mapping[str, str]
) -> PackageFacts:
    try:
        if package.request.installer is Installer.NPM:
            return await ask_npm(host, package.request, lock, variables)
        return await ask_index(find_index(package.request, variables, host.paths.home), lock)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, UpstreamNotStarted) as wrong:
        return PackageFacts(unknown=to_one_line(str(wrong), MAX_NAME_CHARS) or "its answer has another form")


async def ask_npm(
    host: CommandHost, request: PackageRequest, lock: PackageLock, variables: Mapping[str, str]
) -> PackageFacts:
    words = ("npm", "view", "--json", *request.options, "--", f"{request.name}@{lock.version}")
    result = await run_installer(host, words, variables, str(package_home(host)), SECONDS)
    if result.code or result.timed_out:
        return PackageFacts(unknown="npm did not find it again")
    said: Any = json.loads(result.out)
    maintainers: Any = find(said, "maintainers") or []
    attested = find(said, "dist", "attestations", "provenance", "predicateType")
    repository = find(said, "repository", "url") or find(said, "repository")
    return PackageFacts(
        publisher=name_person(find(said, "_npmUser")) or ", ".join(filter(None, map(name_person, maintainers))),
        published_at=read_date(find(said, "time", lock.version)),
        attested=to_one_line(str(attested), MAX_NAME_CHARS) if attested else "",
        repository=to_one_line(repository, 200) if isinstance(repository, str) else "",
        withdrawn=to_one_line(str(find(said, "deprecated") or ""), 200),
    )


def find(value: Any, *keys: str) -> Any:
    """Find what is there, whatever form the answer has."""
    for key in keys:
        value = cast(Mapping[str, Any], value).get(key) if isinstance(value, Mapping) else None
    return value


def find_first(values: Iterable[Any], key: str) -> Any:
    """Find the first that says anything."""
    for one in values:
        if found := find(one, key):
            return found
    return None


def package_home(host: CommandHost) -> Path:
    """A folder without a `package.json` or an `.npmrc` of the workspace, which would say which registry to ask."""
    return host.paths.home if host.paths.home.is_dir() else Path("/")


def name_person(said: Any) -> str:
    """npm writes `name <address>`, or an object; the address is nobody's business here."""
    name = find(said, "name") or (said if isinstance(said, str) else "")
    return to_one_line(str(name).partition("<")[0].strip(), MAX_NAME_CHARS)


def read_date(text: Any) -> int:
    """Return seconds since 1970; 0 if there is no date."""
    if not isinstance(text, str) or not text:
        return 0
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def find_index(request: PackageRequest, variables: Mapping[str, str], home: Path) -> str:
    """Find the registry that `uv` or `pip` asked: as an option, a variable or the account's settings say."""
    options = dict(zip(request.options[::2], request.options[1::2], strict=False))
    given = [options[name] for name in INDEX_OPTIONS if name in options]
    given += [variables[name] for name in INDEX_VARIABLES if variables.get(name)]
    for file in CONFIG_FILES[request.installer]:
        if (home / file).is_file() and (found := INDEX_LINE.search((home / file).read_text("utf-8", "replace"))):
            given.append(found[1])
    return f"{(given or [USUAL_INDEX])[0].rstrip('/')}/"


async def ask_index(index: str, lock: PackageLock) -> PackageFacts:
    own = lock.packages[0]
    page = await fetch_json(f"{index}{normalize_name(own.name)}/", SIMPLE)
    if page is None:
        return PackageFacts(unknown="it does not say when or by whom")
    hashes = set(own.integrity.replace(":", " ").split())
    every: Any = find(page, "files") or []
    files = [one for one in every if hashes & set(map(str, dict(find(one, "hashes") or {}).values()))]
    if not files:
        return PackageFacts(unknown="it no longer has the file that was fetched")
    provenance = find_first(files, "provenance")
    built = await find_builder(urljoin(index, str(provenance))) if provenance else ""
    yanked = find_first(files, "yanked")
    return PackageFacts(
        published_at=min(filter(None, (read_date(find(one, "upload-time")) for one in files)), default=0),
        attested=built,
        withdrawn="it was withdrawn (yanked)" if yanked is True else to_one_line(str(yanked or ""), 200),
    )


async def find_builder(url: str) -> str:
    """Name what PyPI's attestation says built the file."""
    said = await fetch_json(url, "application/vnd.pypi.integrity.v1+json")
    bundles: Any = find(said, "attestation_bundles") or []
    for bundle in bundles:
        words = [find(bundle, "publisher", "kind"), find(bundle, "publisher", "repository")]
        if named := " ".join(str(word) for word in words if word):
            return to_one_line(named, MAX_NAME_CHARS)
    return "by a program that it does not name"


async def fetch_json(url: str, kind: str) -> Any:
    """Return None if the answer has another form. Raises `OSError` if nothing answers."""
    client = HttpClient(build_mount_egress(HttpTarget(url), Destinations(), trusted=True))
    headers = (("accept", kind),)
    try:
        response = await client.fetch(Request(url, headers=headers, seconds=SECONDS, most_bytes=MOST_BYTES))
    except Refusal as refused:
        raise OSError(refused.problem.message) from None
    finally:
        await client.close()
    if response.status != 200 or "json" not in response.header("content-type"):
        return None
    return json.loads(response.body)
