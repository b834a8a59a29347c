"""`menugate pause`, `next` and `stop`: shall the runs of this workspace wait, go on, or be cleared away?"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mcp_server.cli.output import CliError, format_one_line, say
from mcp_server.cli.parser import CommandGroup, add_place, settings_from_arguments
from mcp_server.cli.servers import load_judgement_for_choice
from mcp_server.cli.target import (
    NoStateYet,
    add_target_flags,
    find_target,
    give_order_and_wait,
    refuse_programs,
    write_to_state,
)

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_server.calls.stops import StopAnswers
    from mcp_server.model.sessions import Hold
    from mcp_server.settings import Settings
    from mcp_server.state.engine.rows import StoredSession
    from mcp_server.state.engine.transaction import Transaction
    from mcp_server.state.running_calls import RunningWork

PAUSE = """
menugate pause                              every run of yours waits; it keeps its state
menugate pause --reason "back at two"       and whoever calls is told why
menugate pause --session SESSION            one alone; `menugate summary` names it
"""
NEXT = """
menugate next                               go on; in `assisted`, for one unit
menugate next 5                             in `assisted`, for five units
"""
STOP = """
menugate stop                               end everybody's runs and all they started, forget what they came to, wait
menugate stop --session SESSION             one alone
menugate stop --principal NAME              those of one principal
"""
UNTRUE = (", so the call could not be put on record", "; nothing ran", "; nothing was changed")
"""What is said where nothing can be written, and does not hold of `stop`."""
MOST_UNITS = 1000
LONGEST_REASON = 200


def add(commands: CommandGroup) -> None:
    one = commands.add("pause", "let runs wait, with all they have come to", PAUSE, run_pause)
    one.add_argument("--reason", metavar="TEXT", default="", help="what whoever calls is told")
    add_target_flags(one)
    add_place(one)
    one = commands.add("next", "let runs go on that wait; in `assisted`, for one unit", NEXT, run_next)
    one.add_argument("units", nargs="?", type=int, default=1, metavar="UNITS", help="how many units, in `assisted`")
    add_target_flags(one, "yours, and all that `stop` ended")
    add_place(one)
    one = commands.add("stop", "end runs and clear what they have come to", STOP, run_stop)
    one.add_argument("--reason", metavar="TEXT", default="", help="what whoever calls is told")
    add_target_flags(one, "everybody's")
    add_place(one)


def run_pause(arguments: argparse.Namespace) -> int:
    from mcp_server.model.sessions import Hold, Holder
    from mcp_server.person import make_id_generator
    from mcp_server.state import runs, stops

    settings = settings_from_arguments(arguments)
    principal, session = find_target(arguments, settings)
    hold = Hold(Holder.PERSON, format_reason(arguments, "the person paused it"))
    pausing = partial(runs.pause_session, principal=principal, session=session or "", hold=hold)
    order = stops.StopOrder(make_id_generator()(), principal, session, ends=False, reason=hold.reason, everybody=True)
    held, heard = give_order_and_wait(settings, lambda tx: (pausing(tx), stops.give_order(tx, order)))
    say(f"{describe_runs(session)} wait: {format_one_line(held.reason)}. `menugate next` lets them go on.")
    beside = tuple(words for _, words in find_running_work(find_other_states(settings)))
    return show_answers(replace(heard, running=(*heard.running, *beside)), "Still running; `menugate stop` ends it")


def run_next(arguments: argparse.Namespace) -> int:
    from mcp_server.state import runs

    if not 1 <= arguments.units <= MOST_UNITS:
        raise CliError(f"the number of units is from 1 to {MOST_UNITS}, not {arguments.units}.", code=2)
    settings = settings_from_arguments(arguments)
    principal, session = find_target(arguments, settings)

    def resume_sessions(tx: "Transaction") -> "list[Hold]":
        lifted = runs.resume_session(tx, principal, session, arguments.units)
        if is_for_everybody(arguments):
            # What `stop` stopped goes on with everybody it stopped; a pause of somebody else's stays theirs.
            others = {key[0] for key, hold in runs.load_holds(tx).items() if hold.stopped}
            lifted += [hold for other in sorted(others) for hold in runs.resume_session(tx, other, None)]
        return lifted

    lifted = write_to_state(settings, resume_sessions)
    waited = format_one_line("; ".join(dict.fromkeys(one.reason for one in lifted)))
    say(
        f"{describe_runs(session)} go on." + (f" They waited because: {waited}." if waited else " Nothing was waiting.")
    )
    return 0


def run_stop(arguments: argparse.Namespace) -> int:
    from mcp_server.person import make_id_generator
    from mcp_server.state import runs, sessions, stops

    settings = settings_from_arguments(arguments)
    principal, session = find_target(arguments, settings)
    reason, run = format_reason(arguments, "the person stopped it"), make_id_generator()()
    names = find_token_principals(arguments, settings) if is_for_everybody(arguments) else frozenset[str]()
    order_for = "" if is_for_everybody(arguments) else principal
    order = stops.StopOrder(make_id_generator()(), order_for, session, ends=True, reason=reason, everybody=True)

    def stop_sessions(tx: "Transaction") -> "list[StoredSession]":
        known = (
            {kept.session.principal for kept in sessions.load_sessions(tx)}
            if is_for_everybody(arguments)
            else set[str]()
        )
        whose = sorted({principal, *names, *known})
        return [kept for one in whose for kept in runs.stop_runs(tx, one, session, run, reason)]

    try:
        moved, heard = give_order_and_wait(settings, lambda tx: (stop_sessions(tx), stops.give_order(tx, order)))
    except NoStateYet as wrong:
        if not is_for_everybody(arguments):
            raise CliError(f"{wrong} `menugate stop` alone ends everything that runs, on record or not.") from None
        return end_unwritten(settings, str(wrong))
    if heard.unwritten and heard.silent and is_for_everybody(arguments):
        return end_unwritten(settings, f"{heard.unwritten.message} {heard.unwritten.way_out}")
    count = len({kept.session.id for kept in moved})
    cleared = f"{count} with a memory that is cleared"
    say(f"{describe_runs(session)} are stopped, {cleared}. `menugate next` lets new ones begin.")
    did, silent, names = end_by_signal(find_other_states(settings) if is_for_everybody(arguments) else ())
    if not (heard.ended or heard.running or heard.silent or did or silent):
        say("Nothing of them was running.")
    code = show_answers(replace(heard, ended=(*heard.ended, *names)), "Told to end, and still running")
    if did:
        say(f"These servers have other keys; told by a signal, they ended everything they ran: {format_pids(did)}.")
        say("They refuse new calls until you type `menugate next` with the MENUGATE_STATE_HOME they were started with.")
    return 1 if report_silent_servers(silent) else code


def end_unwritten(settings: "Settings", why: str) -> int:
    """What runs is ended, on record or not: by a signal to each server."""
    from mcp_server.calls.stops import StopAnswers
    from mcp_server.state.account import STOPS

    refuse_programs(settings)
    did, silent, names = end_by_signal(settings.all_state_folders)
    for words in (*UNTRUE, STOPS):
        why = why.replace(words, "")
    say(f"It could not be put on record: {why}")
    show_answers(StopAnswers(ended=tuple(names)), "")
    if did:
        say(f"Told by a signal, these servers ended everything they ran: {format_pids(did)}.")
        say("They refuse new calls until it is on record; once that is put right, `menugate next` lets new ones begin.")
    if not (report_silent_servers(silent) or did):
        say("No server runs here.")
    return 1


def end_by_signal(states: "Sequence[Path]") -> tuple[list[int], list[int], list[str]]:
    """This account's servers that ended what they ran, those that did not answer, and what it was that ended."""
    from mcp_server.calls.stops import PATIENCE
    from mcp_server.state.servers import stop_servers_by_signal

    works = find_running_work(states)
    did, silent = stop_servers_by_signal(states, PATIENCE)
    return did, silent, [words for one, words in works if one.server in did]


