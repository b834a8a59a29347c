"""Is everything in order here, and what can be fixed? A check changes nothing.

A finding has a fix only if every user would choose it and it loses no data.
"""

import asyncio
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from mcp_server.calls.health import build_health_response
from mcp_server.calls.posture import PostureChanges
from mcp_server.compose import build_guards
from mcp_server.config.faults import ConfigFaults
from mcp_server.config.load import Configuration, load_configuration
from mcp_server.guards.search.ripgrep_run import find_ripgrep
from mcp_server.guards.spill import ONE_DAY_NS, SPILLED, Spill
from mcp_server.installation import describe_installation, find_linked_files, find_places_in_workspace
from mcp_server.model.posture import Posture, Profile
from mcp_server.model.processes import Command
from mcp_server.model.results import Refusal
from mcp_server.model.text import format_count
from mcp_server.model.tool_packs import Pack
from mcp_server.model.tools import Demand, Effect
from mcp_server.policy.health import Grade, HealthFinding, format_verdict, list_faults, list_general_faults
from mcp_server.policy.phrases import find_narrowed_posture
from mcp_server.reload import find_server_differences
from mcp_server.settings import BuildError, Settings
from mcp_server.state.engine.disk import FULL, is_disk_full
from mcp_server.state.keys import describe_unfit_keys
from mcp_server.state.location import EXCHANGED, OF_ANOTHER
from mcp_server.state.servers import describe_unreadable_folder
from mcp_server.state.terminal import recover_state
from mcp_server.views.status import (
    NO_RIPGREP,
    describe_configuration,
    describe_key_lifetime,
    describe_path_guard,
    describe_upstreams,
    format_upstreams,
)

if TYPE_CHECKING:
    from mcp_server.state.reader import Reader

MAX_SHOWN, LOCK_SECONDS, OTHERS = 5, 1.0, 0o077


def examine(
    settings: Settings, packs: Sequence[Pack] = (), progress: Callable[[int, int], None] | None = None
) -> list[HealthFinding]:
    """Run every check; `progress` is called while the ledger is checked."""
    blocked = list(check_folder_access(settings))
    return [
        *check_configuration(settings, packs),
        *check_key_folder(settings),
        *(blocked or (*check_private_places(settings), *check_lock(settings), *check_state(settings, packs, progress))),
        *check_guards(settings),
        *check_sandbox(settings, packs),
        *(
            HealthFinding("servers", says, Grade.FAULT if server.fault else Grade.NOTE)
            for server, says in find_server_differences(settings)
        ),
        *(() if blocked else check_leftovers(settings)),
    ]


def mend(findings: Sequence[HealthFinding]) -> list[HealthFinding]:
    """Fix what can be fixed; return the fixed findings, and as faults those that could not be fixed."""
    results: list[HealthFinding] = []
    for finding in findings:
        if finding.mend is None:
            continue
        try:
            finding.mend()
        except (OSError, Refusal) as error:
            results.append(HealthFinding(finding.what, f"{finding.says} It could not be fixed: {error}", Grade.FAULT))
        else:
            results.append(HealthFinding(finding.what, f"{finding.says} Fixed: {finding.cure}."))
    return results


def examine_and_report(settings: Settings, packs: Sequence[Pack], fix: bool = False) -> tuple[str, list[str], bool]:
    """Return the findings as text, the remaining faults, and whether the state can be used; with `fix`, fix first."""
    findings = examine(settings, packs)
    lines = [f"{finding.grade}: {finding.what}: {finding.says}" for finding in (mend(findings) if fix else ())]
    findings = examine(settings, packs) if fix else findings
    lines += [
        f"{finding.grade}: {finding.what}: {finding.says}" for finding in findings if finding.grade is not Grade.GOOD
    ]
    faults = [f"{finding.what}: {finding.says}" for finding in list_general_faults(findings)]
    fixable = any(finding.mend for finding in findings)
    lines.append(format_verdict(findings))
    return (
        "\n".join(lines) + (" `menugate doctor fix` fixes what can be fixed safely." if fixable else ""),
        faults,
        may_open_state(findings),
    )


