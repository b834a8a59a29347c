"""`menugate approvals`, `approve` and `deny`: which calls wait for a yes, and what does the person say to them?"""

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, format_one_line, format_time, print_json, say
from mcp_server.cli.parser import CommandGroup, add_json, add_place, settings_from_arguments
from mcp_server.cli.target import record_and_refuse_programs, write_to_state
from mcp_server.views.posture import open_state_reader

if TYPE_CHECKING:
    from mcp_server.model.approvals import Approval
    from mcp_server.settings import Settings

LISTING = """
menugate approvals                          what waits for your yes here
menugate approvals show k7f392qa            one of them, whole; what is too long for the list is shown here
menugate approvals --all                    what you were asked in the last day as well
menugate approvals --json                   for a program
"""
YES = """
menugate approve k7f392qa                   this call may run, once, when it is made again
menugate approve k7f392qa --for-session     this tool, or of `bash` this command, may as long as the session lasts
"""
NO = """
menugate deny k7f392qa                      it may not
menugate deny k7f392qa --reason "keep it"   and the model is told why
"""
LONGEST_REASON = 500


def add(commands: CommandGroup) -> None:
    one = commands.add("approvals", "show which calls wait for your yes", LISTING, run)
    one.add_argument("deed", nargs="?", choices=("show",), metavar="show", help="show one question whole")
    one.add_argument("id", nargs="?", metavar="ID", help="as the refused call named it")
    one.add_argument("--all", action="store_true", help="those that are answered, used or expired as well")
    add_place(one)
    add_json(one)
    one = commands.add("approve", "let a call run that waits for your yes", YES, run_approve)
    one.add_argument("id", metavar="ID", help="as the refused call named it")
    one.add_argument("--for-session", action="store_true", help="this tool, or of what runs commands this command")
    add_place(one)
    one = commands.add("deny", "say no to a call that waits for your yes", NO, run_deny)
    one.add_argument("id", metavar="ID", help="as the refused call named it")
    one.add_argument("--reason", metavar="TEXT", default="", help="what the model is told")
    add_place(one)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    if arguments.deed is not None:
        return show_one(settings, arguments.id, arguments.json)
    with open_state_reader(settings) as state:
        every = state.load_approvals() if state else ()
    now = time.time_ns()
    found = [one for one in every if arguments.all or get_standing(one, now) == "waits"]
    if arguments.json:
        print_json([to_json(one, now) for one in found])
    else:
        show(found, now, arguments.all)
    return 0


def show(found: "Sequence[Approval]", now: int, every: bool) -> None:
    if not found:
        say("Nothing was asked in the last day." if every else "Nothing waits for your yes; --all shows what did.")
    for one in found:
        show_question(one, one.message, now)


def show_question(one: "Approval", text: str, now: int) -> None:
    how = get_standing(one, now)
    how = f"{how}, because {format_one_line(one.void)}" if how == "void" else how
    say((one.id, "bold"), f"  {how}, asked {format_time(one.asked)}, expires {format_time(one.expires)}")
    for line in text.split("\n"):
        say(f"  {line}")
    say()


def show_one(settings: "Settings", id: str | None, json: bool) -> int:
    """All of it, also where it is too long for a list; from then on it may be approved."""
    from mcp_server.state import approvals

    if id is None:
        raise CliError("which question? `menugate approvals` shows their ids.", 2)
    one, now = find_question(settings, id), time.time_ns()
    if json:
        print_json(to_json(one, now) | {"message": one.whole or one.message})
    else:
        show_question(one, one.whole or one.message, now)
    # Who closed the pipe has not read it.
    sys.stdout.flush()
    if one.is_unread:
        write_to_state(settings, partial(approvals.mark_shown, id=id))
    return 0


def get_standing(one: "Approval", now: int) -> str:
    """In one word: `waits`, `used`, `void`, `expired`, or the answer it got."""
    from mcp_server.model.approvals import ApprovalAnswer

    if one.is_spent and one.answer is ApprovalAnswer.YES:
        return "used"
    if one.void:
        return "no" if one.answer is ApprovalAnswer.NO else "void"
    if one.is_lapsed(now):
        return "expired"
    return "waits" if one.is_waiting(now) else str(one.answer)


