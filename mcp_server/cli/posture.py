"""`menugate mode`, `control`, `profile`, `model`, `ai-mode`, `reasoning`, `autonomous`: show or set the posture."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from mcp_server.cli.badge import set_terminal_title, show_badge, show_pending_changes
from mcp_server.cli.output import CliError, note, print_json, say
from mcp_server.cli.parser import CommandGroup, add_json, add_place, settings_from_arguments
from mcp_server.model.posture import AXES, ChangeScope, PostureChange, find_axis_value, format_value, list_axis_words
from mcp_server.model.text import format_count
from mcp_server.views.posture import (
    build_posture_view,
    describe_other_account,
    find_principal,
    find_session,
    list_running_servers,
    open_state_reader,
    posture_to_json,
)

if TYPE_CHECKING:
    from mcp_server.config.limits import Limits
    from mcp_server.model.posture import Posture, PostureChoice, Value
    from mcp_server.settings import Settings

FLAGS: Mapping[str, tuple[str, ...]] = {
    "work_mode": ("--mode",),
    "run_control": ("--control",),
    "profile": ("--permission-profile",),
    "model_mode": ("--model-mode", "--model"),
    "ai_mode": ("--ai-mode",),
    "reasoning": ("--reasoning",),
}
NOUNS: Mapping[str, tuple[str, str]] = {
    "mode": (
        "work_mode",
        """
menugate mode                                                   the work mode, and who set it
menugate mode plan                                              only read and plan from now on
menugate mode repair --autonomous --permission-profile normal   set several axes at once
menugate mode review --scope after-current-unit                 when the current unit of work is done
""",
    ),
    "control": (
        "run_control",
        """
menugate control manual                            ask you before every change
menugate control assisted --scope next-milestone   from the next run on, pause after every unit of work
""",
    ),
    "profile": (
        "profile",
        """
menugate profile                                 the profile, and who set it
menugate profile trusted                         commits and all commands run in the sandbox without asking you
menugate profile trusted --scope for-next-unit   for the next unit of work only
menugate profile restricted --for alice          for alice, who connects with her own token
""",
    ),
    "model": (
        "model_mode",
        """
menugate model deep                           recorded with every call from now on; no tool uses it yet
menugate model fast --scope next-milestone    recorded from the next run on
""",
    ),
    "ai-mode": (
        "ai_mode",
        """
menugate ai-mode chat     talk only; change nothing, whatever the profile
menugate ai-mode agent    act, as far as the profile allows
""",
    ),
    "reasoning": (
        "reasoning",
        """
menugate reasoning on     runs start with a plan and think between steps
menugate reasoning off    runs act at once
""",
    ),
}
AUTONOMOUS = """
menugate autonomous                                runs continue until done, blocked or out of budget
menugate autonomous --permission-profile normal    also set the profile
"""


def add(commands: CommandGroup) -> None:
    for noun, (axis, examples) in NOUNS.items():
        if commands.only in (None, noun):
            one = commands.add(noun, examples, run)
            words = tuple(map(str, list_axis_words(AXES[axis])))
            one.add_argument("value", nargs="?", metavar="VALUE", choices=words, help="the new value")
            one.set_defaults(axis=axis)
            add_change_flags(one, axis)
    if commands.only in (None, "autonomous"):
        one = commands.add("autonomous", AUTONOMOUS, run)
        one.set_defaults(axis="run_control", value="autonomous")
        add_change_flags(one, "run_control")


def add_change_flags(one: argparse.ArgumentParser, axis: str = "") -> None:
    for other, flags in FLAGS.items():
        if other != axis:
            words = tuple(map(str, list_axis_words(AXES[other])))
            name = other.replace("_", " ").replace("ai ", "AI ")
            one.add_argument(*flags, dest=f"axis_{other}", metavar="VALUE", choices=words, help=f"also set the {name}")
    if axis != "run_control":
        one.add_argument("--autonomous", action="store_true", help="also set run control to `autonomous`")
    scopes = tuple(map(str, ChangeScope))
    one.add_argument("--scope", choices=scopes, metavar="WHEN", help="when it takes effect")
    add_principal_flags(one)


def add_principal_flags(one: argparse.ArgumentParser) -> None:
    one.add_argument("--session", metavar="ID", default="", help="with --scope, count only this session's units")
    one.add_argument("--for", dest="whom", metavar="PRINCIPAL", help="set it for another principal, such as `alice`")
    one.add_argument("--reason", metavar="TEXT", default="", help="the reason, for the record")
    add_place(one)
    add_json(one)


class ChoiceContext(Struct, frozen=True):
    """What limits your choice."""

    settings: "Settings"
    limits: "Limits"
    has_profile_flag: bool = False
    """True if the profile to start with comes from an option of a running server."""


def load_choice_context(arguments: argparse.Namespace) -> ChoiceContext:
    """Load the limits from the files. If they have faults you can still choose: then the limits of a running server
    apply, or those without the workspace's own file."""
    from mcp_server.config.limits import load_limits

    settings = settings_from_arguments(arguments, place_only=True)
    if (limits := load_limits(settings)) is not None:
        return ChoiceContext(settings, limits)
    from mcp_server.cli.servers import load_judgement_for_choice
    from mcp_server.config.load import get_limits

    judged = load_judgement_for_choice(arguments, settings_from_arguments(arguments))
    return ChoiceContext(judged.settings, get_limits(judged.configuration, judged.settings), judged.has_profile_flag)


