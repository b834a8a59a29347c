"""May this command act for the person, and how does it change the state for them?

A program that a server started is not the person, even at a terminal: a background shell has one, too. So the ancestors
of this process decide, with a mark in the environment; if they cannot be seen, the answer is no.
"""

import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Set
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mcp_server.model.posture import PostureChange, PostureChoice
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.settings import Settings
from mcp_server.state import ledger, posture_changes
from mcp_server.state.account import NO_KEY_FOLDER
from mcp_server.state.locks import find_unseen_server
from mcp_server.state.processes import find_ancestors, get_own_pid, read_server_mark, read_start_time
from mcp_server.state.servers import load_servers
from mcp_server.state.terminal import change_state, find_unended_processes

if TYPE_CHECKING:
    from mcp_server.config.limits import Limits
    from mcp_server.policy.posture import PostureStep
    from mcp_server.state.engine.transaction import Transaction
    from mcp_server.state.store import Store

MAX_COMMAND_CHARS = 500
T = TypeVar("T")


class Barrier(NamedTuple):
    """The server that keeps this process from acting for the person, and the message for it."""

    server: int
    refusal: Refusal


# The posture is changed from here and from `calls/posture`, where a running server's prompts change it.


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
    """None if no such change waits for a confirmation, or it waited too long."""
    return change_as_person(settings, lambda tx: posture_changes.confirm_change(tx, principal, id))


def drop_posture_changes(settings: Settings, principal: str, ids: Iterable[str]) -> "list[PostureStep]":
    return change_as_person(settings, lambda tx: posture_changes.drop_changes(tx, principal, ids))


def change_as_person(settings: Settings, work: "Callable[[Transaction], T]") -> T:
    """Run a change that only the person may make, and return its result once it is durable. A program that a server
    started is refused, and the attempt is recorded."""
    if settings.secrets is None:
        barrier = find_barrier(settings)
        raise barrier.refusal if barrier else Refusal(NO_KEY_FOLDER)

    def change_or_refuse(tx: "Transaction") -> T | Barrier:
        barrier = find_barrier_among(settings, find_unended_processes(tx))
        if barrier is None:
            return work(tx)
        ledger.record_attempt(tx, settings.person, barrier.server, read_command_line())
        return barrier

    outcome = change_state(settings.database, settings.secrets, change_or_refuse)
    if isinstance(outcome, Barrier):
        raise outcome.refusal
    return outcome


def refuse_inside_server(settings: Settings, quick: bool = False) -> None:
    """Record the attempt and raise, if a server started this process. `quick` looks only at the servers of this folder
    and does nothing slow."""
    if find_barrier(settings, quick):
        change_as_person(settings, lambda _: None)


@asynccontextmanager
async def open_store_for_person(settings: Settings) -> "AsyncGenerator[Store]":
    """The state for a command that waits for the servers' answers."""
    from mcp_server.state.engine.rows import WallClock
    from mcp_server.state.ids import make_id_generator
    from mcp_server.state.store import Store

    if settings.secrets is None or find_barrier(settings):
        change_as_person(settings, lambda _: None)
    store = Store.open(settings.url, secrets=settings.secrets, clock=WallClock(), new_id=make_id_generator())
    try:
        yield store
    finally:
        await store.close()


def find_barrier(settings: Settings, quick: bool = False) -> Barrier | None:
    return find_barrier_among(settings, set() if quick else load_recorded_processes(settings), quick)


def find_barrier_among(settings: Settings, recorded: Set[tuple[object, object]], quick: bool = False) -> Barrier | None:
    """`recorded`: the processes that have this state open, as the ledger says: number, and when each began."""
    pid = get_own_pid()
    ancestors = {(one, read_start_time(one)) for one in find_ancestors(pid)}
    published = {(one.pid, one.born) for state in settings.state_folders for one in load_servers(state)}
    server = next((one for one, _ in ancestors & (published | recorded)), 0)
    if not server and not quick:
        marks = map(read_server_mark, (pid, *(one for one, _ in ancestors)))
        server = next((int(mark) for mark in marks if mark.isdigit()), 0)
    if server:
        return Barrier(server, build_started_program_refusal(server))
    hidden = find_unseen_server(settings.state)
    return None if hidden is None else Barrier(hidden, build_hidden_server_refusal(hidden))


def load_recorded_processes(settings: Settings) -> set[tuple[object, object]]:
    from mcp_server.state.reader import Reader

    with suppress(Refusal):
        if settings.database.exists():
            with Reader.open(settings.url, secrets=settings.secrets) as state:
                return {(row.fields.get("pid"), row.fields.get("born")) for row in state.find_running_processes()}
    return set()


def build_started_program_refusal(server: int) -> Refusal:
    message = f"this command was started by a menugate server (process {server}), so it cannot act for you."
    way_out = "Nothing was changed, and the attempt was recorded. Run it in a terminal of your own."
    return Refusal(Problem(Code.BLOCKED, message, way_out))


def build_hidden_server_refusal(server: int) -> Refusal:
    message = (
        f"a menugate server of this folder is running (process {server or 'unknown'}) that cannot be seen from here. "
        "It may have started this command, so this command cannot act for you."
    )
    way_out = (
        "Nothing was changed, and the attempt was recorded. Run commands for the user where the server runs, not in a "
        "container or namespace inside it."
    )
    return Refusal(Problem(Code.BLOCKED, message, way_out))


def read_command_line() -> str:
    """What was typed, shortened; if a program ran the command, that program."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    with suppress(OSError):
        words = Path("/proc/self/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    return " ".join(" ".join(words).split())[:MAX_COMMAND_CHARS].replace("`", "'")
