"""`menugate mode`, `control`, `profile`, `model`, `ai-mode`, `reasoning`, `autonomous`: the person chooses."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcp_server.cli.badge import entitle, show_badge, show_to_come
from mcp_server.cli.output import CliError, as_json, note, say
from mcp_server.cli.parser import Commands, add_json, add_place, settings_of
from mcp_server.cli.servers import ServerJudgement, judging_to_choose
from mcp_server.model.posture import AXES, ChangeScope, PostureChange, word_of, words_of
from mcp_server.views.posture import (
    PostureView,
    holding,
    in_json,
    principal_meant,
    remembering,
    serving,
    session_meant,
    tell_alone,
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
NOUNS: Mapping[str, tuple[str, str, str]] = {
    "mode": (
        "work_mode",
        "choose the kind of work, or show it",
        """
menugate mode                                                   what holds, and who says so
menugate mode plan                                              from now on only read and plan
menugate mode repair --autonomous --permission-profile normal   several axes in one step
menugate mode review --scope after-current-unit                 once what runs now is done
""",
    ),
    "control": (
        "run_control",
        "choose who advances the run, or show it",
        """
menugate control manual                            ask before every effect
menugate control assisted --scope next-milestone   from the next run on, pause after every unit
""",
    ),
    "profile": (
        "profile",
        "choose what may run without asking, or show it",
        """
menugate profile                                 what holds, and the ceiling
menugate profile trusted                         commits and any command run unasked, commands shut in
menugate profile trusted --scope for-next-unit   for one unit of work; then back by itself
menugate profile restricted --for alice          for somebody who comes in with a token
""",
    ),
    "model": (
        "model_mode",
        "choose how much thought is spent, or show it",
        """
menugate model deep                           slower and more thorough
menugate model fast --scope next-milestone    from the next run on
""",
    ),
    "ai-mode": (
        "ai_mode",
        "choose whether the agent acts or only talks, or show it",
        """
menugate ai-mode chat     nothing is changed, whatever the profile
menugate ai-mode agent    it acts
""",
    ),
    "reasoning": (
        "reasoning",
        "switch the stages of reasoning on or off, or show it",
        """
