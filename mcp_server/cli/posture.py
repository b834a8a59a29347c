"""`menugate mode`, `control`, `profile`, `model`, `ai-mode`, `reasoning`, `autonomous`: show or set the posture."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcp_server.cli.badge import set_terminal_title, show_badge, show_pending_changes
from mcp_server.cli.output import CliError, note, print_json, say
from mcp_server.cli.parser import CommandGroup, add_json, add_place, settings_from_arguments
from mcp_server.cli.servers import ServerJudgement, load_judgement_for_choice
from mcp_server.model.posture import AXES, ChangeScope, PostureChange, format_value, list_axis_words
from mcp_server.model.text import format_count
from mcp_server.views.posture import (
    PostureView,
    build_posture_view,
    describe_other_account,
    find_principal,
    find_session,
    list_running_servers,
    open_state_reader,
    posture_to_json,
)

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.model.posture import PostureChoice, Value
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
menugate profile trusted                         commits and any command run unasked, in the sandbox
menugate profile trusted --scope for-next-unit   for one unit of work, then back again
menugate profile restricted --for alice          for somebody who connects with a token
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
menugate ai-mode agent    act
""",
    ),
    "reasoning": (
        "reasoning",
        """
menugate reasoning on     runs start with a plan, and think between steps
menugate reasoning off    runs act at once
""",
    ),
}
AUTONOMOUS = """
menugate autonomous                                runs continue until done, blocked or out of budget
menugate autonomous --permission-profile normal    and under this profile
"""


def add(commands: CommandGroup) -> None:
    for noun, (axis, examples) in NOUNS.items():
        one = commands.add(noun, examples, run)
        words = tuple(map(str, list_axis_words(AXES[axis])))
        one.add_argument("value", nargs="?", metavar="VALUE", choices=words, help="what to set it to")
        one.set_defaults(axis=axis)
        add_change_flags(one, axis)
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
    one.add_argument(
        "--for", dest="whom", metavar="PRINCIPAL", help="choose for somebody else, by the name of their token"
    )
    one.add_argument("--reason", metavar="TEXT", default="", help="why, for the record")
    add_place(one)
    add_json(one)


def run(arguments: argparse.Namespace) -> int:
    judged = load_judgement_for_choice(arguments, settings_from_arguments(arguments))
    axes = parse_axes(arguments)
    if not axes:
        if arguments.scope:
            raise CliError("say what to set, for example `menugate mode plan --scope after-current-unit`.", code=2)
        return show_axis(arguments, judged)
    return change_posture(
        arguments, axes, ChangeScope(arguments.scope or ChangeScope.NOW), judged.settings, judged.configuration
    )


def parse_axes(arguments: argparse.Namespace) -> "dict[str, Value]":
    from mcp_server.policy.phrases import parse_axis_value

    words = {axis: getattr(arguments, f"axis_{axis}", None) for axis in AXES}
    if getattr(arguments, "autonomous", False):
        if words["run_control"] not in (None, "autonomous"):
            raise CliError(f"`--autonomous` and `--control {words['run_control']}` cannot both hold.", code=2)
        words["run_control"] = "autonomous"
    if arguments.value is not None:
        words[arguments.axis] = arguments.value
    return {axis: parse_axis_value(axis, word) for axis, word in words.items() if word is not None}


def show_axis(arguments: argparse.Namespace, judged: ServerJudgement) -> int:
    settings, found = judged.settings, judged.configuration
    whose = find_principal(arguments.whom, settings, found)
    with open_state_reader(settings) as state:
        stands = build_posture_view(settings, found, state, judged.has_profile_flag, whose)
    axis = arguments.axis
    value, origin = format_value(getattr(stands.posture, axis)), stands.origins[axis]
    if arguments.json:
        print_json({"axis": axis, "value": getattr(stands.posture, axis), "from": origin, **posture_to_json(stands)})
        return 0
    say(f"{axis.replace('_', ' ')} ", (value, "bold"), (f"  {origin}", "dim"))
    show_pending_changes(stands)
    return 0


def change_posture(
    arguments: argparse.Namespace,
    axes: "Mapping[str, Value]",
    scope: ChangeScope,
    settings: "Settings",
    found: "Configuration",
) -> int:
    import asyncio

    from mcp_server.model.results import Problem, Refusal
    from mcp_server.person import make_short_id, open_posture_changes
    from mcp_server.state.engine.rows import VersionMoved

    whose = find_principal(arguments.whom, settings, found)
    reason = arguments.reason or "typed at a terminal"
    session = find_session(arguments.session, settings) if arguments.session else ""
    change = PostureChange(
        make_short_id(), axes, scope, reason, session=session if scope is not ChangeScope.NOW else ""
    )

    async def request_change() -> "PostureChoice | Problem":
        async with open_posture_changes(found, settings) as changes:
            answer = await changes.request_change(whose, change)
            assert not isinstance(answer, VersionMoved), "no epoch was given that could have passed"
            return answer

    try:
        answer = asyncio.run(request_change())
    except Refusal as refused:
        raise CliError(f"{refused.problem.message} {refused.problem.way_out}") from None
    if isinstance(answer, Problem):
        raise CliError(f"{answer.message} {answer.way_out}")
    with open_state_reader(settings) as state:
        stands = build_posture_view(settings, found, state, False, whose)
        servers = list_running_servers(state) if state else []
    show_change(arguments, change, stands, servers)
    if other := describe_other_account(settings):
        note(other)
    set_terminal_title(stands.posture, settings.workspace.name)
    return 0


def show_change(
    arguments: argparse.Namespace, change: PostureChange, stands: PostureView, servers: list[dict[str, object]]
) -> None:
    from mcp_server.policy.badge import describe_axis_values, describe_change_timing

    held = stands.choice
    waiting = next((one for one in held.waiting if one.id == change.id), None) if held else None
    if arguments.json:
        about = {"id": change.id, "asked": change.axes, "scope": change.scope, "in_force": waiting is None}
        print_json(about | posture_to_json(stands) | {"servers": servers})
        return
    say(
        f"{describe_axis_values(change.axes)}: ",
        "in force" if waiting is None else f"takes effect {describe_change_timing(waiting)}",
    )
    show_badge(stands.posture)
    show_pending_changes(stands)
    wished = format_value(change.axes.get("profile"))
    if waiting is None and "profile" in change.axes and wished != stands.posture.profile:
        note(f"The ceiling keeps the profile at {stands.posture.profile}.")
    if servers:
        follow = "follows" if len(servers) == 1 else "follow"
        note(f"{format_count(len(servers), 'running server')} {follow} within half a second.")
