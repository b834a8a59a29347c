"""What does a question say?"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_server.calls.approval_arguments import (
    format_argument_lines,
    format_look_alike_lines,
    format_value,
    lift_quotes,
    mark_secrets,
)
from mcp_server.calls.approval_contents import (
    format_content_lines,
    format_decoded_lines,
    is_content,
    is_long_content,
)
from mcp_server.calls.approval_losses import TRACKING
from mcp_server.calls.approval_parts import PARTS, format_part_lines
from mcp_server.guards.path_targets import SeenPath, Target
from mcp_server.guards.redaction import Redactor
from mcp_server.model.approvals import AnsweredBy, Approval, ApprovalMoment, ApprovalScope
from mcp_server.model.policy import Decision
from mcp_server.model.results import Code, Problem
from mcp_server.model.text import format_count, quote_as_json
from mcp_server.model.tools import Arguments, Effect, Tool
from mcp_server.policy.refusals import NEEDS_APPROVAL

# What is the person shown? Who asks, which tool, what it would do, and with which arguments.

MOST_SHOWN = 4_000
"""Characters of a question. Nobody reads more in a host's form, and some forms cut it off."""
MORE = 200
"""Characters that may still be added to a question, such as how to see the rest of it."""
MOST_READ = 1_000_000
"""Nobody reads more than this anywhere."""
MOST_REASON = 600
SERVER = "menugate"
STANDS = "it stands on"
"""A key among the places a call leads to: the facts that decide what it does. No argument has this name."""
NUMBER = re.compile(r"call (\d+) ")
STANDS_ON = "At the moment (if this changes before the tool runs, you are asked again):"
"""No argument can write a line of its own, so none can forge this one."""
BESIDE = "While this runs, which can change files before this call uses them (if that changes, you are asked again):"
TARGETS = "the targets"
"""Another such key: what the paths lead to, by path. Only files that would be overwritten are shown."""


UNTOLD = "why the files it runs are unknown"
"""A third: why the call may run files that the question does not name."""
MOMENT = "when it is approved"
"""A fourth: the `ApprovalMoment` that an approval for once depends on."""
PINNED = "the scripts that it runs"
"""Another: those of the targets that a sandboxed command gets as a copy."""
SEEN = "what is there"
"""A fifth: what the paths lead to, for the person to see. Nothing is bound to it."""
AGAIN = "why it is asked again"
"""A sixth: what has made an earlier approval of the same call void."""


EFFECTS: Mapping[Effect, str] = {
    Effect.NONE: "changes nothing",
    Effect.SESSION: "changes only this session",
    Effect.READ_LOCAL: "reads on this machine",
    Effect.READ_REMOTE: "reads from other machines",
    Effect.SPEND: "uses a service that may cost money",
    Effect.WRITE_LOCAL: "changes files on this machine",
    Effect.DESTROY_LOCAL: "deletes or replaces what is on this machine",
    Effect.VCS_LOCAL: "changes the repository on this machine",
    Effect.EXEC: "runs a command on this machine",
    Effect.BROWSER_ACT: "acts in a browser",
    Effect.REMOTE_WRITE: "changes something on another machine",
    Effect.PRODUCTION_MUTATION: "changes something in production",
    Effect.DELEGATE: "has another agent work",
}


def format_question(
    tool: Tool,
    arguments: Arguments,
    decision: Decision,
    redactor: Redactor,
    leads: Arguments | None = None,
    brief: bool = False,
) -> str:
    """Describe everything that would happen, the deciding part first. Every character is visible, and nothing is left
    out but known secrets, which are marked. No argument can write a line of the question. `brief`: shorten long
    contents of files, unless the file is protected, and nothing else."""
    leads = leads or {}
    # Other programs run what such a file says, so the middle of it is no place to hide a line.
    show_all = decision.demand is not None and decision.demand.always_asks
    lines = [
        *_format_head(tool, decision, redactor, leads.get(AGAIN, "")),
        "Arguments:" if arguments else "Arguments: none",
    ]
    for name in sort_names(tool, arguments):
        if brief and is_content(tool, name) and is_long_content(arguments[name]):
            before = find_replaced_text(leads) if name == "content" else None
            lines += format_content_lines(name, arguments[name], redactor, before, whole=show_all)
        else:
            lines += format_argument_lines(name, arguments[name], redactor)
        if not is_content(tool, name):
            lines += format_look_alike_lines(arguments[name])
        if arguments.get("encoding") == "base64" and is_content(tool, name):
            lines += format_decoded_lines(arguments[name], redactor, whole=show_all or not brief)
        if name in leads:
            lines.append(f"    (its links lead to {format_value(leads[name], redactor)})")
    lines += _format_facts(leads, redactor)
    stated = {one.path for one in leads.get(SEEN, ()) if one.kind == "file"}
    parts = [*format_part_lines(leads.get(PARTS, ()), redactor, stated)]
    size, more = len("\n".join(lines)), len("\n".join(parts))
    # The arguments say it as well, so this must not make a question too long for a form.
    return "\n".join(lines if size <= MOST_SHOWN - MORE < size + more else [*lines, *parts])