def find_other_states(settings: "Settings") -> "list[Path]":
    """Where servers of this account are that have other keys: no order reaches them, and a signal does."""
    return [one for one in settings.all_state_folders if one != settings.state]


def find_running_work(states: "Sequence[Path]") -> "list[tuple[RunningWork, str]]":
    """What runs there, in words."""
    from mcp_server.cli.status import describe_work
    from mcp_server.state.running_calls import read_running_calls
    from mcp_server.views.status import work_to_json

    return [(one, describe_work(work_to_json(one))) for one in read_running_calls(states)[1]]


def format_pids(pids: list[int]) -> str:
    return ", ".join(map(str, pids))


def report_silent_servers(pids: "Iterable[object]") -> bool:
    for pid in (found := list(pids)):
        say(f"The server with process id {pid} did not answer; what it runs may go on. `kill -9 {pid}` ends all of it.")
    return bool(found)


def is_for_everybody(arguments: argparse.Namespace) -> bool:
    """Typed without a name, `stop` is about everything that runs here, whoever started it."""
    return arguments.principal is None and arguments.session is None


def find_token_principals(arguments: argparse.Namespace, settings: "Settings") -> frozenset[str]:
    """Who may connect with a token. Beside a file with faults `stop` works without it."""
    try:
        found = load_judgement_for_choice(arguments, settings).law
    except CliError:
        return frozenset()
    return frozenset(token.principal for token in found.library.config.tokens)


def show_answers(heard: "StopAnswers", running: str) -> int:
    """What was ended and what runs, one to a line; 1 where a server did not answer."""
    of_others = "Still running for others; `--principal NAME` names whose runs are meant"
    for what, names in (("Ended", heard.ended), (running, heard.running), (of_others, heard.of_others)):
        if names:
            say(f"{what}:")
            for name in names:
                say(f"  {format_one_line(name)}")
    return 1 if report_silent_servers(heard.silent) else 0


def describe_runs(session: str | None) -> str:
    return "The runs" if session is None else f"The runs of session {session}"


def format_reason(arguments: argparse.Namespace, otherwise: str) -> str:
    said = " ".join(arguments.reason.split())[:LONGEST_REASON].rstrip(".")
    return f"{otherwise}: {said}" if said else otherwise
