"""`menugate pause`, `next` and `stop`: pause, resume or end the runs of this workspace."""

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcp_server.cli.ledger import parse_whole_number
from mcp_server.cli.output import CliError, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_place, settings_from_arguments
from mcp_server.cli.servers import load_judgement_for_choice
from mcp_server.cli.target import (
    NoStateYet,
    add_target_flags,
    find_target,
    give_order_and_wait,
    write_to_state,
)
from mcp_server.model.text import format_count
from mcp_server.views.text import format_one_line

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_server.calls.stops import StopAnswers
    from mcp_server.model.sessions import Hold
    from mcp_server.settings import Settings
    from mcp_server.state.engine.rows import StoredSession
    from mcp_server.state.engine.transaction import Transaction
    from mcp_server.state.running_calls import RunningWork

PAUSE = """
menugate pause                           pause all your runs; they keep their state
menugate pause --reason "back at two"    and tell their models why
menugate pause --session SESSION         pause one session; `menugate summary` shows its id
"""
NEXT = """
menugate next      resume; in `assisted`, for one unit of work
menugate next 5    in `assisted`, for five units
"""
STOP = """
menugate stop                      end all runs and everything they started, and clear their state
menugate stop --session SESSION    only this session
menugate stop --principal NAME     only the runs of this principal
"""
UNTRUE = (", so the call could not be recorded", "; nothing ran", "; nothing was changed")
"""Parts of the messages about an unwritable state that are not true for `stop`."""
MAX_UNITS = 1000
MAX_REASON_CHARS = 200
REASON_HELP = "the reason, shown to the models whose calls are refused"


def add(commands: CommandGroup) -> None:
    command = commands.add("pause", PAUSE, run_pause)
    command.add_argument("--reason", metavar="TEXT", default="", help=REASON_HELP)
    add_target_flags(command)
    add_place(command)
    command = commands.add("next", NEXT, run_next)
    command.add_argument(
        "units",
        nargs="?",
        type=parse_whole_number,
        default=1,
        metavar="UNITS",
        help="how many units of work, in `assisted` (default: 1)",
    )
    add_target_flags(command, "yours, and everyone's after `stop`")
    add_place(command)
    command = commands.add("stop", STOP, run_stop)
    command.add_argument("--reason", metavar="TEXT", default="", help=REASON_HELP)
    add_target_flags(command, "everyone's")
    add_place(command)


def run_pause(arguments: argparse.Namespace) -> int:
    from mcp_server.model.sessions import Hold, Holder
    from mcp_server.state import runs, stops
    from mcp_server.state.ids import make_id_generator

    settings = settings_from_arguments(arguments)
    principal, session = find_target(arguments, settings)
    hold = Hold(Holder.PERSON, format_reason(arguments, "the user paused it"))
    pause_session = partial(runs.pause_session, principal=principal, session=session or "", hold=hold)
    order = stops.StopOrder(make_id_generator()(), principal, session, ends=False, reason=hold.reason, everybody=True)
    stored_hold, answers = give_order_and_wait(settings, lambda tx: (pause_session(tx), stops.give_order(tx, order)))
    reason = format_one_line(stored_hold.reason)
    say_prose(f"Paused {describe_runs(session)}. Models see the reason: {reason}. `menugate next` resumes them.")
    other_work = tuple(words for _, words in find_running_work(find_other_states(settings)))
    return show_answers(
        replace(answers, running=(*answers.running, *other_work)), "Still running; `menugate stop` ends these"
    )


def run_next(arguments: argparse.Namespace) -> int:
    from mcp_server.state import runs

    if not 1 <= arguments.units <= MAX_UNITS:
        raise CliError(f"the number of units must be from 1 to {MAX_UNITS}, not {arguments.units}.", code=2)
    settings = settings_from_arguments(arguments)
    principal, session = find_target(arguments, settings)

    def resume_sessions(tx: "Transaction") -> "list[Hold]":
        lifted_holds = runs.resume_session(tx, principal, session, arguments.units)
        if is_for_everybody(arguments):
            # Resume everyone whom `stop` stopped; a pause that another principal asked for stays.
            others = {key[0] for key, hold in runs.load_holds(tx).items() if hold.stopped}
            lifted_holds += [hold for other in sorted(others) for hold in runs.resume_session(tx, other, None)]
        return lifted_holds

    lifted_holds = write_to_state(settings, resume_sessions)
    reasons = format_one_line("; ".join(dict.fromkeys(hold.reason for hold in lifted_holds)))
    say_prose(
        f"Resumed {describe_runs(session)}. "
        + (f"The reason for the pause was: {reasons}." if reasons else "Nothing was paused.")
    )
    return 0