def _format_facts(leads: Arguments, redactor: Redactor) -> Iterator[str]:
    """Say what is at the paths now, and on what else the approval depends."""
    seen: Sequence[SeenPath] = leads.get(SEEN, ())
    yield from _format_file_lines(find_overwritten_files(leads), seen)
    facts = get_facts(leads)
    if facts:
        yield STANDS_ON
    for name, fact in facts.items():
        yield from format_argument_lines(name, fact, redactor, quoted=False)
    moment: ApprovalMoment | None = leads.get(MOMENT)
    if moment is not None and moment.beside:
        yield BESIDE
        yield from (f"  {format_value(one, redactor)}" for one in moment.beside)


def get_facts(leads: Arguments) -> Mapping[str, str]:
    """Return what else the approval depends on."""
    if UNTOLD not in leads:
        return leads.get(STANDS, {})
    # Then no file at all may change.
    last: ApprovalMoment = leads[MOMENT]
    number = NUMBER.match(last.changed)
    about = f"; `{SERVER} audit why {number[1]}` says more" if number else ""
    untold = {"files that it runs": f"menugate cannot tell: {leads[UNTOLD]}"}
    return {**leads.get(STANDS, {}), **untold, "the last call that changed anything": f"{last.changed}{about}"}


def _format_head(tool: Tool, decision: Decision, redactor: Redactor, again: str) -> Iterator[str]:
    """Say which tool would run, and why the user is asked."""
    why, quotes = lift_quotes(decision.reason.removeprefix(NEEDS_APPROVAL.format(tool.name)), decision.rule)
    yield f"{SERVER} asks before it runs the tool `{tool.name}`."
    yield f"Why: {mark_secrets(why, redactor)}"
    if again:
        yield f"You have approved this call before, but {mark_secrets(again, redactor)} since, so you are asked again."
    effect = decision.demand.effect if decision.demand else tool.effect
    yield f"Effect: {effect} ({EFFECTS[effect]})"
    for number, quote in enumerate(quotes, 1):
        yield from format_argument_lines(f"({number})", quote, redactor, quoted=False)


def _format_file_lines(overwritten: Sequence[Target], seen: Sequence[SeenPath]) -> Iterator[str]:
    """Say what is at each path now."""
    digests = {target.path: target for target in overwritten}
    files = {one.path: one for one in seen if one.kind == "file"}
    for path in dict.fromkeys((*digests, *files)):
        size = files[path].size if path in files else digests[path].size
        facts = [format_count(size, "byte")]
        facts += [f"SHA-256 {digests[path].sha256}"] if path in digests else []
        facts += [TRACKING[files[path].tracking]] if path in files else []
        yield f"  (there is a file at {quote_as_json(path)} now: {', '.join(facts)})"


def find_replaced_text(leads: Arguments) -> str | None:
    """Return the text of the one file that the call replaces, if it is the one that the approval is bound to."""
    texts = [one for one in leads.get(SEEN, ()) if one.text is not None]
    digests = {target.sha256 for target in find_overwritten_files(leads)}
    if len(texts) != 1 or hashlib.sha256(texts[0].text.encode()).hexdigest() not in digests:
        return None
    return texts[0].text


def find_overwritten_files(leads: Arguments) -> list[Target]:
    """Find the files that the call would overwrite or delete, as they are now."""
    targets: Mapping[str, tuple[Target, ...]] = leads.get(TARGETS, {})
    return list(dict.fromkeys(one for found in targets.values() for one in found if one.sha256))


