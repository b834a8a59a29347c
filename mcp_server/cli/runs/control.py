"""`menugate pause`, `next` and `stop`: shall the runs of this workspace wait, go on, or be cleared away?"""

import argparse
from functools import partial

from mcp_server.cli.command import Commands, add_place, settings_of
from mcp_server.cli.paper import Trouble, say
from mcp_server.cli.runs.place import add_whom, whom, written

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
menugate stop                               end the runs, forget what they came to, and wait
menugate stop --session SESSION             one alone
"""
MOST_UNITS = 1000
LONGEST_REASON = 200


def add(commands: Commands) -> None:
    one = commands.add("pause", "let runs wait, with all they have come to", PAUSE, run_pause)
    one.add_argument("--reason", metavar="TEXT", default="", help="what whoever calls is told")
    add_whom(one)
    add_place(one)
    one = commands.add("next", "let runs go on that wait; in `assisted`, for one unit", NEXT, run_next)
    one.add_argument("units", nargs="?", type=int, default=1, metavar="UNITS", help="how many units, in `assisted`")
    add_whom(one)
    add_place(one)
    one = commands.add("stop", "end runs and clear what they have come to", STOP, run_stop)
    one.add_argument("--reason", metavar="TEXT", default="", help="what whoever calls is told")
    add_whom(one)
    add_place(one)


def run_pause(arguments: argparse.Namespace) -> int:
    from mcp_server.model.session import Hold, Holder
    from mcp_server.state import deeds

    settings = settings_of(arguments)
    principal, session = whom(arguments, settings)
    hold = Hold(Holder.PERSON, reason_of(arguments, "the person paused it"))
    held = written(settings, partial(deeds.pause, principal=principal, session=session or "", hold=hold))
    say(f"{which(session)} wait: {held.reason}. `menugate next` lets them go on.")
    return 0


def run_next(arguments: argparse.Namespace) -> int:
    from mcp_server.state import deeds

    if not 1 <= arguments.units <= MOST_UNITS:
        raise Trouble(f"the number of units is from 1 to {MOST_UNITS}, not {arguments.units}.", code=2)
    settings = settings_of(arguments)
    principal, session = whom(arguments, settings)
    going = partial(deeds.go_on, principal=principal, session=session, units=arguments.units)
    lifted = written(settings, going)
    waited = "; ".join(dict.fromkeys(one.reason for one in lifted))
    say(f"{which(session)} go on." + (f" They waited because: {waited}." if waited else " Nothing was waiting."))
    return 0


def run_stop(arguments: argparse.Namespace) -> int:
    from mcp_server.compose import numbered
    from mcp_server.state import deeds

    settings = settings_of(arguments)
    principal, session = whom(arguments, settings)
    reason = reason_of(arguments, "the person stopped it")
    stopping = partial(deeds.stop, principal=principal, session=session, run=numbered()(), reason=reason)
    count = len({kept.session.id for kept in written(settings, stopping)})
    say(f"{which(session)} are stopped, {count} with a memory that is cleared. `menugate next` lets new ones begin.")
    return 0


def which(session: str | None) -> str:
    return "The runs" if session is None else f"The runs of session {session}"


def reason_of(arguments: argparse.Namespace, otherwise: str) -> str:
    said = " ".join(arguments.reason.split())[:LONGEST_REASON].rstrip(".")
    return f"{otherwise}: {said}" if said else otherwise
