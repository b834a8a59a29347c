"""What do the slash commands do? Each is a prompt, offered where the host is known to keep prompts for its user.

Getting one does it: the posture of whoever asks changes, for that one alone, and what comes back says what holds now.
Nothing is done without a word that was typed for it, because some hosts get every prompt when they start; and what
allows more is asked about first.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mcp_server.calls import speaking
from mcp_server.calls.approval_form import FormAnswer
from mcp_server.calls.posture import PostureChanges
from mcp_server.calls.raising import ProfileRaise, question
from mcp_server.model.posture import AXES, ChangeScope, ChangeSource, Posture, PostureChange, PostureChoice, Profile
from mcp_server.model.results import Problem
from mcp_server.model.tool_packs import Message, PromptArgument, PromptCaller, SlashCommand
from mcp_server.policy import badge
from mcp_server.policy.phrases import NAMES, Phrase, Unclear, axis_named, phrase, values
from mcp_server.policy.posture_width import puts_off, widens
from mcp_server.state.engine.rows import Clock

SCOPES = tuple(map(str, ChangeScope))
EVERY_VALUE = tuple(dict.fromkeys(value for axis in AXES for value in values(axis)))


@dataclass(frozen=True)
class SlashCommands:
    doors: PostureChanges
    raising: ProfileRaise
    examine: Callable[[bool], Awaitable[str]]
    """The doctor's words; with True what can be mended is mended first."""
    clock: Clock

    def commands(self) -> tuple[SlashCommand, ...]:
        mode = self._of_axis("mode", "Work mode", "Choose the kind of work", "work_mode", "mode", more=True)
        control = self._of_axis("control", "Run control", "Choose who advances the run", "run_control", "control")
        does = "Choose what may run unasked"
        profile = self._of_axis("permission-profile", "Permission profile", does, "profile", "profile")
        model = self._of_axis("model-mode", "Model mode", "Choose how much thought is spent", "model_mode", "model")
        return (mode, control, profile, model, *self._by_name(), self._steering(), *self._reading())

    def _by_name(self) -> tuple[SlashCommand, ...]:
        goes_on = "Let the run go on by itself until it is done, blocked or out of budget."
        mends = "Turn to repairing: the work mode becomes repair."
        when = (SINCE, OPTIONS)
        return (
            SlashCommand("autonomous", "Autonomous", goes_on, self._autonomous, when, typed="menugate autonomous"),
            SlashCommand("repair", "Repair", mends, self._repair, when, typed="menugate mode repair"),
        )

    def _steering(self) -> SlashCommand:
        changes = "Change one axis, now or later: `profile trusted for-next-unit`."
        axis = argument("axis", "What to change", [names[0] for names in NAMES.values()], required=True)
        value = argument("value", "What it becomes", EVERY_VALUE, required=True)
        typed = "menugate steer AXIS VALUE"
        return SlashCommand("steer", "Steer", changes, self._steer, (axis, value, SCOPE), typed=typed)

    def _reading(self) -> tuple[SlashCommand, ...]:
        shows = "Show what is in force and to come, and what waits for the user."
        looks = "Look whether menugate is in order here; `fix` mends what has one certain cure."
        fix = (replace(argument("what", "`fix` to mend", ["fix"]), acts=True),)
        return (
            SlashCommand("status", "Status", shows, self._status, acts=False),
            SlashCommand("doctor", "Doctor", looks, self._doctor, fix, acts=False, typed="menugate doctor fix"),
        )

    def _of_axis(self, name: str, title: str, does: str, axis: str, typed: str, more: bool = False) -> SlashCommand:
        async def run(speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
            return await self._typed(speaker, words_in(given), name, axis)

        value = argument("value", f"{', '.join(values(axis))}", values(axis), required=True)
        arguments = (value, SCOPE, *((OPTIONS,) if more else ()))
        says = f"{does}: {', '.join(values(axis))}."
        return SlashCommand(name, title, says, run, arguments, typed=f"menugate {typed} VALUE")

    async def _autonomous(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        return await self._at_last(speaker, given, "autonomous", "run_control")

    async def _repair(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        return await self._at_last(speaker, given, "repair", "work_mode")

    async def _at_last(
        self, speaker: PromptCaller, given: Mapping[str, str], command: str, axis: str
    ) -> Sequence[Message]:
        """A command whose name is the value: it waits for the word from when on."""
        words = words_in(given)
        if not words or words[0] not in SCOPES:
            return said(f"Nothing was changed: `{command}` needs a word from when on, such as `{command} now`.")
        return await self._typed(speaker, [command, *words], command, axis)

    async def _steer(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        words = words_in(given)
        try:
            axis = axis_named(words[0]) if words else None
        except Unclear as unclear:
            return said(f"Nothing was changed: {unclear}")
        return await self._typed(speaker, words[1:], "steer", axis)

    async def _status(self, speaker: PromptCaller, _given: Mapping[str, str]) -> Sequence[Message]:
        posture, choice = await self.doors.stands(speaker.principal)
        waits = await self.doors.waiting(speaker.principal, posture.run_control, self.clock.now_ns())
        return said("\n".join([speaking.stands(posture, choice), *waits]))

    async def _doctor(self, _speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        words = words_in(given)
        if words not in ([], ["fix"]):
            return said("Nothing was examined: `doctor` takes `fix`, or nothing.")
        return said(await self.examine(bool(words)))

    async def _typed(
        self, speaker: PromptCaller, words: Sequence[str], command: str, axis: str | None
    ) -> Sequence[Message]:
        try:
            meant = phrase(words, axis)
        except Unclear as unclear:
            return said(f"Nothing was changed: {unclear}")
        if not meant.axes:
            return said(f"Nothing was changed: `{command}` needs a value.")
        return said(await self._changed(speaker, meant, command))

    async def _changed(self, speaker: PromptCaller, meant: Phrase, command: str) -> str:
        now, choice = await self.doors.stands(speaker.principal)
        change = PostureChange(
            id=self.doors.new_id(),
            axes=meant.axes,
            scope=meant.scope,
            reason=f"/{command} in {speaker.client.name or 'a client'}",
            door=ChangeSource.PROMPT,
            session=speaker.session if meant.scope is not ChangeScope.NOW else "",
        )
        least = self.doors.least(speaker.principal, now, choice, change)
        if not (widens(least, change.axes) or (choice and puts_off(choice, now, change))):
            return await self._asked(speaker, change, now)
        wished, ceiling = change.axes.get("profile"), self.doors.postures.ceiling_of(speaker.principal)
        if isinstance(wished, Profile) and not ceiling.covers(wished):
            return self.doors.too_high(speaker.principal, wished, ceiling).text
        heard = await self.raising.agreed(speaker, now.epoch, question(least, change))
        if heard is None or heard.said not in (FormAnswer.YES, FormAnswer.NO):
            return await self._asked(speaker, replace(change, unconfirmed=True), now, heard.why if heard else "")
        if heard.said is FormAnswer.NO:
            return "Nothing was changed: the user was asked and said no."
        return await self._asked(speaker, change, now, widened=True)

    async def _asked(
        self, speaker: PromptCaller, change: PostureChange, now: Posture, why: str = "", widened: bool = False
    ) -> str:
        # What was weighed is the posture from below the ceiling; what is in the file has its epoch.
        found = await self.doors.ask(speaker.principal, change, now.epoch)
        if isinstance(found, Problem):
            return found.text
        if not isinstance(found, PostureChoice):
            return "Nothing was changed: the posture became another one at the same moment. Type the command again."
        if widened:
            text = f"More is allowed than before: {badge.named(change.axes)}, {change.scope}."
            await self.raising.tell(speaker, text)
        what = f"The client was asked and {why}. " if why else ""
        what += self._what(change, found)
        posture = self.doors.postures.under(speaker.principal, found)
        return speaking.changed(what, posture, found, chosen=not change.unconfirmed)

    def _what(self, change: PostureChange, choice: PostureChoice) -> str:
        waiting = next((one for one in choice.waiting if one.id == change.id), None)
        words = badge.named(change.axes)
        if waiting is None:
            return f"The user chose {words}; it is in force."
        if waiting.unconfirmed:
            how = f"`menugate steer --confirm {change.id}`"
            return f"Asked for: {words}. Nothing changes until the user confirms it at a terminal, with {how}."
        return f"The user chose {words}; it comes into force {badge.until(waiting)}."


def argument(name: str, description: str, known: Sequence[str], required: bool = False) -> PromptArgument:
    return PromptArgument(
        name, description, required, lambda typed: [value for value in known if value.startswith(typed)]
    )


SCOPE = argument("scope", f"from when on: {', '.join(SCOPES)}", SCOPES)
SINCE = replace(SCOPE, required=True)
"""Where nothing else has to be typed: a host that gets every prompt leaves it out."""
OPTIONS = argument(
    "options",
    "further axes in the same step, such as `--autonomous --permission-profile normal`",
    ("--autonomous", *(f"--{names[0]}" for names in NAMES.values()), *EVERY_VALUE),
)


def words_in(given: Mapping[str, str]) -> list[str]:
    """Hosts split what was typed at blanks and fill the arguments in order, so all of them are read as one line."""
    order = ("axis", "value", "what", "scope", "options")
    return [word for name in order for word in str(given.get(name, "")).split()]


def said(text: str) -> list[Message]:
    return [{"role": "user", "content": {"type": "text", "text": text}}]
