"""`menugate upstreams update`, and the packages that `add` and `approve` fetch: what is on this machine of a server?"""

import argparse
import asyncio
import dataclasses
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcp_server.cli.output import CliError, note, print_json, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_json, add_place, load_valid_configuration, settings_from_arguments
from mcp_server.model.upstreams import Mount, StdioTarget
from mcp_server.views.text import explain_refusals

if TYPE_CHECKING:
    from mcp_server.config.faults import ConfigFaults
    from mcp_server.config.load import Configuration
    from mcp_server.guards.redaction import Redactor
    from mcp_server.model.upstream_packages import MountPackage, PackageFacts, PackageLock
    from mcp_server.settings import Settings
    from mcp_server.views.upstream_approval import ApprovalPreview

UPDATE = """
menugate upstreams update github                   fetch its newest version, show what is different, and ask you
menugate upstreams update github --json            only show it, with its digest
menugate upstreams update github --digest 3f9a01   take over exactly what was shown with this digest
"""
WORD = "update"


def add_update(actions: CommandGroup) -> None:
    command = actions.add("update", UPDATE, run_update, "take over a newer version of a server's package")
    command.add_argument("name", metavar="NAME", help="the server's name under `mcpServers`")
    command.add_argument("--digest", metavar="HEX", help="take it over without asking, if this is still what it offers")
    add_place(command)
    add_json(command, "print what is different as JSON; takes it over only with --digest")


def fetch_packages(configuration: "Configuration", settings: "Settings", names: Collection[str]) -> None:
    """Fetch the packages of these servers that are not on this machine yet."""
    for mount in find_mounts(configuration, names):
        fetch_missing(configuration, settings, mount)


def remove_packages(configuration: "Configuration | ConfigFaults", names: Collection[str]) -> None:
    """Remove what is kept of these servers."""
    from mcp_server.state.upstream_packages import remove_package

    for mount in find_mounts(configuration, names):
        if mount.package is not None:
            remove_package(mount.package)


def find_mounts(configuration: "Configuration | ConfigFaults", names: Collection[str]) -> list[Mount]:
    """Find those of these servers that have no fault."""
    from mcp_server.config.faults import ConfigFaults

    upstreams = None if isinstance(configuration, ConfigFaults) else configuration.library.config.upstreams
    return [mount for mount in upstreams.mounts if mount.name in names] if upstreams else []


def fetch_missing(configuration: "Configuration", settings: "Settings", mount: Mount) -> Mount:
    from mcp_server.state.upstream_packages import put_lock
    from mcp_server.views.upstream_packages import describe_facts, describe_fetched

    if mount.package is None or mount.package.lock is not None:
        return mount
    lock, facts = fetch(configuration, settings, mount)
    package = put_lock(mount.package, lock)
    for sentence in (*describe_fetched(package), *describe_facts(package, facts, time.time())):
        note(sentence)
    return dataclasses.replace(mount, package=package)


def fetch(configuration: "Configuration", settings: "Settings", mount: Mount) -> "tuple[PackageLock, PackageFacts]":
    """Install what the mount's command line asks for, or raise `CliError`; and ask its registry about it."""
    from mcp_server.compose import build_guards
    from mcp_server.config.folders import prepare_folders
    from mcp_server.upstreams.packages.facts import find_facts
    from mcp_server.upstreams.packages.fetch import fetch_package
    from mcp_server.upstreams.packages.installers import PackageNotFetched

    package, target = mount.package, mount.target
    assert package is not None and isinstance(target, StdioTarget)
    prepare_folders(settings)

    async def run() -> "tuple[PackageLock, PackageFacts]":
        commands = build_guards(configuration, settings).commands
        variables = dict(settings.installer_variables)
        try:
            lock = await fetch_package(commands, package, variables, target.env)
            return lock, await find_facts(commands, package, lock, variables)
        finally:
            await commands.close()

    note(f"Fetching {' '.join(package.request.specs)} ({package.request.source}) …")
    try:
        return asyncio.run(run())
    except PackageNotFetched as wrong:
        raise CliError(f"nothing was changed, because the package of {mount.name} was not fetched: {wrong}.") from None