def sort_names(tool: Tool, arguments: Arguments) -> list[str]:
    """Sort by what decides: the subject, the places, the rest as the tool declares them; incidental arguments come
    last."""
    subject = (tool.subject[0],) if tool.subject else ()
    declared: Mapping[str, Any] = tool.arguments.get("properties", {})
    deciding = [name for name in (*subject, *tool.places, *declared, *sorted(arguments)) if name not in tool.incidental]
    return [name for name in dict.fromkeys((*deciding, *tool.incidental)) if name in arguments]


def format_question_summary(whole: str, id: str) -> str:
    """Return what is shown in place of a question that is too long. It shows no part of the arguments, because a part
    would pass for all of them."""
    head, why, effect, _ = whole.split("\n", 3)
    why = why if len(why) <= MOST_REASON else "The reason is too long to show here."
    return (
        f"{head}\n{why}\n{effect}\nArguments: too long to show here. `{SERVER} approvals show {id}` shows all "
        f"{len(whole):,} characters of this question; it can be approved once you have seen them."
    )


def format_brief_note(id: str) -> str:
    return f"Long contents of files are shortened here. `{SERVER} approvals show {id}` shows all of them."


def build_scope_field(approval: Approval) -> Mapping[str, Any]:
    """Build the extra form field for how long the approval lasts, if the person may choose that."""
    if not approval.wanted.lasting:
        return {}
    once, session = ApprovalScope.ONCE, ApprovalScope.SESSION
    says = f"`{once}`: only this call. `{session}`: {approval.describe_session_scope()}."
    chosen = {
        "type": "string",
        "title": "For how long",
        "description": says,
        "enum": [str(once), str(session)],
    }
    return {"scope": chosen}


def build_missing_approval_problem(
    decision: Decision, approval: Approval, seconds: float, why: str = "", again: str = ""
) -> Problem:
    """Say how the user can answer: the client cannot ask, or was asked and gave no answer (`why`). `again`: what has
    made an earlier approval void."""
    unanswered = f"The client was asked and {why}, so the question is still open. " if why else ""
    unanswered = f"The user approved this call before, but {again} since. {unanswered}" if again else unanswered
    reads = f"read all of this call with `menugate approvals show {approval.id}`, then " if approval.is_unread else ""
    way_out = (
        f"{unanswered}Nothing ran. Use `message_user` to ask the user to {reads}run `menugate approve {approval.id}` "
        f"or `menugate deny {approval.id}` within {format_minutes(seconds)}. Then make the same call again."
    )
    data = {"layer": str(decision.layer), "rule": decision.rule, "approval": approval.id}
    return Problem(Code.APPROVAL_REQUIRED, decision.reason, way_out, data)


def build_unreadable_question_problem(tool: Tool, size: int) -> Problem:
    message = f"this call to `{tool.name}` needs approval but is too long to read: {size:,} characters. Nothing ran."
    return Problem(Code.TOO_LARGE, message, f"Split it into calls of fewer than {MOST_READ:,} characters each.")


def build_too_many_questions_problem(tool: Tool) -> Problem:
    message = f"this call to `{tool.name}` needs approval, but too many questions to the user are open. Nothing ran."
    way_out = (
        "The user has to answer some of them first: ask for that with `message_user`, and name `menugate approvals`, "
        "which lists them. Then make the call again."
    )
    return Problem(Code.APPROVAL_REQUIRED, message, way_out)


def build_lapsed_approval_problem(tool: Tool, why: str) -> Problem:
    message = f"the approval of this call to `{tool.name}` does not count: {why}. Nothing ran."
    return Problem(Code.APPROVAL_REQUIRED, message, "Make the call again; the user will be asked again.")


def build_denied_approval_problem(tool: Tool, approval: Approval) -> Problem:
    door = format_door(approval)
    message = f"the user was asked about this call to `{tool.name}` and declined it {door}. Nothing ran."
    said = f" They say: {approval.reason}" if approval.reason else ""
    return Problem(Code.APPROVAL_DENIED, message, f"Find another way, or ask what they would prefer.{said}")


def format_late_refusal(approval: Approval) -> str:
    return (
        f"The user approved this call {format_door(approval)} before the client declined it. The first answer counts, "
        "so the call ran."
    )


def format_door(approval: Approval) -> str:
    """Say where the question was answered."""
    return "at a terminal" if approval.way is AnsweredBy.PERSON else "in the client"


def format_minutes(seconds: float) -> str:
    whole = max(1, round(seconds / 60))
    return f"{whole} minutes" if whole != 1 else "a minute"
