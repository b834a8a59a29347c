"""What do the slash commands do? Each is a prompt, offered if the host is known to reserve prompts for its user.

Getting the prompt runs the command: it changes the caller's own posture and answers with the new one. Some hosts fill
in arguments that the user did not type, so an empty value or a placeholder changes nothing. A change that allows more
must be approved first; any other never allows more, whatever the operator changes later.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.posture import PostureChanges
from mcp_server.calls.posture_raise import SETTLED, ProfileRaise, RaiseAnswer
from mcp_server.model.posture import (
    AXES,
    ChangeScope,
    ChangeSource,
    Posture,
    PostureChange,
    PostureChoice,
    format_value,
)
from mcp_server.model.results import Problem
from mcp_server.model.tool_packs import Message, PromptArgument, PromptCaller, SlashCommand
from mcp_server.policy import badge
from mcp_server.policy.phrases import NAMES, Phrase, Unclear, find_axis, list_axis_values, parse_phrase
from mcp_server.policy.posture_width import is_delaying_narrowing, is_widening, is_wider
from mcp_server.state.engine.rows import Clock, VersionMoved


def format_widening_question(now: Posture, narrowest: Posture, change: PostureChange) -> str:
    """Show every axis that the approval would change, also those that would allow less."""
    steps: list[str] = []
    is_wide = is_widening(narrowest, change.axes)
    for axis in (one for one in AXES if one in change.axes):
        value = change.axes[axis]
        before = getattr(narrowest if is_wider(axis, value, getattr(narrowest, axis)) else now, axis)
        start = f" from {format_value(before)} to" if before != value and is_wide else ""
        steps.append(f"{axis.replace('_', ' ')}{start} {format_value(value)}")
    what = ", ".join(steps) + ("" if is_wide else ", instead of a narrower value that is pending")
    return f"A command in this client asks for more than you allow now: {what} ({change.scope})."


# The answer to a command states the current posture and what is pending, and asks nothing of the model.

AFTERWARDS = "The user chose this. It is for your information only; continue the task under the posture in force."
UNCHOSEN = "This is for your information only; continue the task under the current posture."


def describe_posture(posture: Posture, choice: PostureChoice | None) -> str:
    """Show the badge, every axis, and what is pending."""
    lines = [f"In force: {badge.format_full_badge(posture)}"]
    axes = badge.describe_axes(posture)
    lines.append(f"AI mode {axes['ai_mode']}, reasoning {axes['reasoning']}.")
    lines += [f"Pending: {words} ({change.id})" for change, words in badge.describe_pending_changes(choice)]
    return "\n".join(lines)


def describe_change(what: str, posture: Posture, choice: PostureChoice | None, chosen: bool = True) -> str:
    """`chosen`: the user chose it. A change that still needs confirmation is not their choice yet."""
    return f"{what}\n{describe_posture(posture, choice)}\n{AFTERWARDS if chosen else UNCHOSEN}"


MOVED = "Nothing was changed: the posture changed at the same time. Type the command again."
SCOPES = tuple(map(str, ChangeScope))
EVERY_VALUE = tuple(dict.fromkeys(value for axis in AXES for value in list_axis_values(axis)))


class SlashCommands(Struct, frozen=True):
    changes: PostureChanges
    raising: ProfileRaise
    examine: Callable[[bool], Awaitable[str]]
    """Returns the doctor's report; True repairs what can be repaired first."""
    clock: Clock

    def build_commands(self) -> tuple[SlashCommand, ...]:
        mode = self._build_axis_command("mode", "Work mode", "Choose the kind of work", "work_mode", "mode", more=True)
        control = self._build_axis_command(
            "control", "Run control", "Choose how far the run goes on its own", "run_control", "control"
        )
        does = "Choose what may run without asking you"
        profile = self._build_axis_command("permission-profile", "Permission profile", does, "profile", "profile")
        model = self._build_axis_command(
            "model-mode", "Model mode", "Choose a value that is only recorded for now", "model_mode", "model"
        )
        return (
            mode,
            control,
            profile,
            model,
            *self._build_named_commands(),
            self._build_steer_command(),
            *self._build_reading_commands(),
        )

    def _build_named_commands(self) -> tuple[SlashCommand, ...]:
        autonomous = "Let the run continue on its own until it is done, blocked or out of budget."
        repair = "Set the work mode to repair."
        when = (SCOPE, OPTIONS)
        return (
            SlashCommand(
                "autonomous", "Autonomous", autonomous, self._run_autonomous, when, typed="menugate autonomous"
            ),
            SlashCommand("repair", "Repair", repair, self._run_repair, when, typed="menugate mode repair"),
        )

    def _build_steer_command(self) -> SlashCommand:
        changes = "Change one axis, now or later: `profile trusted for-next-unit`."
        axis = build_argument("axis", "What to change", [names[0] for names in NAMES.values()], required=True)
        value = build_argument("value", "The new value", EVERY_VALUE, required=True)
        typed = "menugate steer AXIS VALUE"
        return SlashCommand("steer", "Steer", changes, self._run_steer, (axis, value, SCOPE), typed=typed)

    def _build_reading_commands(self) -> tuple[SlashCommand, ...]:
        status = "Show your settings, pending changes, and what is waiting for you."
        doctor = "Check whether everything is in order; `fix` repairs every fault that has one clear fix."
        fix = (replace(build_argument("what", "`fix` to repair", ["fix"]), acts=True),)
        return (
            SlashCommand("status", "Status", status, self._run_status, acts=False),
            SlashCommand("doctor", "Doctor", doctor, self._run_doctor, fix, acts=False, typed="menugate doctor fix"),
        )

    def _build_axis_command(
        self, name: str, title: str, does: str, axis: str, typed: str, more: bool = False
    ) -> SlashCommand:
        async def run(speaker: PromptCaller, arguments: Mapping[str, str]) -> Sequence[Message]:
            return await self._apply_typed_words(speaker, collect_words(arguments), name, axis)

        values = list_axis_values(axis)
        value = build_argument("value", ", ".join(values), values, required=True)
        parameters = (value, SCOPE, *((OPTIONS,) if more else ()))
        return SlashCommand(
            name, title, f"{does}: {', '.join(values)}.", run, parameters, typed=f"menugate {typed} VALUE"
        )

    async def _run_autonomous(self, speaker: PromptCaller, arguments: Mapping[str, str]) -> Sequence[Message]:
        return await self._run_value_command(speaker, arguments, "autonomous", "run_control")

    async def _run_repair(self, speaker: PromptCaller, arguments: Mapping[str, str]) -> Sequence[Message]:
        return await self._run_value_command(speaker, arguments, "repair", "work_mode")

    async def _run_value_command(
        self, speaker: PromptCaller, arguments: Mapping[str, str], command: str, axis: str
    ) -> Sequence[Message]:
        """Run a command whose name is the value, so that it needs no argument."""
        words = collect_words(arguments)
        if arguments and not words:
            return build_user_messages(
                f"Nothing was changed: type `{command}` alone, or with a scope such as `{command} now`."
            )
        return await self._apply_typed_words(speaker, [command, *words], command, axis)

    async def _run_steer(self, speaker: PromptCaller, arguments: Mapping[str, str]) -> Sequence[Message]:
        words = collect_words(arguments)
        try:
            axis = find_axis(words[0]) if words else None
        except Unclear as unclear:
            return build_user_messages(f"Nothing was changed: {unclear}")
        return await self._apply_typed_words(speaker, words[1:], "steer", axis)

    async def _run_status(self, speaker: PromptCaller, _arguments: Mapping[str, str]) -> Sequence[Message]:
        posture, choice = await self.changes.postures.reread_with_choice(speaker.principal)
        waits = await self.changes.describe_waiting(speaker.principal, posture.run_control, self.clock.now_ns())
        return build_user_messages("\n".join([describe_posture(posture, choice), *waits]))

    async def _run_doctor(self, _speaker: PromptCaller, arguments: Mapping[str, str]) -> Sequence[Message]:
        words = collect_words(arguments)
        if words not in ([], ["fix"]):
            return build_user_messages("Nothing was checked: `doctor` takes `fix` or no argument.")
        return build_user_messages(await self.examine(bool(words)))

    async def _apply_typed_words(
        self, speaker: PromptCaller, words: Sequence[str], command: str, axis: str | None
    ) -> Sequence[Message]:
        try:
            phrase = parse_phrase(words, axis)
        except Unclear as unclear:
            return build_user_messages(f"Nothing was changed: {unclear}")
        if not phrase.axes:
            return build_user_messages(f"Nothing was changed: `{command}` needs a value.")
        return build_user_messages(await self._change_posture(speaker, phrase, command))

    async def _change_posture(self, speaker: PromptCaller, phrase: Phrase, command: str) -> str:
        now, choice = await self.changes.postures.reread_with_choice(speaker.principal)
        change = PostureChange(
            id=self.changes.new_id(),
            axes=phrase.axes,
            scope=phrase.scope,
            reason=f"/{command} in {speaker.client.name or 'a client'}",
            door=ChangeSource.PROMPT,
            session=speaker.session if phrase.scope is not ChangeScope.NOW else "",
            unasked=True,
        )
        change = self.changes.remove_settled_axes(now, choice, change)
        if not change.axes:
            words = badge.describe_axis_values(phrase.axes)
            return describe_change(f"Nothing was changed: {words} is in force already.", now, choice, chosen=False)
        narrowest = self.changes.find_narrowest_posture(speaker.principal, now, choice, change)
        if not (is_widening(narrowest, change.axes) or (choice and is_delaying_narrowing(choice, now, change))):
            return await self._request_change(speaker, change, now)
        question = format_widening_question(now, narrowest, change)
        granted = f"More is allowed than before: {badge.describe_axis_values(change.axes)}, {change.scope}."
        # Whatever its scope, the request belongs to the session that made it, and ends with its run.
        wanted = replace(change, session=speaker.session, unasked=False)
        answer = await self.raising.ask_agreement(speaker, wanted, now.epoch, question, granted, now.epoch)
        if isinstance(answer, Problem):
            return answer.text
        if isinstance(answer, VersionMoved):
            return MOVED
        if answer.settled:
            return SETTLED
        if answer.is_declined:
            return "Nothing was changed: the user declined."
        return await self._describe_answer(speaker, answer)

    async def _describe_answer(self, speaker: PromptCaller, answer: RaiseAnswer) -> str:
        posture, choice = await self.changes.postures.reread_with_choice(speaker.principal)
        what = f"The client was asked and {answer.why}. " if answer.why else ""
        what += self._describe_result(answer.request, choice or PostureChoice())
        return describe_change(what, posture, choice, chosen=answer.is_agreed)

    async def _request_change(self, speaker: PromptCaller, change: PostureChange, now: Posture) -> str:
        # The change was compared with the posture below the ceiling, which has the same epoch as the stored one.
        choice = await self.changes.request_change(speaker.principal, change, now.epoch)
        if isinstance(choice, Problem):
            return choice.text
        if not isinstance(choice, PostureChoice):
            return MOVED
        posture = self.changes.postures.limits.apply_choice(speaker.principal, choice)
        return describe_change(self._describe_result(change, choice), posture, choice)

    def _describe_result(self, change: PostureChange, choice: PostureChoice) -> str:
        waiting = next((one for one in choice.waiting if one.id == change.id), None)
        words = badge.describe_axis_values(change.axes)
        if waiting is None:
            return f"The user chose {words}; it is in force."
        if waiting.unconfirmed:
            how = f"`menugate steer --confirm {change.id}`"
            return (
                f"Asked for: {words}. Nothing changes until the user confirms it at a terminal, with {how}, within an "
                "hour."
            )
        return f"The user chose {words}; it will be in force {badge.describe_change_timing(waiting)}."


def build_argument(name: str, description: str, known: Sequence[str], required: bool = False) -> PromptArgument:
    return PromptArgument(
        name, description, required, lambda typed: [value for value in known if value.startswith(typed)]
    )


SCOPE = build_argument("scope", f"when it applies: {', '.join(SCOPES)}", SCOPES)
OPTIONS = build_argument(
    "options",
    "other axes to change at once, such as `--autonomous --permission-profile normal`",
    ("--autonomous", *(f"--{names[0]}" for names in NAMES.values()), *EVERY_VALUE),
)


def collect_words(arguments: Mapping[str, str]) -> list[str]:
    """Join the arguments into one line: hosts split typed text at spaces and fill the arguments in order."""
    order = ("axis", "value", "what", "scope", "options")
    return [word for name in order for word in str(arguments.get(name, "")).split()]


def build_user_messages(text: str) -> list[Message]:
    return [{"role": "user", "content": {"type": "text", "text": text}}]