menugate reasoning on     a run opens with a plan, and thinks between its steps
menugate reasoning off    no ceremony
""",
    ),
}
AUTONOMOUS = """
menugate autonomous                                the run goes on until it is done, blocked or out of budget
menugate autonomous --permission-profile normal    and under this profile
"""


def add(commands: Commands) -> None:
    for noun, (axis, purpose, examples) in NOUNS.items():
        one = commands.add(noun, purpose, examples, run)
        words = tuple(map(str, words_of(AXES[axis])))
        one.add_argument("value", nargs="?", metavar="VALUE", choices=words, help=", ".join(words))
        one.set_defaults(axis=axis)
        add_change(one, axis)
    one = commands.add("autonomous", "let the run go on by itself: `control autonomous`", AUTONOMOUS, run)
    one.set_defaults(axis="run_control", value="autonomous")
    add_change(one, "run_control")


def add_change(one: argparse.ArgumentParser, axis: str = "") -> None:
    for other, flags in FLAGS.items():
        if other != axis:
            words = tuple(map(str, words_of(AXES[other])))
            name, values = other.replace("_", " "), ", ".join(words)
            one.add_argument(
                *flags, dest=f"axis_{other}", metavar="VALUE", choices=words, help=f"and the {name}: {values}"
            )
    if axis != "run_control":
        one.add_argument("--autonomous", action="store_true", help="and run control `autonomous`")
    scopes = tuple(map(str, ChangeScope))
    one.add_argument("--scope", choices=scopes, metavar="WHEN", help=f"from when on: {', '.join(scopes)}")
    add_whom(one)


def add_whom(one: argparse.ArgumentParser) -> None:
    one.add_argument("--session", metavar="ID", default="", help="count the units of this session alone")
    one.add_argument("--for", dest="whom", metavar="PRINCIPAL", help="for somebody else than you, by the token's name")
    one.add_argument("--reason", metavar="TEXT", default="", help="why, for the record")
    add_place(one)
    add_json(one)


def run(arguments: argparse.Namespace) -> int:
    judged = judging_to_choose(arguments, settings_of(arguments))
    axes = axes_in(arguments)
    if not axes:
        if arguments.scope:
            raise CliError("say what is to change, such as `menugate mode plan --scope after-current-unit`.", code=2)
        return looked(arguments, judged)
    return changed(arguments, axes, ChangeScope(arguments.scope or ChangeScope.NOW), judged.settings, judged.law)


def axes_in(arguments: argparse.Namespace) -> "dict[str, Value]":
    from mcp_server.policy.phrases import valued

    words = {axis: getattr(arguments, f"axis_{axis}", None) for axis in AXES}
    if getattr(arguments, "autonomous", False):
        if words["run_control"] not in (None, "autonomous"):
            raise CliError(f"`--autonomous` and `--control {words['run_control']}` cannot both hold.", code=2)
        words["run_control"] = "autonomous"
    if arguments.value is not None:
        words[arguments.axis] = arguments.value
    return {axis: valued(axis, word) for axis, word in words.items() if word is not None}


def looked(arguments: argparse.Namespace, judged: ServerJudgement) -> int:
    settings, found = judged.settings, judged.law
    whose = principal_meant(arguments.whom, settings, found)
    with remembering(settings) as state:
        stands = holding(settings, found, state, judged.by_flag, whose)
    axis = arguments.axis
    value, origin = word_of(getattr(stands.posture, axis)), stands.origins[axis]
    if arguments.json:
        as_json({"axis": axis, "value": getattr(stands.posture, axis), "from": origin, **in_json(stands)})
        return 0
    say(f"{axis.replace('_', ' ')} ", (value, "bold"), (f"  {origin}", "dim"))
    show_to_come(stands)
    return 0


def changed(
    arguments: argparse.Namespace,
    axes: "Mapping[str, Value]",
    scope: ChangeScope,
    settings: "Settings",
    found: "Configuration",
) -> int:
    import asyncio

    from mcp_server.model.results import Problem, Refusal
    from mcp_server.person import doors_open, short_id
    from mcp_server.state.engine.rows import VersionMoved

    whose = principal_meant(arguments.whom, settings, found)
    reason = arguments.reason or "typed at a terminal"
    session = session_meant(arguments.session, settings) if arguments.session else ""
    change = PostureChange(short_id(), axes, scope, reason, session=session if scope is not ChangeScope.NOW else "")

    async def asked() -> "PostureChoice | Problem":
        async with doors_open(found, settings) as doors:
            answer = await doors.ask(whose, change)
            assert not isinstance(answer, VersionMoved), "no epoch was given that could have passed"
            return answer

    try:
        answer = asyncio.run(asked())
    except Refusal as refused:
        raise CliError(f"{refused.problem.message} {refused.problem.way_out}") from None
    if isinstance(answer, Problem):
        raise CliError(f"{answer.message} {answer.way_out}")
    with remembering(settings) as state:
        stands = holding(settings, found, state, False, whose)
        servers = serving(state) if state else []
    tell(arguments, change, stands, servers)
    tell_alone(settings)
    entitle(stands.posture, settings.workspace.name)
    return 0


def tell(
    arguments: argparse.Namespace, change: PostureChange, stands: PostureView, servers: list[dict[str, object]]
) -> None:
    from mcp_server.policy.badge import named, until

    held = stands.choice
    waiting = next((one for one in held.waiting if one.id == change.id), None) if held else None
    if arguments.json:
        about = {"id": change.id, "asked": change.axes, "scope": change.scope, "in_force": waiting is None}
        as_json(about | in_json(stands) | {"servers": servers})
        return
    say(f"{named(change.axes)}: ", "in force" if waiting is None else f"comes into force {until(waiting)}")
    show_badge(stands.posture)
    show_to_come(stands)
    wished = word_of(change.axes.get("profile"))
    if waiting is None and "profile" in change.axes and wished != stands.posture.profile:
        note(f"A ceiling keeps the profile at {stands.posture.profile}.")
    if servers:
        count = len(servers)
        note(f"{count} running server{'s follow' if count > 1 else ' follows'} within half a second.")