async def examine_while_serving(
    configuration: Configuration, settings: Settings, changes: PostureChanges, fix: bool
) -> str:
    """Check from inside a running server, and respond to the faults."""
    report, faults, writable = await anyio.to_thread.run_sync(examine_and_report, settings, configuration.packs, fix)
    if not (fix and faults and writable):
        return report
    response = build_health_response(changes, configuration.library.config, settings.person)
    return f"{report}\n{await response.respond_to_faults(faults)}"


def may_open_state(findings: Sequence[HealthFinding]) -> bool:
    """Whether the state may be opened for writing: that moves a damaged file aside, which a check must not do."""
    return not any(fault.what in ("state file", "lock", "disk") for fault in list_faults(findings))


def find_usual_posture(settings: Settings, packs: Sequence[Pack]) -> Posture:
    """The posture before anything is chosen."""
    with suppress(BuildError):
        if isinstance(configuration := load_configuration(settings, packs), Configuration):
            return configuration.posture.cap_profile(configuration.policy.ceiling)
    return Posture()


def check_configuration(settings: Settings, packs: Sequence[Pack]) -> Iterator[HealthFinding]:
    try:
        configuration = load_configuration(settings, packs)
    except BuildError as error:
        yield HealthFinding("menus and rules", str(error), Grade.FAULT)
        return
    if isinstance(configuration, ConfigFaults):
        yield from (HealthFinding("menus and rules", str(fault), Grade.FAULT) for fault in configuration)
        return
    policy = configuration.policy
    counts = describe_configuration(len(policy.menus.modes), len(policy.tools), len(policy.rules.every))
    yield HealthFinding("menus and rules", counts)
    if upstreams := describe_upstreams(configuration):
        grade = Grade.FAULT if upstreams["broken"] else Grade.NOTE if upstreams["warnings"] else Grade.GOOD
        yield HealthFinding("upstreams", format_upstreams(upstreams), grade, isolated=True)


def check_folder_access(settings: Settings) -> Iterator[HealthFinding]:
    """Find places that cannot hold state, because another account owns them or they are not folders."""
    for folder in settings.private_folders:
        existing = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
        if not (existing.is_dir() and os.access(existing, os.R_OK | os.W_OK | os.X_OK)):
            says = f"{existing} is not a folder that you can read and write, and menugate keeps its state in {folder}."
            yield HealthFinding("state file", says, Grade.FAULT)


def check_key_folder(settings: Settings) -> Iterator[HealthFinding]:
    if settings.secrets is None:
        says = (
            "No writable folder can keep this account's keys, so a posture that you choose applies to no server. Set "
            "MENUGATE_STATE_HOME to a folder that you can write to, for your commands and for the server."
        )
        yield HealthFinding("keys", says, Grade.FAULT, isolated=True)


def check_private_places(settings: Settings) -> Iterator[HealthFinding]:
    """Check that only this account can read and write its private files."""
    if settings.state.is_symlink():
        says = f"{settings.state} is a link; the state must be in a real folder."
        yield HealthFinding("state folder", says, Grade.FAULT)
        return
    if not settings.state.is_dir():
        yield HealthFinding("state folder", "menugate has not run here yet.", Grade.NOTE)
        return
    private = [*settings.state_folders, *settings.private_folders, settings.database, settings.state / "http.token"]
    private += [folder / name for folder in settings.private_folders for name in ("ledger.key", "request-state.key")]
    exposed = [path for path in private if path.exists() and path.stat().st_mode & OTHERS]
    for path in exposed:
        says = f"{path} can be read or written by other users."
        yield HealthFinding(
            "state folder",
            says,
            Grade.FAULT,
            "only you can use it now",
            lambda path=path: close_to_others(path),
        )
    if not exposed:
        yield HealthFinding("state folder", f"{settings.state}, readable and writable by you only")
    if says := describe_unreadable_folder(settings.state):
        yield HealthFinding("servers", says, Grade.FAULT)
    yield from (HealthFinding("keys", says, Grade.FAULT) for says in describe_unfit_keys(settings.secrets))
    if settings.keys_last:
        says = f"{describe_key_lifetime(settings.keys_last)}."
        yield HealthFinding("keys", says, Grade.NOTE)


