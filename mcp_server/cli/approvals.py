"""`menugate approvals`, `approve` and `deny`: list the calls that need your approval, and answer them."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mcp_server.cli.output import CliError, ask_at_terminal, print_json, say, say_foreign, say_prose
from mcp_server.cli.parser import CommandGroup, add_json, add_place, settings_from_arguments
from mcp_server.cli.servers import add_server
from mcp_server.cli.target import write_to_state
from mcp_server.views.approvals import (
    build_approval_fields,
    build_question_fields,
    describe_scope,
    get_standing,
    list_scopes,
)
from mcp_server.views.posture import open_state_reader
from mcp_server.views.text import format_one_line, format_time

if TYPE_CHECKING:
    from mcp_server.model.approvals import Approval, ApprovalAnswer, ApprovalScope
    from mcp_server.settings import Settings
    from mcp_server.state.engine.transaction import Transaction

LISTING = """
menugate approvals                  the calls that need your approval
menugate approvals show k7f392qa    one of them in full
menugate approvals --all            also those from the last day that are settled
menugate approvals --json           for a program
"""
APPROVE = """
menugate approve k7f392qa                  let this call run once
menugate approve k7f392qa --for-session    let such calls run in this session; it says which ones
menugate approve k7f392qa --always         let exactly this call run from now on, by a rule for this workspace
"""
DENY = """
menugate deny k7f392qa                       refuse this call
menugate deny k7f392qa --reason "keep it"    and tell the model why
"""
MAX_REASON_CHARS = 500
FLAGS = {"once": "", "session": " --for-session", "always": " --always"}
"""The option of `approve` for each scope."""
ID_HELP = "the id from the refusal or from `menugate approvals`"


def add(commands: CommandGroup) -> None:
    command = commands.add("approvals", LISTING, run)
    command.add_argument("action", nargs="?", choices=("show",), metavar="show", help="show one question in full")
    command.add_argument("id", nargs="?", metavar="ID", help=ID_HELP)
    command.add_argument("--all", action="store_true", help="include answered, used and expired ones")
    add_place(command)
    add_json(command)
    command = commands.add("approve", APPROVE, run_approve)
    command.add_argument("id", metavar="ID", help=ID_HELP)
    command.add_argument(
        "--for-session",
        action="store_true",
        help="approve such calls in this session; if the tool runs commands, only this command",
    )
    command.add_argument(
        "--always",
        action="store_true",
        help="approve this call, and write a rule that allows the same call in this workspace from now on",
    )
    add_server(command)
    add_place(command)
    command = commands.add("deny", DENY, run_deny)
    command.add_argument("id", metavar="ID", help=ID_HELP)
    command.add_argument("--reason", metavar="TEXT", default="", help="the reason, shown to the model")
    add_place(command)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    if arguments.action is not None:
        return show_one(settings, arguments.id, arguments.json)
    with open_state_reader(settings) as state:
        recent, now = state.load_approvals() if state else (), time.time_ns()
        matches = [approval for approval in recent if arguments.all or get_standing(approval, now) == "waits"]
        glances = state.load_question_glances(matches) if state else {}
    if arguments.json:
        print_json(
            [
                build_approval_fields(approval, now) | {"glance": glances.get(approval.id) or None}
                for approval in matches
            ]
        )
    else:
        show(matches, glances, now, arguments.all)
    return 0


def show(questions: "Sequence[Approval]", glances: Mapping[str, str], now: int, with_settled: bool) -> None:
    if not questions:
        say_prose("No approvals in the last day." if with_settled else "No pending approvals; --all lists past ones.")
    for question in questions:
        show_question(question, question.message, now, glances.get(question.id, ""))


def show_question(approval: "Approval", text: str, now: int, glance: str = "") -> None:
    standing = get_standing(approval, now)
    standing = f"{standing}: {format_one_line(approval.void)}" if standing == "void" else standing
    say(
        (approval.id, "bold"),
        f"  {standing}, asked {format_time(approval.asked)}, expires {format_time(approval.expires)}",
    )
    if glance:
        say_foreign(f"call: {glance}", "  ", "> ")
    say_foreign(text, "  ", "> ")
    say()


def show_one(settings: "Settings", id: str | None, json: bool) -> int:
    """Show the whole question. One that is too long for a list can be approved only after it was shown."""
    from mcp_server.state import approvals

    if id is None:
        raise CliError("name a question; `menugate approvals` lists their ids.", 2)
    approval, now = find_question(settings, id), time.time_ns()
    if json:
        print_json(build_approval_fields(approval, now) | build_question_fields(approval))
    else:
        show_question(approval, approval.whole or approval.message, now, load_glance(settings, approval))
        if approval.is_waiting(now):
            show_scopes(approval)
    # If the reader closed the pipe, this raises, and the question stays unread.
    sys.stdout.flush()
    if approval.is_unread:
        write_to_state(settings, partial(approvals.mark_shown, id=id))
    return 0


def load_glance(settings: "Settings", approval: "Approval") -> str:
    with open_state_reader(settings) as state:
        return state.load_question_glances([approval]).get(approval.id, "") if state else ""


def show_scopes(approval: "Approval") -> None:
    say("  To answer:")
    for scope, covered in list_scopes(approval).items():
        say(f"    menugate approve {approval.id}{FLAGS[scope]}")
        say_prose(covered, indent="      ")
    say(f"    menugate deny {approval.id}")


def run_approve(arguments: argparse.Namespace) -> int:
    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.model.approvals import ApprovalAnswer, ApprovalScope

    settings = settings_from_arguments(arguments)
    refuse_inside_server(settings)  # first: a program must not see the question
    if arguments.for_session and arguments.always:
        raise CliError("choose one of --for-session and --always.", 2)
    question = find_question(settings, arguments.id)
    refuse_void(question)
    if arguments.for_session and not question.wanted.lasting:
        because = f": {why}" if (why := format_one_line(question.details.get("once_because") or "")) else ""
        raise CliError(f"this call can only be approved once{because}. Leave out --for-session.")
    if question.is_unread and not question.is_lapsed(time.time_ns()):
        raise CliError(
            f"the question `{question.id}` is too long for a list or a form, and you have not seen all of it. "
            f"Read it with `menugate approvals show {question.id}`, then approve it."
        )
    refuse_changed(settings, question)
    if arguments.always:
        approve_always(arguments, settings, question)
        return 0
    scope = ApprovalScope.SESSION if arguments.for_session else ApprovalScope.ONCE
    if sys.stdin.isatty():
        confirm_approval(settings, question, scope)
    say_approved(settings, answer_question(settings, question.id, ApprovalAnswer.YES, scope), question)
    return 0


def confirm_approval(settings: "Settings", question: "Approval", scope: "ApprovalScope") -> None:
    """Show what would be approved. Whoever told you the id may have told you something else about the call."""
    refuse_settled(question)
    show_question(question, question.whole or question.message, time.time_ns(), load_glance(settings, question))
    if ask_at_terminal(f"Approve {describe_scope(question, scope)}? [y/N] ").lower() not in ("y", "yes"):
        how = f"To refuse the call: `menugate deny {question.id}`."
        raise CliError(f"nothing was approved; the question is still open. {how}")


def approve_always(arguments: argparse.Namespace, settings: "Settings", question: "Approval") -> None:
    from mcp_server.cli.approval_rule import confirm_rule, draft_rule, require_terminal
    from mcp_server.model.approvals import ApprovalAnswer, ApprovalScope

    refuse_settled(question)
    draft = draft_rule(arguments, question)
    require_terminal()
    show_question(question, question.whole or question.message, time.time_ns(), load_glance(settings, question))
    confirm_rule(draft, settings.person)
    approval = answer_question(
        settings, question.id, ApprovalAnswer.YES, ApprovalScope.ALWAYS, "from now on, by a rule", draft.write
    )
    say_prose(f"Written to {draft.file.path}. Running servers follow in a moment; to take it back, remove the line.")
    say_approved(settings, approval, question)


def say_approved(settings: "Settings", approval: "Approval", question: "Approval") -> None:
    from mcp_server.calls.approval_text import STANDS_ON

    say_prose(f"Approved: `{format_one_line(approval.wanted.tool)}`, {describe_scope(approval, approval.scope)}.")
    has_facts = STANDS_ON in (question.whole or question.message).splitlines()
    condition = ", if what the question shows still holds" if has_facts else ""
    when = "If the call is waiting, it runs now. Otherwise it runs when the model repeats it"
    if is_run_paused(settings, approval):
        when = (
            "The run is paused, so the call does not run now. After `menugate next`, it runs when the model repeats it"
        )
    say_prose(f"{when}{condition}. The approval expires {format_time(approval.expires)}.")


def is_run_paused(settings: "Settings", approval: "Approval") -> bool:
    """Say whether a hold stops this call, so that the approval alone does not let it run."""
    from mcp_server.model.posture import RunControl
    from mcp_server.policy.pending import list_paused_runs

    call = approval.wanted
    with open_state_reader(settings) as state:
        holds = state.load_holds() if state else {}
    control = RunControl(call.posture.split()[1]) if call.posture else RunControl.AUTONOMOUS
    paused = list_paused_runs(holds, lambda _: control)
    return any(one.principal == call.principal and one.session in ("", call.session) for one in paused)


def run_deny(arguments: argparse.Namespace) -> int:
    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.model.approvals import ApprovalAnswer

    reason = " ".join(arguments.reason.split())[:MAX_REASON_CHARS]
    settings = settings_from_arguments(arguments)
    refuse_inside_server(settings)  # first: a program must not see the question
    approval = answer_question(settings, arguments.id, ApprovalAnswer.NO, reason=reason)
    if approval.used:
        say_prose(f"Approval withdrawn: `{format_one_line(approval.wanted.tool)}`. The next call asks you again.")
    else:
        when = "The model sees this now if the call is waiting, otherwise when it repeats the call."
        say_prose(f"Denied: `{format_one_line(approval.wanted.tool)}`. {when}")
    return 0


def find_question(settings: "Settings", id: str) -> "Approval":
    with open_state_reader(settings) as state:
        match = state.find_approval(id) if state else None
    if match is None:
        raise CliError(f"there is no question `{id}` here; `menugate approvals` lists the open ones.")
    return match


def refuse_void(question: "Approval") -> None:
    if question.void and not question.is_spent:
        raise CliError(
            f"the question `{question.id}` is no longer valid: {question.void}. "
            "If the model repeats the call, you are asked again."
        )


def refuse_settled(question: "Approval") -> None:
    """Raise if the question can no longer be answered here."""
    from mcp_server.model.approvals import AnsweredBy

    if (word := get_standing(question, time.time_ns())) in ("used", "expired"):
        raise CliError(
            f"the question `{question.id}` can no longer be answered: {word}. "
            "If the model repeats the call, you are asked again."
        )
    if question.way is AnsweredBy.CLIENT:
        refuse_answered_in_client(question)


def refuse_changed(settings: "Settings", question: "Approval") -> None:
    """Raise if an approval would be useless, because the call would no longer do what the question said."""
    from mcp_server.calls.approval_changes import find_changes

    if not question.is_waiting(time.time_ns()):
        return
    if changes := "; ".join(find_changes(question, settings)):
        raise CliError(
            f"nothing was approved, because something changed since the question `{question.id}` was asked: {changes}. "
            "If the model repeats the call, you are asked again about what is there now."
        )


def answer_question(
    settings: "Settings",
    id: str,
    answer: "ApprovalAnswer",
    scope: "ApprovalScope | None" = None,
    reason: str = "",
    also: Callable[[], None] | None = None,
) -> "Approval":
    """Record the answer. `also`: what has to be done with it, or neither is."""
    from mcp_server.model.approvals import AnsweredBy, ApprovalAnswer, ApprovalScope
    from mcp_server.state import approvals

    question = find_question(settings, id)
    if answer is ApprovalAnswer.YES:
        refuse_changed(settings, question)  # also after you have read it, and before any rule is written
    reply = approvals.QuestionReply(id, answer, AnsweredBy.PERSON, scope or ApprovalScope.ONCE, reason)

    def record(tx: "Transaction") -> "Approval | None":
        approval = approvals.record_answer(tx, reply)
        if also is not None and approval is not None and approval.way is AnsweredBy.PERSON:
            also()
        return approval

    approval = write_to_state(settings, record)
    if approval is None:
        question = find_question(settings, id)
        refuse_void(question)
        refuse_settled(question)
        raise CliError(
            f"the question `{id}` can no longer be answered; if the model repeats the call, you are asked again."
        )
    if approval.way is not AnsweredBy.PERSON:
        refuse_answered_in_client(approval)
    return approval


def refuse_answered_in_client(approval: "Approval") -> None:
    from mcp_server.model.approvals import ApprovalAnswer

    if approval.answer is ApprovalAnswer.YES:
        raise CliError(
            f"the question `{approval.id}` was already approved in the client, and the first answer counts. "
            f"To take that back, run `menugate deny {approval.id}`."
        )
    raise CliError(
        f"the question `{approval.id}` was already declined in the client, and the first answer counts. "
        "If the model makes the call again, you are asked again."
    )
