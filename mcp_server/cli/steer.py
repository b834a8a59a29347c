"""`menugate steer`: change one axis now or later, cancel a change, or confirm one that requires it."""

import argparse
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcp_server.cli.badge import show_badge, show_pending_changes
from mcp_server.cli.output import CliError, ask_at_terminal, print_json, say, say_foreign
from mcp_server.cli.parser import CommandGroup
from mcp_server.cli.posture import ChoiceContext, add_principal_flags, change_posture, load_choice_context
from mcp_server.cli.usage import join_names
from mcp_server.model.posture import (
    AXES,
    ChangeScope,
    Posture,
    PostureChange,
    format_value,
    is_wider,
    list_axis_words,
)
from mcp_server.policy.badge import describe_wish
from mcp_server.views.posture import build_posture_view, find_principal, open_state_reader, posture_to_json
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.settings import Settings

EXAMPLES = """
menugate steer mode repair                       now
menugate steer mode review after-current-unit    when the current unit of work is done
menugate steer profile trusted for-next-unit     for the next unit of work only
menugate steer                                   the pending changes
menugate steer --cancel 3fa1c2                   cancel one change; `--cancel all` cancels them all
menugate steer --confirm 3fa1c2                  confirm a change that a prompt or `doctor` requested
"""
EVERY = tuple(dict.fromkeys(str(word) for kind in AXES.values() for word in list_axis_words(kind)))


def add(commands: CommandGroup) -> None:
    from mcp_server.policy.phrases import BY_NAME

    one = commands.add("steer", EXAMPLES, run)
    one.add_argument("axis", nargs="?", metavar="AXIS", choices=tuple(BY_NAME), help="what to change")
    one.add_argument("value", nargs="?", metavar="VALUE", choices=EVERY, help="its new value")
    scopes = tuple(map(str, ChangeScope))
    one.add_argument("scope", nargs="?", metavar="WHEN", choices=scopes, help="when it takes effect")
    one.add_argument("--cancel", metavar="ID", action="append", help="cancel this change, or `all`")
    one.add_argument("--confirm", metavar="ID", help="confirm this change")
    add_principal_flags(one)


def run(arguments: argparse.Namespace) -> int:
    context = load_choice_context(arguments)
    wishes = [arguments.axis is not None, bool(arguments.cancel), arguments.confirm is not None]
    if sum(wishes) > 1:
        raise CliError("give a change, --cancel or --confirm, but only one of them.", code=2)
    if arguments.axis is not None:
        return steer_axis(arguments, context)
    whose = find_principal(arguments.whom, context.settings, context.limits)
    if arguments.cancel:
        cancel_changes(arguments, context.settings, whose)
    if arguments.confirm is not None:
        confirm_change(arguments, context, whose)
    return show_posture(arguments, context, whose)


def steer_axis(arguments: argparse.Namespace, context: ChoiceContext) -> int:
    from mcp_server.policy.phrases import Unclear, find_axis, parse_axis_value

    if arguments.value is None:
        raise CliError(f"say what to set `{arguments.axis}` to.", code=2)
    axis = find_axis(arguments.axis)
    try:
        axes = {axis: parse_axis_value(axis, arguments.value)}
    except Unclear as unclear:
        raise CliError(str(unclear), code=2) from None
    return change_posture(arguments, axes, ChangeScope(arguments.scope or ChangeScope.NOW), context)


def cancel_changes(arguments: argparse.Namespace, settings: "Settings", whose: str) -> None:
    from mcp_server.calls.terminal import drop_posture_changes

    with open_state_reader(settings) as state:
        choice = state.load_choices().get(whose) if state else None
    known = [*(one.id for one in choice.waiting), *(one.change.id for one in choice.trials)] if choice else []
    ids = known if "all" in arguments.cancel else arguments.cancel
    if missing := [id for id in ids if id not in known]:
        raise CliError(f"no pending change has the id {join_names(missing)}; `menugate steer` lists them.")
    drop_posture_changes(settings, whose, ids)