def close_to_others(path: Path) -> None:
    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~OTHERS)


def check_lock(settings: Settings) -> Iterator[HealthFinding]:
    """Check whether a process keeps the state locked, for example one that is suspended."""
    if not (settings.state / "state.lock").exists():
        return
    from mcp_server.state.engine.sqlite import DatabaseLock

    lock = DatabaseLock(settings.database.with_suffix(".lock"))
    try:
        lock.acquire(LOCK_SECONDS)
    except Refusal as refused:
        yield HealthFinding("lock", f"{refused.problem.message} {refused.problem.way_out}", Grade.FAULT)
    else:
        lock.release()
    finally:
        lock.close()


def check_state(
    settings: Settings, packs: Sequence[Pack], progress: Callable[[int, int], None] | None
) -> Iterator[HealthFinding]:
    from mcp_server.state.engine.sqlite import find_file_damage
    from mcp_server.state.reader import Reader

    if settings.state.is_dir() and is_disk_full(settings.state):
        yield HealthFinding("disk", FULL.format(settings.state), Grade.FAULT)
    missing, recover = not settings.database.exists(), partial(recover_state, settings.database, settings.secrets)
    if missing and settings.foreign_state_file and settings.foreign_state_file.exists():
        yield HealthFinding("state file", OF_ANOTHER.format(settings.foreign_state_file), Grade.NOTE)
    if missing and not (settings.state / "ledger.anchor").exists():
        return
    if missing:
        says = "the state file is gone, but its anchor is still there."
        yield HealthFinding("state file", says, Grade.FAULT, BEGUN_ANEW, recover)
        return
    if damage := find_file_damage(settings.database):
        says = f"the state file is damaged ({damage})."
        yield HealthFinding("state file", says, Grade.FAULT, BEGUN_ANEW, recover)
        return
    try:
        with Reader.open(settings.url, secrets=settings.secrets) as state:
            yield from check_state_file(settings, packs, state)
            yield from check_ledger(settings, state, progress)
    except Refusal as refused:
        yield HealthFinding("state file", f"{refused.problem.message} {refused.problem.way_out}", Grade.FAULT)


BEGUN_ANEW = "it was moved aside and a new one started; only reading is allowed until you choose a posture"


def check_state_file(settings: Settings, packs: Sequence[Pack], state: "Reader") -> Iterator[HealthFinding]:
    size = settings.database.stat().st_size / 1024
    if state.is_exchanged():
        yield HealthFinding("state file", EXCHANGED, Grade.FAULT)
    else:
        yield HealthFinding("state file", f"{settings.database}, {size:,.0f} KB, intact")
    if lost := state.describe_loss():
        yield HealthFinding("state file", f"{lost}.", Grade.NOTE)
    if low := find_narrowed_posture(state.load_choice(settings.person), find_usual_posture(settings, packs), lost):
        yield HealthFinding("posture", low.says, Grade.NOTE, commands=low.commands)
    for row in state.find_unended_processes(running=False):
        says = f"process {row.fields.get('pid')} ended unexpectedly; its work may be half done."
        yield HealthFinding("servers", says, Grade.NOTE)


def check_ledger(
    settings: Settings, state: "Reader", progress: Callable[[int, int], None] | None
) -> Iterator[HealthFinding]:
    report = state.verify(progress)
    for seq, message in report.faults[:MAX_SHOWN]:
        yield HealthFinding("ledger", f"{f'row {seq}: ' if seq else ''}{message}", Grade.FAULT)
    if len(report.faults) > MAX_SHOWN:
        yield HealthFinding(
            "ledger", f"and {len(report.faults) - MAX_SHOWN} more; `menugate audit verify` lists them all", Grade.FAULT
        )
    if report.ok:
        rows, checkpoints = format_count(report.rows, "row"), format_count(report.checkpoints, "signed checkpoint")
        yield HealthFinding("ledger", f"{rows}, {checkpoints}, intact")
    yield from (HealthFinding("ledger", note, Grade.NOTE) for note in report.notes)
    if report.ok and report.unanchored:
        rows = format_count(report.unanchored, "row")
        says = f"{rows} at the end not anchored yet, as happens after a kill."
        recover = partial(recover_state, settings.database, settings.secrets)
        yield HealthFinding("ledger", says, Grade.NOTE, "anchored now", recover)