def run_update(arguments: argparse.Namespace) -> int:
    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.cli.upstream_approval import build_preview, build_redactor, find_mount, read_catalogue
    from mcp_server.guards.own_memory import forbid_memory_reading

    settings = settings_from_arguments(arguments)
    with explain_refusals():
        refuse_inside_server(settings)  # first: a program must not start servers for you
    configuration = load_valid_configuration(arguments, settings)
    mount = find_mount(configuration, arguments.name)
    package = find_kept_package(mount)
    forbid_memory_reading()
    lock, about = find_update(configuration, settings, mount, package, arguments.digest)
    if lock is None:
        say_prose(f"{mount.name} is up to date: {describe_version(package.lock)}.")
        return 0
    updated = dataclasses.replace(mount, package=replace(package, lock=lock))
    with explain_refusals():
        catalogue = asyncio.run(read_catalogue(configuration, settings, updated))
    preview = build_preview(configuration, settings, updated, catalogue)
    show_update(arguments, package, preview, about, build_redactor(configuration, settings))
    if arguments.digest is None and arguments.json:
        return 0
    take_over(arguments, settings, package, preview)
    note(f"{mount.name} is {describe_version(lock)} from its next start on.")
    return 0


def find_kept_package(mount: Mount) -> "MountPackage":
    from mcp_server.views.upstream_packages import describe_unkept

    if mount.package is None:
        reason = describe_unkept(mount) or "its entry names no package"
        raise CliError(f"there is nothing to update for {mount.name}: {reason}")
    return mount.package


def find_update(
    configuration: "Configuration", settings: "Settings", mount: Mount, package: "MountPackage", digest: str | None
) -> "tuple[PackageLock | None, list[str]]":
    """Fetch the newest version that the entry allows. With a digest, it is the one that you were shown.
    Return it, or None if there is no other, and what to know about it."""
    from mcp_server.state.upstream_packages import (
        NEXT,
        ContentsChanged,
        check_contents,
        load_lock,
        put_lock,
        remove_place,
    )
    from mcp_server.views.upstream_packages import describe_facts

    if digest is not None and (shown := load_lock(package.folder / NEXT)) is not None:
        return shown, []
    lock, facts = fetch(configuration, settings, mount)
    if package.lock is not None and lock.packages == package.lock.packages:
        try:
            check_contents(package)
        except ContentsChanged:
            note("Its files on this machine were changed since they were fetched; these are new.")
        else:
            remove_place(package, lock.folder)
            return None, []
    put_lock(package, lock, NEXT)
    return lock, describe_facts(package, facts, time.time())


def show_update(
    arguments: argparse.Namespace,
    before: "MountPackage",
    preview: "ApprovalPreview",
    about: Sequence[str],
    redactor: "Redactor",
) -> None:
    from mcp_server.cli.upstream_approval import show_preview, to_json
    from mcp_server.views.upstream_packages import list_package_changes

    after = preview.mount.package
    assert after is not None and after.lock is not None
    changes = list_package_changes(before.lock, after.lock)
    if arguments.json:
        versions = {"from": before.lock.version if before.lock else None, "to": after.lock.version}
        print_json(redactor.redact_value({**to_json(preview), "update": versions, "packages": changes, "about": about}))
    elif arguments.digest is None:
        show_versions(before.lock, after.lock, changes)
        for sentence in about:
            say_prose(redactor.redact(sentence), indent="  ")
        show_preview(preview, redactor)


def show_versions(before: "PackageLock | None", after: "PackageLock", changes: Sequence[str]) -> None:
    say((f"{describe_version(before)} → {after.version}" if before else describe_version(after), "bold"))
    for change in changes:
        say(f"  {change}")
    say("")


def take_over(
    arguments: argparse.Namespace, settings: "Settings", package: "MountPackage", preview: "ApprovalPreview"
) -> None:
    """Ask you, then replace the old version with the new one."""
    from mcp_server.cli.upstream_approval import confirm, keep_approval
    from mcp_server.state.upstream_packages import drop_next, put_lock, remove_places

    lock = preview.mount.package and preview.mount.package.lock
    assert lock is not None
    try:
        confirm(preview, arguments.digest, WORD)
    except CliError:
        # A script shows first and takes over later; what you were asked about is settled.
        if arguments.digest is None:
            drop_next(package)
            remove_places(package, {package.lock.folder} if package.lock else ())
        raise
    # The lock first: servers that run look at both when they see the approval change.
    put_lock(package, lock)
    keep_approval(settings, preview)


def describe_version(lock: "PackageLock | None") -> str:
    return f"{lock.packages[0].name} {lock.version}" if lock else "not fetched"
