"""`menugate approvals`, `approve` and `deny`: which calls need the person's approval, and do they get it?"""

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, print_json, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_json, add_place, settings_from_arguments
from mcp_server.cli.target import record_and_refuse_programs, write_to_state
from mcp_server.views.posture import open_state_reader
from mcp_server.views.text import format_one_line, format_time

if TYPE_CHECKING:
    from mcp_server.model.approvals import Approval
    from mcp_server.settings import Settings

LISTING = """
menugate approvals                  the calls that need your approval
menugate approvals show k7f392qa    one of them in full, however long it is
menugate approvals --all            also those of the last day that are settled
menugate approvals --json           for a program
"""
YES = """
menugate approve k7f392qa                  let this call run once
menugate approve k7f392qa --for-session    let this tool run for the rest of the session; for `bash`, this command
"""
NO = """
menugate deny k7f392qa                       refuse this call
menugate deny k7f392qa --reason "keep it"    and tell the model why
"""
MAX_REASON_CHARS = 500
ID_HELP = "the id in the refusal, which `menugate approvals` lists too"


def add(commands: CommandGroup) -> None:
    one = commands.add("approvals", LISTING, run)
    one.add_argument("action", nargs="?", choices=("show",), metavar="show", help="show one question in full")
    one.add_argument("id", nargs="?", metavar="ID", help=ID_HELP)
    one.add_argument("--all", action="store_true", help="include those that are answered, used or expired")
    add_place(one)
    add_json(one)
    one = commands.add("approve", YES, run_approve)
    one.add_argument("id", metavar="ID", help=ID_HELP)
    one.add_argument(
        "--for-session",
        action="store_true",
        help="this tool for the rest of the session; for a tool that runs commands, this command",
    )
    add_place(one)
    one = commands.add("deny", NO, run_deny)
    one.add_argument("id", metavar="ID", help=ID_HELP)
    one.add_argument("--reason", metavar="TEXT", default="", help="why, for the model to read")
    add_place(one)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    if arguments.action is not None:
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
        say_prose("No approvals in the last day." if every else "No pending approvals; --all lists past ones.")
    for one in found:
        show_question(one, one.message, now)


def show_question(one: "Approval", text: str, now: int) -> None:
    how = get_standing(one, now)
    how = f"{how}: {format_one_line(one.void)}" if how == "void" else how
    say((one.id, "bold"), f"  {how}, asked {format_time(one.asked)}, expires {format_time(one.expires)}")
    for line in text.split("\n"):
        say(f"  {line}")
    say()


def show_one(settings: "Settings", id: str | None, json: bool) -> int:
    """The whole question, however long; a question too long for a list can only be approved once it was shown."""
    from mcp_server.state import approvals

    if id is None:
        raise CliError("which question? `menugate approvals` lists their ids.", 2)
    one, now = find_question(settings, id), time.time_ns()
    if json:
        print_json(to_json(one, now) | {"message": one.whole or one.message})
    else:
        show_question(one, one.whole or one.message, now)
    # A reader who closed the pipe has not read it.
    sys.stdout.flush()
    if one.is_unread:
        write_to_state(settings, partial(approvals.mark_shown, id=id))
    return 0


def get_standing(one: "Approval", now: int) -> str:
    """One word: `waits`, `used`, `void`, `expired`, or the answer it got."""
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
        why = f"a call with the effect `{asked.wanted.effect}` here, or with a secret in it,"
        raise CliError(f"{why} can only be approved once; leave out --for-session.")
    if asked.is_unread and not asked.is_lapsed(time.time_ns()):
        raise CliError(
            f"the question `{asked.id}` is too long for a list or a form, and you have not seen all of it. "
            f"Read it with `menugate approvals show {asked.id}`, then approve it."
        )
    settled = answer_question(settings, arguments.id, ApprovalAnswer.YES, scope)
    lasting = (
        "this command, in this session" if settled.wanted.exact else "every call of it that needs no more permission"
    )
    what = lasting if settled.scope is ApprovalScope.SESSION else "this call, once"
    say_prose(f"Approved: `{format_one_line(settled.wanted.tool)}`, {what}.")
    stands = STANDS_ON in (asked.whole or asked.message).splitlines()
    still = ", if what the question shows still holds" if stands else ""
    say_prose(
        f"If the call is waiting, it runs now. Otherwise it runs when the model repeats it{still}. The approval "
        f"expires {format_time(settled.expires)}."
    )
    return 0


def run_deny(arguments: argparse.Namespace) -> int:
    from mcp_server.model.approvals import ApprovalAnswer

    reason = " ".join(arguments.reason.split())[:MAX_REASON_CHARS]
    settings = settings_from_arguments(arguments)
    record_and_refuse_programs(settings)
    settled = answer_question(settings, arguments.id, ApprovalAnswer.NO, reason=reason)
    if settled.used:
        say_prose(f"Taken back: `{format_one_line(settled.wanted.tool)}`. The next call of it asks you again.")
    else:
        when = "If the call is waiting, the model is told now; otherwise, when it repeats the call."
        say_prose(f"Denied: `{format_one_line(settled.wanted.tool)}`. {when}")
    return 0


def find_question(settings: "Settings", id: str) -> "Approval":
    with open_state_reader(settings) as state:
        found = next((one for one in state.load_approvals() if one.id == id), None) if state else None
    if found is None:
        raise CliError(f"there is no question `{id}` here; `menugate approvals` lists the open ones.")
    return found


def refuse_void(asked: "Approval") -> None:
    if asked.void and not asked.is_spent:
        raise CliError(
            f"the question `{asked.id}` no longer counts: {asked.void}. "
            "If the model repeats the call, you are asked again."
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
        raise CliError(
            f"the question `{id}` can no longer be answered: {word}. "
            "If the model repeats the call, you are asked again."
        )
    return settled