def confirm_change(arguments: argparse.Namespace, context: ChoiceContext, whose: str) -> None:
    from mcp_server.calls.terminal import confirm_posture_change, refuse_inside_server
    from mcp_server.policy.posture import find_confirmable_change

    settings = context.settings
    refuse_inside_server(settings)  # first: a program must not see the request
    with open_state_reader(settings) as state:
        stands = build_posture_view(settings, context.limits, state, False, whose)
        history = state.find_change_rows(whose, arguments.confirm) if state else []
    known = find_confirmable_change(stands.choice, arguments.confirm, time.time_ns()) if stands.choice else None
    if known is not None and sys.stdin.isatty():
        ask_to_confirm(known, stands.posture)
    if confirm_posture_change(settings, whose, arguments.confirm) is None or known is None:
        raise CliError(describe_unconfirmable(arguments.confirm, history[-1].fields if history else {}))
    if not arguments.json:
        say(f"Confirmed: {describe_wish(known)}, {known.scope}.")


def ask_to_confirm(change: PostureChange, now: Posture) -> None:
    """Show what would change. Whoever told you the id may have told you something else about the change."""
    say(f"This change was requested {format_time(change.asked)} by:")
    say_foreign(change.reason, "  > ", "  > ")
    say(f"It takes effect {change.scope}:")
    for line in list_steps(change, now):
        say(f"  {line}")
    if ask_at_terminal("Confirm this change? [y/N] ").lower() not in ("y", "yes"):
        how = f"To drop the request: `menugate steer --cancel {change.id}`."
        raise CliError(f"nothing was changed; the request is still open. {how}")


def list_steps(change: PostureChange, now: Posture) -> list[str]:
    """List every axis that the change sets, with the value in force and whether the new one allows more."""
    if change.units:
        return [describe_wish(change)]
    steps: list[str] = []
    for axis in (one for one in AXES if one in change.axes):
        before, value = getattr(now, axis), change.axes[axis]
        step = (
            f"from {format_value(before)} to {format_value(value)}"
            if before != value
            else f"stays {format_value(value)}"
        )
        steps.append(f"{axis.replace('_', ' ')} {step}{' (allows more)' if is_wider(axis, value, before) else ''}")
    return steps


def describe_unconfirmable(id: str, last: "Mapping[str, Any]") -> str:
    """Say why there is nothing to confirm. `last`: the newest row about this change."""
    event, wanted = str(last.get("event") or ""), last.get("wanted")
    if not wanted:
        return (
            f"no change with the id {id} is waiting for confirmation. `menugate steer` lists pending changes; add "
            "--for NAME for those of another principal."
        )
    if event == "in force":
        return f"the request {id} ({wanted}) is no longer open: it is in force already."
    if event in ("asked", "") or event.startswith("not agreed"):
        event = "expired after an hour, or replaced by a newer one"
    how = " and ".join(f"`menugate {line}`" for line in list_typed_lines(str(wanted)))
    return f"the request {id} ({wanted}) is no longer open: {event}. Nothing was changed; to do it now, type {how}."


def list_typed_lines(wanted: str) -> list[str]:
    """List the commands that do what the record says was requested: `profile trusted, now`."""
    from mcp_server.policy.phrases import TYPED

    steps = (step.split(" ") for step in wanted.split(", ")[:-1])
    return [f"{TYPED.get(axis, axis)} {value}" for axis, value in steps]


def show_posture(arguments: argparse.Namespace, context: ChoiceContext, whose: str) -> int:
    with open_state_reader(context.settings) as state:
        stands = build_posture_view(context.settings, context.limits, state, False, whose)
    if arguments.json:
        print_json(posture_to_json(stands))
        return 0
    show_badge(stands.posture)
    show_pending_changes(stands.choice)
    if not stands.choice or not stands.choice.has_pending_changes:
        say("no pending changes")
    return 0
