"""May this command act for you, and how does it change the state?

A program that a server started may not, even at a terminal, because a background shell has one too. We look at the
ancestors of this process and at a mark in their environment; if a server is hidden from us, we refuse.
"""

import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar

from msgspec.structs import replace

from mcp_server.model.posture import PostureChange, PostureChoice
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.settings import Settings
from mcp_server.state import ledger, posture_changes
from mcp_server.state.account import NO_KEY_FOLDER
from mcp_server.state.locks import find_unseen_server
from mcp_server.state.processes import find_ancestors, get_own_pid, read_server_mark
from mcp_server.state.servers import load_servers
from mcp_server.state.terminal import change_state
from mcp_server.state.verify import find_unended_starts

if TYPE_CHECKING:
    from mcp_server.config.limits import Limits
    from mcp_server.policy.posture import PostureStep
    from mcp_server.state.engine.rows import Row
    from mcp_server.state.engine.transaction import Transaction
    from mcp_server.state.store import Store

MAX_COMMAND_CHARS = 500
RECORDED = "Nothing was changed, and the attempt was recorded."
UNRECORDED = "Nothing was changed; the attempt could not be recorded."
T = TypeVar("T")


class Barrier(NamedTuple):
    """The server that started this process, or may have, and the refusal."""

    server: int
    refusal: Refusal


# The posture is changed here and in `calls/posture`, for a running server's prompts.


def request_posture_change(
    settings: Settings, limits: "Limits", principal: str, change: PostureChange
) -> PostureChoice:
    if problem := limits.find_ceiling_problem(principal, change):
        raise Refusal(problem)

    request = partial(posture_changes.request_posture_change, principal=principal, change=change)
    choice = change_as_person(settings, request)
    assert isinstance(choice, PostureChoice), "no epoch was given that could have passed"
    return choice


def confirm_posture_change(settings: Settings, principal: str, id: str) -> PostureChoice | None:
    """Confirm a change; None if no such change waits for it, or it expired."""
    return change_as_person(settings, lambda tx: posture_changes.confirm_change(tx, principal, id))


def drop_posture_changes(settings: Settings, principal: str, ids: Iterable[str]) -> "list[PostureStep]":
    return change_as_person(settings, lambda tx: posture_changes.drop_changes(tx, principal, ids))


def change_as_person(settings: Settings, work: "Callable[[Transaction], T]") -> T:
    """Run a change that only you may make, and return its result once it is durable. Refuse a program that a server
    started, and record the attempt."""
    if settings.secrets is None:
        refuse_inside_server(settings)
        raise Refusal(NO_KEY_FOLDER)

    def change_or_refuse(tx: "Transaction") -> T | Barrier:
        barrier = find_barrier_among(settings, find_unended_starts(tx))
        return record_attempt(settings, barrier, tx) if barrier else work(tx)

    outcome = change_state(settings.database, settings.secrets, change_or_refuse)
    if isinstance(outcome, Barrier):
        raise outcome.refusal
    return outcome


def refuse_program(settings: Settings, barrier: Barrier) -> NoReturn:
    """Record the attempt and raise, without looking again: the program may have removed the barrier since."""
    try:
        if settings.secrets is None:
            raise Refusal(NO_KEY_FOLDER)
        change_state(settings.database, settings.secrets, partial(record_attempt, settings, barrier))
    except Refusal:
        problem = barrier.refusal.problem
        raise Refusal(replace(problem, way_out=problem.way_out.replace(RECORDED, UNRECORDED))) from None
    raise barrier.refusal


def record_attempt(settings: Settings, barrier: Barrier, tx: "Transaction") -> Barrier:
    ledger.record_attempt(tx, settings.person, barrier.server, read_command_line())
    return barrier


def refuse_inside_server(settings: Settings, quick: bool = False) -> None:
    """Record the attempt and raise, if a server started this process. `quick` looks only at the servers of this folder
    and does nothing slow."""
    if barrier := find_barrier(settings, quick):
        refuse_program(settings, barrier)


@asynccontextmanager
async def open_store_for_person(settings: Settings) -> "AsyncGenerator[Store]":
    """Open the state for a command that waits for answers of servers."""
    from mcp_server.state.engine.rows import WallClock
    from mcp_server.state.ids import make_id_generator
    from mcp_server.state.store import Store

    refuse_inside_server(settings)
    if settings.secrets is None:
        raise Refusal(NO_KEY_FOLDER)
    store = Store.open(settings.url, secrets=settings.secrets, clock=WallClock(), new_id=make_id_generator())
    try:
        yield store
    finally:
        await store.close()


def find_barrier(settings: Settings, quick: bool = False) -> Barrier | None:
    return find_barrier_among(settings, () if quick else load_unended_starts(settings), quick)


def find_barrier_among(settings: Settings, starts: "Sequence[Row]", quick: bool = False) -> Barrier | None:
    """`starts`: the start rows of the processes that have this state open, as far as its ledger says."""
    pid = get_own_pid()
    ancestors = find_ancestors(pid)
    servers = {(row.fields.get("pid"), row.fields.get("born")) for row in starts}
    servers |= {(one.pid, one.born) for state in settings.state_folders for one in load_servers(state)}
    server = next((one for one in ancestors.items() if one in servers), (0, ""))[0]
    if not server and not quick:
        marks = map(read_server_mark, (pid, *ancestors))
        server = next((int(mark) for mark in marks if mark.isdigit()), 0)
    if server:
        return Barrier(server, build_started_program_refusal(server))
    hidden = find_unseen_server(settings.state)
    return None if hidden is None else Barrier(hidden, build_hidden_server_refusal(hidden))


def load_unended_starts(settings: Settings) -> "Sequence[Row]":
    from mcp_server.state.reader import Reader

    with suppress(Refusal):
        if settings.database.exists():
            with Reader.open(settings.url, secrets=settings.secrets) as state:
                return state.find_unended_processes(running=True)
    return ()


def build_started_program_refusal(server: int) -> Refusal:
    message = f"this command was started by a menugate server (process {server}), so it cannot act for you."
    return Refusal(Problem(Code.BLOCKED, message, f"{RECORDED} Type it in a terminal of your own."))


def build_hidden_server_refusal(server: int) -> Refusal:
    message = (
        f"a menugate server for this folder is running (process {server or 'unknown'}), but not where this command can "
        "see it. It may have started this command, so this command cannot act for you."
    )
    way_out = f"{RECORDED} Type it where the server runs, not in a container or namespace inside it."
    return Refusal(Problem(Code.BLOCKED, message, way_out))


def read_command_line() -> str:
    """Return the command line that was typed, shortened; if a program called us, its own."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    with suppress(OSError):
        words = Path("/proc/self/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    return " ".join(" ".join(words).split())[:MAX_COMMAND_CHARS].replace("`", "'")