def check_guards(settings: Settings) -> Iterator[HealthFinding]:
    paths, by_kernel = describe_path_guard()
    yield HealthFinding("paths", paths, Grade.GOOD if by_kernel else Grade.NOTE)
    program = find_ripgrep(settings.search_path, settings.workspace)
    without_ripgrep = HealthFinding("search", f"plain Python, because ripgrep {NO_RIPGREP}", Grade.NOTE)
    yield HealthFinding("search", str(program)) if program else without_ripgrep
    places, linked = find_places_in_workspace(settings), len(find_linked_files())
    yield HealthFinding(
        "runs from", describe_installation(places, linked), Grade.NOTE if places or linked else Grade.GOOD
    )


async def try_sandbox(configuration: Configuration, settings: Settings) -> tuple[str, str]:
    """Return which sandbox is available, in words, and whether that is `good`, a `note` or a `fault`. One command is
    run in it with the mounts of a real call, made from this workspace and these settings."""
    commands = build_guards(configuration, settings).commands
    posture = configuration.posture.cap_profile(configuration.policy.ceiling)
    profile = Profile.TRUSTED if posture.profile.covers(Profile.TRUSTED) else Profile.NORMAL
    says = await commands.chooser.describe_sandbox()
    if not commands.chooser.name:
        return says, "note"
    try:
        result = await commands.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), profile).run(
            Command(("true",), seconds=10.0)
        )
    except Refusal as refused:
        return f"{says}; commands do not run in it: {refused.problem.message}", "fault"
    finally:
        await commands.close()
    return (says, "good") if result.code == 0 else (f"{says}; `true` ends in it with exit code {result.code}.", "fault")


def check_sandbox(settings: Settings, packs: Sequence[Pack]) -> Iterator[HealthFinding]:
    """Try the sandbox for commands; a note if there is none."""
    try:
        configuration = load_configuration(settings, packs)
    except BuildError:
        return
    if isinstance(configuration, Configuration):
        says, grade = asyncio.run(try_sandbox(configuration, settings))
        yield HealthFinding("sandbox", says, Grade(grade))


def check_leftovers(settings: Settings) -> Iterator[HealthFinding]:
    """Find files that killed servers left behind."""
    spill = Spill(settings.state / "spill")
    old = [
        path for path in find_files(settings.state / "spill", "*") if path.name.endswith(SPILLED) and is_day_old(path)
    ]
    if old:
        says = f"{format_count(len(old), 'saved result')} older than a day."
        yield HealthFinding(
            "leftovers", says, Grade.NOTE, "deleted", lambda: spill.remove_old_files(ONE_DAY_NS, time.time_ns())
        )
    drafts = [path for path in find_half_written_files(settings) if is_day_old(path)]
    if drafts:
        where = " and ".join(map(str, settings.private_folders))
        says = f"{format_count(len(drafts), 'half-written file')} in {where}."
        yield HealthFinding("leftovers", says, Grade.NOTE, "deleted", lambda: [draft.unlink() for draft in drafts])
    aside = find_files(settings.state, "*.corrupt-*")
    if aside:
        size = sum(path.stat().st_size for path in aside)
        says = f"{format_count(len(aside), 'damaged state file')} ({size / 1024:,.0f} KB), kept as evidence."
        yield HealthFinding("leftovers", says, Grade.NOTE)
    if not (old or drafts or aside):
        yield HealthFinding("leftovers", "none")


def find_half_written_files(settings: Settings) -> list[Path]:
    names = (".ledger.key-*", ".http.token-*", ".request-state.key-*", ".*.tmp")
    return sorted({path for folder in settings.private_folders for name in names for path in find_files(folder, name)})


def find_files(folder: Path, pattern: str) -> list[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return []
    return sorted(path for path in folder.glob(pattern) if path.is_file() and not path.is_symlink())


def is_day_old(path: Path) -> bool:
    """Whether a file is so old that no process can still be writing it."""
    return time.time_ns() - path.lstat().st_mtime_ns > ONE_DAY_NS