def run_stop(arguments: argparse.Namespace) -> int:
    from mcp_server.state import runs, sessions, stops
    from mcp_server.state.ids import make_id_generator

    settings = settings_from_arguments(arguments)
    principal, session = find_target(arguments, settings)
    reason, run = format_reason(arguments, "the user stopped it"), make_id_generator()()
    everybody = is_for_everybody(arguments)
    token_principals = find_token_principals(arguments, settings) if everybody else frozenset[str]()
    order_for = "" if everybody else principal
    order = stops.StopOrder(make_id_generator()(), order_for, session, ends=True, reason=reason, everybody=True)

    def stop_sessions(tx: "Transaction") -> "list[StoredSession]":
        recorded = {stored.session.principal for stored in sessions.load_sessions(tx)} if everybody else set[str]()
        principals = sorted({principal, *token_principals, *recorded})
        return [stored for name in principals for stored in runs.stop_runs(tx, name, session, run, reason)]

    try:
        stopped_sessions, answers = give_order_and_wait(
            settings, lambda tx: (stop_sessions(tx), stops.give_order(tx, order))
        )
    except NoStateYet as wrong:
        if not everybody:
            raise CliError(f"{wrong} `menugate stop` without options ends everything, recorded or not.") from None
        return end_unwritten(settings, str(wrong))
    if answers.unwritten and answers.silent and everybody:
        return end_unwritten(settings, f"{answers.unwritten.message} {answers.unwritten.way_out}")
    say_stopped(session, len({stored.session.id for stored in stopped_sessions}))
    stopped_pids, silent_pids, ended = end_by_signal(find_other_states(settings) if everybody else ())
    if not (answers.ended or answers.running or answers.silent or stopped_pids or silent_pids):
        say("Nothing was running.")
    code = show_answers(replace(answers, ended=(*answers.ended, *ended)), "Asked to end, but still running")
    if stopped_pids:
        servers = format_count(len(stopped_pids), "server with other keys", "servers with other keys")
        say_prose(f"Stopped {servers} with a signal: {format_pids(stopped_pids)}.")
        say_prose(
            "To resume there, type `menugate next` with the MENUGATE_STATE_HOME that the server was started with."
        )
    return 1 if report_silent_servers(silent_pids) else code


def say_stopped(session: str | None, cleared: int) -> None:
    memory = f"; cleared the state of {format_count(cleared, 'session')}" if cleared else ""
    say_prose(f"Stopped {describe_runs(session)}{memory}. `menugate next` lets new runs start.")


def end_unwritten(settings: "Settings", why: str) -> int:
    """End everything with a signal to each server, because the stop cannot be recorded."""
    from mcp_server.calls.stops import StopAnswers
    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.state.account import STOP_HINT

    refuse_inside_server(settings)
    stopped_pids, silent_pids, ended = end_by_signal(settings.all_state_folders)
    for words in (*UNTRUE, STOP_HINT):
        why = why.replace(words, "")
    say_prose(f"The stop could not be recorded: {why}")
    show_answers(StopAnswers(ended=tuple(ended)), "")
    if stopped_pids:
        say_prose(f"Stopped {format_count(len(stopped_pids), 'server')} with a signal: {format_pids(stopped_pids)}.")
        say_prose("New calls are refused until the stop is recorded. Fix the cause, then type `menugate next`.")
    if not (report_silent_servers(silent_pids) or stopped_pids):
        say("No server is running here.")
    return 1


def end_by_signal(states: "Sequence[Path]") -> tuple[list[int], list[int], list[str]]:
    """Signal the servers of this account; return those that ended their work, those that did not answer, and what
    ended."""
    from mcp_server.calls.stops import ANSWER_SECONDS
    from mcp_server.state.servers import stop_servers_by_signal

    running = find_running_work(states)
    stopped_pids, silent_pids = stop_servers_by_signal(states, ANSWER_SECONDS)
    return stopped_pids, silent_pids, [words for work, words in running if work.server in stopped_pids]


def find_other_states(settings: "Settings") -> "list[Path]":
    """Find the state folders of servers that use other keys: an order cannot reach them, but a signal can."""
    return [folder for folder in settings.all_state_folders if folder != settings.state]


def find_running_work(states: "Sequence[Path]") -> "list[tuple[RunningWork, str]]":
    """Return what is running there, with a description of each."""
    from mcp_server.cli.status import describe_work
    from mcp_server.state.running_calls import read_running_calls
    from mcp_server.views.status import work_to_json

    return [(work, describe_work(work_to_json(work))) for work in read_running_calls(states)[1]]


def format_pids(pids: list[int]) -> str:
    return ", ".join(map(str, pids))


def report_silent_servers(pids: "Iterable[object]") -> bool:
    for pid in (silent := list(pids)):
        say_prose(f"The server with process id {pid} did not answer and may still be running. `kill -9 {pid}` ends it.")
    return bool(silent)


def is_for_everybody(arguments: argparse.Namespace) -> bool:
    """Whether `stop` ends everything that runs here: it does if no principal and no session is named."""
    return arguments.principal is None and arguments.session is None


def find_token_principals(arguments: argparse.Namespace, settings: "Settings") -> frozenset[str]:
    """Return the principals with a token; none if the files have faults, because `stop` must still work."""
    try:
        configuration = load_judgement_for_choice(arguments, settings).configuration
    except CliError:
        return frozenset()
    return frozenset(token.principal for token in configuration.library.config.tokens)


def show_answers(answers: "StopAnswers", running: str) -> int:
    """Show what ended and what still runs, one per line; return 1 if a server did not answer."""
    of_others = "Still running for other principals; choose one with `--principal NAME`"
    for heading, names in (("Ended", answers.ended), (running, answers.running), (of_others, answers.of_others)):
        if names:
            say(f"{heading}:")
            for name in names:
                say(f"  {format_one_line(name)}")
    return 1 if report_silent_servers(answers.silent) else 0


def describe_runs(session: str | None) -> str:
    return "the runs" if session is None else f"the runs of session {session}"


def format_reason(arguments: argparse.Namespace, otherwise: str) -> str:
    typed_reason = " ".join(arguments.reason.split())[:MAX_REASON_CHARS].rstrip(".")
    return f"{otherwise}: {typed_reason}" if typed_reason else otherwise
