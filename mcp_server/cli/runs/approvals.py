"""`menugate approvals`, `approve` and `deny`: which calls wait for a yes, and what does the person say to them?"""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_server.cli.command import Commands, add_json, add_place, settings_of
from mcp_server.cli.paper import Trouble, as_json, say, when
from mcp_server.cli.posture.holding import remembering
from mcp_server.cli.runs.place import written

if TYPE_CHECKING:
    from mcp_server.model.runs.approval import Approval
    from mcp_server.settings import Settings

LISTING = """
menugate approvals                          what waits for your yes here
menugate approvals --all                    what you were asked in the last day as well
menugate approvals --json                   for a program
"""
YES = """
menugate approve k7f392qa                   this call may run, once, when it is made again
menugate approve k7f392qa --for-session     this tool may, as long as the session lasts and nothing is changed
"""
NO = """
menugate deny k7f392qa                      it may not
menugate deny k7f392qa --reason "keep it"   and the model is told why
"""
LONGEST_REASON = 500


def add(commands: Commands) -> None:
    one = commands.add("approvals", "show which calls wait for your yes", LISTING, run)
    one.add_argument("--all", action="store_true", help="those that are answered, used or expired as well")
    add_place(one)
    add_json(one)
    one = commands.add("approve", "let a call run that waits for your yes", YES, run_approve)
    one.add_argument("id", metavar="ID", help="as the refused call named it")
    one.add_argument("--for-session", action="store_true", help="this tool, as long as its session lasts")
    add_place(one)
    one = commands.add("deny", "say no to a call that waits for your yes", NO, run_deny)
    one.add_argument("id", metavar="ID", help="as the refused call named it")
    one.add_argument("--reason", metavar="TEXT", default="", help="what the model is told")
    add_place(one)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    with remembering(settings) as state:
        every = state.approvals() if state else ()
    now = time.time_ns()
    found = [one for one in every if arguments.all or standing(one, now) == "waits"]
    if arguments.json:
        as_json([in_json(one, now) for one in found])
    else:
        show(found, now, arguments.all)
    return 0


def show(found: "Sequence[Approval]", now: int, every: bool) -> None:
    if not found:
        say("Nothing was asked in the last day." if every else "Nothing waits for your yes; --all shows what did.")
    for one in found:
        say((one.id, "bold"), f"  {standing(one, now)}, asked {when(one.asked)}, expires {when(one.expires)}")
        for line in one.message.splitlines():
            say(f"  {line}")
        say()


def standing(one: "Approval", now: int) -> str:
    """In one word: `waits`, `used`, `expired`, or the answer it got."""
    from mcp_server.model.runs.approval import Answer

    if one.spent and one.answer is Answer.YES:
        return "used"
    if one.lapsed(now):
        return "expired"
    return "waits" if one.waits(now) else str(one.answer)


def in_json(one: "Approval", now: int) -> dict[str, Any]:
    return {
        "id": one.id,
        "standing": standing(one, now),
        "tool": one.wanted.tool,
        "effect": one.wanted.effect,
        "principal": one.wanted.principal,
        "session": one.wanted.session or None,
        "run": one.wanted.run or None,
        "step": one.wanted.step,
        "message": one.message,
        "asked": when(one.asked),
        "expires": when(one.expires),
        "scope": one.scope,
        "may_be_for_session": one.wanted.lasting,
        "reason": one.reason or None,
    }


def run_approve(arguments: argparse.Namespace) -> int:
    from mcp_server.model.runs.approval import Answer, Scope

    settings = settings_of(arguments)
    scope = Scope.SESSION if arguments.for_session else Scope.ONCE
    if scope is Scope.SESSION and (known := looked_up(settings, arguments.id)) and not known.wanted.lasting:
        effect = known.wanted.effect
        raise Trouble(f"a call that asks for `{effect}` here is approved one at a time; leave out --for-session.")
    settled = answered(settings, arguments.id, Answer.YES, scope)
    what = "any call of it that does no more" if settled.scope is Scope.SESSION else "this call, once"
    say(f"Approved: `{settled.wanted.tool}`, {what}. It runs when it is made again, until {when(settled.expires)}.")
    return 0


def run_deny(arguments: argparse.Namespace) -> int:
    from mcp_server.model.runs.approval import Answer

    reason = " ".join(arguments.reason.split())[:LONGEST_REASON]
    settled = answered(settings_of(arguments), arguments.id, Answer.NO, reason=reason)
    if settled.used:
        say(f"Taken back: `{settled.wanted.tool}`. Whatever calls it next asks anew.")
    else:
        say(f"Denied: `{settled.wanted.tool}`. The model is told when it makes the call again.")
    return 0


def looked_up(settings: "Settings", id: str) -> "Approval | None":
    with remembering(settings) as state:
        return next((one for one in state.approvals() if one.id == id), None) if state else None


def answered(settings: "Settings", id: str, answer: Any, scope: Any = None, reason: str = "") -> "Approval":
    from mcp_server.model.runs.approval import Scope, Way
    from mcp_server.state import deeds

    known = looked_up(settings, id)
    if known is None:
        raise Trouble(f"there is no question `{id}` here; `menugate approvals` shows those that wait.")
    reply = deeds.Reply(id, answer, Way.PERSON, scope or Scope.ONCE, reason)
    settled = written(settings, partial(deeds.answer, reply=reply))
    if settled is None:
        word = standing(known, time.time_ns())
        raise Trouble(f"the question `{id}` can no longer be answered: {word}. The call, made again, asks anew.")
    return settled