def run(arguments: argparse.Namespace) -> int:
    context = load_choice_context(arguments)
    axes = parse_axes(arguments)
    if not axes:
        if arguments.scope:
            raise CliError("say what to set, for example `menugate mode plan --scope after-current-unit`.", code=2)
        return show_axis(arguments, context)
    return change_posture(arguments, axes, ChangeScope(arguments.scope or ChangeScope.NOW), context)


def parse_axes(arguments: argparse.Namespace) -> "dict[str, Value]":
    words = {axis: getattr(arguments, f"axis_{axis}", None) for axis in AXES}
    if getattr(arguments, "autonomous", False):
        if words["run_control"] not in (None, "autonomous"):
            raise CliError(
                f"`--autonomous` and `--control {words['run_control']}` contradict each other; give one of them.",
                code=2,
            )
        words["run_control"] = "autonomous"
    if arguments.value is not None:
        words[arguments.axis] = arguments.value
    # Every word is one of the choices of its option.
    values = {axis: find_axis_value(axis, word) for axis, word in words.items() if word is not None}
    return {axis: value for axis, value in values.items() if value is not None}


def show_axis(arguments: argparse.Namespace, context: ChoiceContext) -> int:
    settings, limits = context.settings, context.limits
    whose = find_principal(arguments.whom, settings, limits)
    with open_state_reader(settings) as state:
        stands = build_posture_view(settings, limits, state, context.has_profile_flag, whose)
    axis = arguments.axis
    value, origin = format_value(getattr(stands.posture, axis)), stands.origins[axis]
    if arguments.json:
        print_json({"axis": axis, "value": getattr(stands.posture, axis), "from": origin, **posture_to_json(stands)})
        return 0
    say(f"{axis.replace('_', ' ')} ", (value, "bold"), (f"  {origin}", "dim"))
    show_pending_changes(stands.choice)
    return 0


def change_posture(
    arguments: argparse.Namespace, axes: "Mapping[str, Value]", scope: ChangeScope, context: ChoiceContext
) -> int:
    from mcp_server.calls.terminal import request_posture_change
    from mcp_server.state.ids import make_short_id

    settings, limits = context.settings, context.limits
    whose = find_principal(arguments.whom, settings, limits)
    reason = arguments.reason or "typed at a terminal"
    session = find_session(arguments.session, settings) if arguments.session else ""
    change = PostureChange(
        make_short_id(), axes, scope, reason, session=session if scope is not ChangeScope.NOW else ""
    )
    choice = request_posture_change(settings, limits, whose, change)
    posture = limits.apply_choice(whose, choice)
    if arguments.json:
        print_json(change_to_json(change, context, whose))
    else:
        show_change(settings, change, choice, posture)
    if other := describe_other_account(settings):
        note(other)
    set_terminal_title(posture, settings.workspace.name)
    return 0


def show_change(settings: "Settings", change: PostureChange, choice: "PostureChoice", posture: "Posture") -> None:
    from mcp_server.policy.badge import describe_axis_values, describe_change_timing
    from mcp_server.state.servers import load_servers

    waiting = next((one for one in choice.waiting if one.id == change.id), None)
    say(
        f"{describe_axis_values(change.axes)}: ",
        "in force" if waiting is None else f"takes effect {describe_change_timing(waiting)}",
    )
    show_badge(posture)
    if choice.has_pending_changes:
        show_pending_changes(choice)
    wished = format_value(change.axes.get("profile"))
    if waiting is None and "profile" in change.axes and wished != posture.profile:
        note(f"The ceiling keeps the profile at {posture.profile}.")
    if servers := load_servers(settings.state):
        follow = "follows" if len(servers) == 1 else "follow"
        note(f"{format_count(len(servers), 'running server')} {follow} within half a second.")


def change_to_json(change: PostureChange, context: ChoiceContext, whose: str) -> dict[str, object]:
    with open_state_reader(context.settings) as state:
        stands = build_posture_view(context.settings, context.limits, state, False, whose)
        servers = list_running_servers(state) if state else []
    in_force = stands.choice is None or change.id not in [one.id for one in stands.choice.waiting]
    about = {"id": change.id, "asked": change.axes, "scope": change.scope, "in_force": in_force}
    return {**about, **posture_to_json(stands), "servers": servers}