def to_json(one: "Approval", now: int) -> dict[str, Any]:
    return {
        "id": one.id,
        "standing": get_standing(one, now),
        "tool": one.wanted.tool,
        "effect": one.wanted.effect,
        "principal": one.wanted.principal,
        "session": one.wanted.session or None,
        "run": one.wanted.run or None,
        "step": one.wanted.step,
        "message": one.message,
        "too_long": bool(one.whole),
        "shown": one.shown or not one.whole,
        "asked": format_time(one.asked),
        "expires": format_time(one.expires),
        "scope": one.scope,
        "may_be_for_session": one.wanted.lasting,
        "reason": one.reason or None,
        "void": one.void or None,
    }


def run_approve(arguments: argparse.Namespace) -> int:
    from mcp_server.calls.approval_text import STANDS_ON
    from mcp_server.model.approvals import ApprovalAnswer, ApprovalScope

    settings = settings_from_arguments(arguments)
    record_and_refuse_programs(settings)
    scope = ApprovalScope.SESSION if arguments.for_session else ApprovalScope.ONCE
    asked = find_question(settings, arguments.id)
    refuse_void(asked)
    if scope is ApprovalScope.SESSION and not asked.wanted.lasting:
        why = f"a call that asks for `{asked.wanted.effect}` here, or that holds a secret,"
        raise CliError(f"{why} is approved one at a time; leave out --for-session.")
    if asked.is_unread and not asked.is_lapsed(time.time_ns()):
        raise CliError(
            f"the question `{asked.id}` is too long for a list or a form, and you have not seen all of it; "
            f"`menugate approvals show {asked.id}` shows it. Then approve it."
        )
    settled = answer_question(settings, arguments.id, ApprovalAnswer.YES, scope)
    lasting = "this command, in this session" if settled.wanted.exact else "any call of it that does no more"
    what = lasting if settled.scope is ApprovalScope.SESSION else "this call, once"
    say(f"Approved: `{format_one_line(settled.wanted.tool)}`, {what}.")
    stands = STANDS_ON in (asked.whole or asked.message).splitlines()
    still = ", if what the question shows still stands," if stands else ","
    say(
        f"It runs at once if it waits for your answer, else when it is made again{still} until "
        f"{format_time(settled.expires)}."
    )
    return 0


def run_deny(arguments: argparse.Namespace) -> int:
    from mcp_server.model.approvals import ApprovalAnswer

    reason = " ".join(arguments.reason.split())[:LONGEST_REASON]
    settings = settings_from_arguments(arguments)
    record_and_refuse_programs(settings)
    settled = answer_question(settings, arguments.id, ApprovalAnswer.NO, reason=reason)
    if settled.used:
        say(f"Taken back: `{format_one_line(settled.wanted.tool)}`. Whatever calls it next asks anew.")
    else:
        told = "The model is told at once if the call waits, else when it is made again."
        say(f"Denied: `{format_one_line(settled.wanted.tool)}`. {told}")
    return 0


def find_question(settings: "Settings", id: str) -> "Approval":
    with open_state_reader(settings) as state:
        found = next((one for one in state.load_approvals() if one.id == id), None) if state else None
    if found is None:
        raise CliError(f"there is no question `{id}` here; `menugate approvals` shows those that wait.")
    return found


def refuse_void(asked: "Approval") -> None:
    if asked.void and not asked.is_spent:
        raise CliError(
            f"an answer to the question `{asked.id}` opens nothing any more: {asked.void}. "
            "The call, made again, asks anew."
        )


def answer_question(settings: "Settings", id: str, answer: Any, scope: Any = None, reason: str = "") -> "Approval":
    from mcp_server.model.approvals import AnsweredBy, ApprovalScope
    from mcp_server.state import approvals

    asked = find_question(settings, id)
    reply = approvals.QuestionReply(id, answer, AnsweredBy.PERSON, scope or ApprovalScope.ONCE, reason)
    settled = write_to_state(settings, partial(approvals.record_answer, reply=reply))
    if settled is None:
        asked = find_question(settings, id)
        refuse_void(asked)
        word = get_standing(asked, time.time_ns())
        raise CliError(f"the question `{id}` can no longer be answered: {word}. The call, made again, asks anew.")
    return settled
