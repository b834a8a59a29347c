"""What do you have to know of the package that a server comes from? What is kept of it, and what was not checked."""

from collections.abc import Iterator

from mcp_server.model.text import format_count, format_list
from mcp_server.model.upstream_packages import MountPackage, PackageFacts, PackageLock
from mcp_server.model.upstreams import Mount, StdioTarget
from mcp_server.policy.upstream_packages import PackageRun, find_better_known, find_package
from mcp_server.policy.upstream_requests import UnkeptPackage, find_request
from mcp_server.views.text import format_time

MAX_CHANGES = 40
YOUNG_DAYS = 7


def describe_package(mount: Mount) -> list[str]:
    """Say what to know about the package that the server comes from; nothing if it comes from none."""
    run = find_package(mount.target.argv) if isinstance(mount.target, StdioTarget) else None
    if run is None:
        return [unkept] if (unkept := describe_unkept(mount)) else []
    sentences = list(describe_fetched(mount.package)) if mount.package else []
    if not sentences:
        version = f" {run.version}" if run.version else ""
        sentences.append(f"It runs {run.name}{version} ({run.source}).")
    if mount.package is None:
        sentences += [one for one in (describe_unkept(mount),) if one]
        if not run.is_exact:
            sentences.append("The next start may run something else than this one: no exact version is written.")
    if like := find_better_known(run):
        sentences.append(f"Its name is like that of the better-known {' and '.join(like)}. Is it the one you mean?")
    return [*sentences, "What its files do was not checked."]


def describe_fetched(package: MountPackage) -> Iterator[str]:
    """Say what is kept on this machine; nothing before it was fetched."""
    lock = package.lock
    if lock is None:
        return
    own, others = lock.packages[0], len(lock.packages) - 1
    also = f", with {format_count(others, 'other package')}" if others else ""
    yield (
        f"{own.name} {own.version} ({package.request.source}) was fetched {format_time(lock.fetched_at)}{also}, and is "
        "kept with all its hashes. It starts from there, and fetches nothing."
    )
    if lock.scripts:
        does = "has an install script, which" if len(lock.scripts) == 1 else "have install scripts, which"
        yield f"{format_list(lock.scripts, 'and')} {does} did not run. If the server needs it, it will not work."


def describe_facts(package: MountPackage, facts: PackageFacts, now: float) -> list[str]:
    """Say what the registry says about the version, and plainly what it does not."""
    source = package.request.source
    sentences: list[str] = []
    if facts.unknown:
        sentences.append(f"{source} was asked who published it, but: {facts.unknown}.")
    else:
        who = f"by {facts.publisher}" if facts.publisher else f"by an account that {source} does not name"
        days = max(0, int((now - facts.published_at) // 86_400))
        age = f"{format_count(days, 'day')} ago " if facts.published_at else ""
        sentences.append(f"This version was published {age}{who}.")
        if facts.published_at and days < YOUNG_DAYS:
            sentences.append("It is very new: few people can have looked at it yet.")
        if facts.withdrawn:
            sentences.append(f"Its publisher says not to use it any more: {facts.withdrawn}")
        if facts.repository:
            sentences.append(f"It says that its source is {facts.repository}; that was not compared.")
        sentences.append(
            f"{source} has an attestation of where it was built ({facts.attested}); its signature was not checked."
            if facts.attested
            else f"{source} has no attestation of where it was built."
        )
    if like := find_better_known(PackageRun(source, package.request.name)):
        sentences.append(f"Its name is like that of the better-known {' and '.join(like)}. Is it the one you mean?")
    return [*sentences, "What its files do, and who published the other packages, was not checked."]


def describe_unkept(mount: Mount) -> str:
    """Say why what the command line fetches is not kept here; empty if it fetches nothing."""
    target = mount.target
    if not isinstance(target, StdioTarget):
        return ""
    try:
        request = find_request(target.argv)
    except UnkeptPackage as why:
        return f"menugate keeps no copy of it, because {why}."
    if request is None and find_package(target.argv) is None:
        return ""
    if request is None:
        return f"menugate keeps no copy of it: `{target.argv[0]}` fetches it by itself."
    return "menugate keeps no copy of it, because this account has no folder for keys."


def list_package_changes(before: PackageLock | None, after: PackageLock) -> list[str]:
    """List which packages an update adds, changes and drops."""
    if before is None:
        return []
    old, new = ({one.name: one for one in lock.packages} for lock in (before, after))
    lines = [
        f"{name} {old[name].version} → {new[name].version}" if name in old and name in new else f"{what} {name}"
        for name in sorted({*old, *new})
        for what in ["new" if name not in old else "gone"]
        if old.get(name) != new.get(name)
    ]
    more = len(lines) - MAX_CHANGES
    return [*lines[:MAX_CHANGES], *([f"and {more} more"] if more > 0 else [])]
