"""What do the slash commands do? Each is a prompt, offered if the host is known to reserve prompts for its user.

Getting the prompt runs the command: it changes the posture of whoever asks, and nobody else's, and answers with what
holds now. Some hosts get every prompt when they start, so nothing happens without a word typed for it. Whatever allows
more is asked about first.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from mcp_server.calls.approval_form import FormAnswer, FormReply, ask_person
from mcp_server.calls.pauses import Holds
from mcp_server.calls.posture import PostureChanges
from mcp_server.calls.stops import StopAnswers, collect_stop_answers
from mcp_server.model.posture import (
    AXES,
    ChangeScope,
    ChangeSource,
    Posture,
    PostureChange,
    PostureChoice,
    Profile,
    format_value,
)
from mcp_server.model.results import Problem
from mcp_server.model.sessions import Hold, Holder
from mcp_server.model.tool_packs import Message, PromptArgument, PromptCaller, SlashCommand
from mcp_server.policy import badge
from mcp_server.policy.phrases import NAMES, Phrase, Unclear, find_axis, list_axis_values, parse_phrase
from mcp_server.policy.posture_width import is_delaying_narrowing, is_widening, is_wider
from mcp_server.state import runs, stops
from mcp_server.state.engine.rows import Clock
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.store import Store

# May a prompt widen the posture? Only with the person's approval, which a client cannot give without their noticing.
#
# A client is known only by the name it gives itself, and some hosts hand prompts to their model. So the question is the
# form that also precedes a destructive tool, with four characters to type from its message. Each question is answered
# once, whatever the answer, and is bound to what it was asked under, so that no approval works twice. Whoever approved,
# the person finds it in `menugate messages`.


@dataclass
class ProfileRaise:
    store: Store
    clock: Clock
    out_of_band: bool
    """The operator does not trust clients to ask the person."""
    _process: str = field(default_factory=lambda: secrets.token_hex(8))
    _answered: dict[str, int] = field(default_factory=dict[str, int])
    """How many questions of each principal are settled; answers to earlier ones no longer count."""

    async def ask_agreement(self, speaker: PromptCaller, under: object, message: str) -> FormReply | None:
        """Return what the person answered; None if no client may ask. `under` is what the answer is bound to."""
        if self.out_of_band or not speaker.client.can("elicitation"):
            return None
        so_far = self._answered.get(speaker.principal, 0)
        heard = await ask_person(speaker.client, self.clock, f"widen-{self._process}-{so_far}-{under}", message)
        self._answered[speaker.principal] = so_far + 1
        return heard

    async def leave_message(self, speaker: PromptCaller, what: str) -> None:
        text = f"{what} It was asked for in {speaker.client.name or 'a client'}, which put the question to you."
        await self.store.leave_message(speaker.session, text, principal=speaker.principal)


def format_widening_question(least: Posture, change: PostureChange) -> str:
    steps = [
        f"{axis.replace('_', ' ')} from {format_value(getattr(least, axis))} to {format_value(wished)}"
        for axis, wished in change.axes.items()
        if is_wider(axis, wished, getattr(least, axis))
    ]
    what = (
        ", ".join(steps) or f"{badge.describe_axis_values(change.axes)}, in place of something narrower that is to come"
    )
    return f"A command in this client asks for more than you allow now: {what} ({change.scope})."


# What does the answer to a command say? What holds now and what is pending, in words that ask nothing of the model.

AFTERWARDS = "This was the user's own choice and is said for information; go on with the task under it."
UNCHOSEN = "This is said for information; go on with the task under what is in force."


def describe_posture(posture: Posture, choice: PostureChoice | None) -> str:
    """Show the badge, every axis, and what is pending."""
    lines = [f"In force: {badge.format_full_badge(posture)}"]
    axes = badge.describe_axes(posture)
    lines.append(f"AI mode {axes['ai_mode']}, reasoning {axes['reasoning']}.")
    lines += [f"To come: {words} ({change.id})" for change, words in badge.describe_pending_changes(choice)]
    return "\n".join(lines)


def describe_change(what: str, posture: Posture, choice: PostureChoice | None, chosen: bool = True) -> str:
    """`chosen`: the user did choose it. A change that still needs their confirmation is nobody's choice yet."""
    return f"{what}\n{describe_posture(posture, choice)}\n{AFTERWARDS if chosen else UNCHOSEN}"


SCOPES = tuple(map(str, ChangeScope))
EVERY_VALUE = tuple(dict.fromkeys(value for axis in AXES for value in list_axis_values(axis)))


@dataclass(frozen=True)
class SlashCommands:
    doors: PostureChanges
    raising: ProfileRaise
    examine: Callable[[bool], Awaitable[str]]
    """Returns the doctor's report; if given True, what can be repaired is repaired first."""
    clock: Clock

    def build_commands(self) -> tuple[SlashCommand, ...]:
        mode = self._build_axis_command("mode", "Work mode", "Choose the kind of work", "work_mode", "mode", more=True)
        control = self._build_axis_command(
            "control", "Run control", "Choose who advances the run", "run_control", "control"
        )
        does = "Choose what may run unasked"
        profile = self._build_axis_command("permission-profile", "Permission profile", does, "profile", "profile")
        model = self._build_axis_command(
            "model-mode", "Model mode", "Choose how much thought is spent", "model_mode", "model"
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
        goes_on = "Let the run go on by itself until it is done, blocked or out of budget."
        mends = "Turn to repairing: the work mode becomes repair."
        when = (SINCE, OPTIONS)
        return (
            SlashCommand("autonomous", "Autonomous", goes_on, self._run_autonomous, when, typed="menugate autonomous"),
            SlashCommand("repair", "Repair", mends, self._run_repair, when, typed="menugate mode repair"),
        )

    def _build_steer_command(self) -> SlashCommand:
        changes = "Change one axis, now or later: `profile trusted for-next-unit`."
        axis = build_argument("axis", "What to change", [names[0] for names in NAMES.values()], required=True)
        value = build_argument("value", "What it becomes", EVERY_VALUE, required=True)
        typed = "menugate steer AXIS VALUE"
        return SlashCommand("steer", "Steer", changes, self._run_steer, (axis, value, SCOPE), typed=typed)

    def _build_reading_commands(self) -> tuple[SlashCommand, ...]:
        shows = "Show what is in force and to come, and what waits for the user."
        looks = "Look whether menugate is in order here; `fix` mends what has one certain cure."
        fix = (replace(build_argument("what", "`fix` to mend", ["fix"]), acts=True),)
        return (
            SlashCommand("status", "Status", shows, self._run_status, acts=False),
            SlashCommand("doctor", "Doctor", looks, self._run_doctor, fix, acts=False, typed="menugate doctor fix"),
        )

    def _build_axis_command(
        self, name: str, title: str, does: str, axis: str, typed: str, more: bool = False
    ) -> SlashCommand:
        async def run(speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
            return await self._apply_typed_words(speaker, collect_words(given), name, axis)

        value = build_argument("value", f"{', '.join(list_axis_values(axis))}", list_axis_values(axis), required=True)
        arguments = (value, SCOPE, *((OPTIONS,) if more else ()))
        says = f"{does}: {', '.join(list_axis_values(axis))}."
        return SlashCommand(name, title, says, run, arguments, typed=f"menugate {typed} VALUE")

    async def _run_autonomous(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        return await self._run_value_command(speaker, given, "autonomous", "run_control")

    async def _run_repair(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        return await self._run_value_command(speaker, given, "repair", "work_mode")

    async def _run_value_command(
        self, speaker: PromptCaller, given: Mapping[str, str], command: str, axis: str
    ) -> Sequence[Message]:
        """Run a command whose name is the value. It acts only if a word says from when on."""
        words = collect_words(given)
        if not words or words[0] not in SCOPES:
            return build_user_messages(
                f"Nothing was changed: `{command}` needs a word from when on, such as `{command} now`."
            )
        return await self._apply_typed_words(speaker, [command, *words], command, axis)

    async def _run_steer(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        words = collect_words(given)
        try:
            axis = find_axis(words[0]) if words else None
        except Unclear as unclear:
            return build_user_messages(f"Nothing was changed: {unclear}")
        return await self._apply_typed_words(speaker, words[1:], "steer", axis)

    async def _run_status(self, speaker: PromptCaller, _given: Mapping[str, str]) -> Sequence[Message]:
        posture, choice = await self.doors.load_posture_and_choice(speaker.principal)
        waits = await self.doors.describe_waiting(speaker.principal, posture.run_control, self.clock.now_ns())
        return build_user_messages("\n".join([describe_posture(posture, choice), *waits]))

    async def _run_doctor(self, _speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        words = collect_words(given)
        if words not in ([], ["fix"]):
            return build_user_messages("Nothing was examined: `doctor` takes `fix`, or nothing.")
        return build_user_messages(await self.examine(bool(words)))

    async def _apply_typed_words(
        self, speaker: PromptCaller, words: Sequence[str], command: str, axis: str | None
    ) -> Sequence[Message]:
        try:
            meant = parse_phrase(words, axis)
        except Unclear as unclear:
            return build_user_messages(f"Nothing was changed: {unclear}")
        if not meant.axes:
            return build_user_messages(f"Nothing was changed: `{command}` needs a value.")
        return build_user_messages(await self._change_posture(speaker, meant, command))

    async def _change_posture(self, speaker: PromptCaller, meant: Phrase, command: str) -> str:
        now, choice = await self.doors.load_posture_and_choice(speaker.principal)
        change = PostureChange(
            id=self.doors.new_id(),
            axes=meant.axes,
            scope=meant.scope,
            reason=f"/{command} in {speaker.client.name or 'a client'}",
            door=ChangeSource.PROMPT,
            session=speaker.session if meant.scope is not ChangeScope.NOW else "",
        )
        least = self.doors.find_narrowest_posture(speaker.principal, now, choice, change)
        if not (is_widening(least, change.axes) or (choice and is_delaying_narrowing(choice, now, change))):
            return await self._request_change(speaker, change, now)
        wished, ceiling = change.axes.get("profile"), self.doors.postures.get_ceiling(speaker.principal)
        if isinstance(wished, Profile) and not ceiling.covers(wished):
            return self.doors.build_ceiling_problem(speaker.principal, wished, ceiling).text
        heard = await self.raising.ask_agreement(speaker, now.epoch, format_widening_question(least, change))
        if heard is None or heard.said not in (FormAnswer.YES, FormAnswer.NO):
            return await self._request_change(
                speaker, replace(change, unconfirmed=True), now, heard.why if heard else ""
            )
        if heard.said is FormAnswer.NO:
            return "Nothing was changed: the user was asked and said no."
        return await self._request_change(speaker, change, now, widened=True)

    async def _request_change(
        self, speaker: PromptCaller, change: PostureChange, now: Posture, why: str = "", widened: bool = False
    ) -> str:
        # The change was weighed against the posture below the ceiling, which has the epoch of the one in the file.
        found = await self.doors.request_change(speaker.principal, change, now.epoch)
        if isinstance(found, Problem):
            return found.text
        if not isinstance(found, PostureChoice):
            return "Nothing was changed: the posture became another one at the same moment. Type the command again."
        if widened:
            text = f"More is allowed than before: {badge.describe_axis_values(change.axes)}, {change.scope}."
            await self.raising.leave_message(speaker, text)
        what = f"The client was asked and {why}. " if why else ""
        what += self._describe_result(change, found)
        posture = self.doors.postures.posture_from_choice(speaker.principal, found)
        return describe_change(what, posture, found, chosen=not change.unconfirmed)

    def _describe_result(self, change: PostureChange, choice: PostureChoice) -> str:
        waiting = next((one for one in choice.waiting if one.id == change.id), None)
        words = badge.describe_axis_values(change.axes)
        if waiting is None:
            return f"The user chose {words}; it is in force."
        if waiting.unconfirmed:
            how = f"`menugate steer --confirm {change.id}`"
            return f"Asked for: {words}. Nothing changes until the user confirms it at a terminal, with {how}."
        return f"The user chose {words}; it comes into force {badge.describe_change_timing(waiting)}."


def build_argument(name: str, description: str, known: Sequence[str], required: bool = False) -> PromptArgument:
    return PromptArgument(
        name, description, required, lambda typed: [value for value in known if value.startswith(typed)]
    )


SCOPE = build_argument("scope", f"from when on: {', '.join(SCOPES)}", SCOPES)
SINCE = replace(SCOPE, required=True)
"""For commands with nothing else to type: a host that gets every prompt leaves this out."""
OPTIONS = build_argument(
    "options",
    "further axes in the same step, such as `--autonomous --permission-profile normal`",
    ("--autonomous", *(f"--{names[0]}" for names in NAMES.values()), *EVERY_VALUE),
)


def collect_words(given: Mapping[str, str]) -> list[str]:
    """Hosts split typed text at blanks and fill the arguments in order, so all of them are read as one line."""
    order = ("axis", "value", "what", "scope", "options")
    return [word for name in order for word in str(given.get(name, "")).split()]


def build_user_messages(text: str) -> list[Message]:
    return [{"role": "user", "content": {"type": "text", "text": text}}]


# What do `/pause`, `/next` and `/stop` do? They pause, continue or clear the run of the client they are typed in.
#
# A client without a session has no run of its own, so there they apply to every run of the person. Each needs a word
# typed for it, because some hosts get every prompt when they start. Ending a pause is asked about first.

T = TypeVar("T")
MOST_UNITS = 1000
LONGEST_REASON = 200
NOW = "now"


@dataclass(frozen=True)
class StopCommand:
    store: Store
    holds: Holds
    new_run: Callable[[], str]
    raising: ProfileRaise

    def build_commands(self) -> tuple[SlashCommand, ...]:
        units = build_argument("units", "how many units, in `assisted`; otherwise 1", ("1", "2", "5"), required=True)
        when = build_argument("when", f"`{NOW}`, without which nothing happens", (NOW,), required=True)
        why = (when, build_argument("reason", "what whoever calls is told", ()))
        ends, waits = "End the run and clear what it has come to.", "Let the run wait, with all it has come to."
        goes_on = "Let the run go on; in `assisted`, for so many units."
        return (
            SlashCommand("next", "Next", goes_on, self._run_next, (units,), typed="menugate next"),
            SlashCommand("pause", "Pause", waits, self._run_pause, why, typed="menugate pause"),
            SlashCommand("stop", "Stop", ends, self._run_stop, why, typed="menugate stop"),
        )

    async def _run_pause(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        if (typed := find_typed_reason(given)) is None:
            return build_user_messages(describe_missing_word("pause"))
        hold = Hold(Holder.PERSON, format_reason(typed, "the person paused it"))
        pausing = partial(runs.pause_session, principal=speaker.principal, session=speaker.session, hold=hold)
        order = self._build_order(speaker, hold.reason, ends=False)
        held, ordered = await self._write_and_refresh(lambda tx: (pausing(tx), stops.give_order(tx, order)))
        heard = await collect_stop_answers(self.store, ordered)
        return build_user_messages(
            f"The user paused {describe_runs(speaker)}: {held.reason}. What it has come to is kept."
            f"{describe_stop_answers(heard)}"
        )

    async def _run_next(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        typed = str(given.get("units", "")).strip()
        if not (typed.isascii() and typed.isdigit() and 1 <= int(typed) <= MOST_UNITS):
            return build_user_messages(
                f"Nothing was changed: `next` needs the number of units, from 1 to {MOST_UNITS}; mostly 1."
            )
        if (refused := await self._ask_to_continue(speaker, int(typed))) is not None:
            return build_user_messages(refused)
        going = partial(
            runs.resume_session, principal=speaker.principal, session=speaker.session or None, units=int(typed)
        )
        lifted = await self._write_and_refresh(going)
        everywhere = await self.store.read(runs.load_holds)
        waited = "; ".join(dict.fromkeys(one.reason for one in lifted))
        if (speaker.principal, "") in everywhere:
            return build_user_messages(
                "Every run of the user's was paused at a terminal, and goes on from there alone."
            )
        return build_user_messages(
            f"The user let {describe_runs(speaker)} go on." + (f" It waited because: {waited}." if waited else "")
        )

    async def _ask_to_continue(self, speaker: PromptCaller, units: int) -> str | None:
        """Return why the run does not continue; None if the user said that it may, or if nothing holds it."""
        every = await self.store.read(runs.load_holds)
        mine = [
            held
            for (principal, session), held in every.items()
            if principal == speaker.principal and (not speaker.session or session == speaker.session)
        ]
        if not mine and units == 1:
            return None
        waits = "; ".join(dict.fromkeys(one.reason.rstrip(".") for one in mine))
        because = f" It waits because: {waits}." if waits else ""
        message = (
            f"A command in this client asks to let {describe_runs(speaker)} go on, for {units} in `assisted`.{because}"
        )
        heard = await self.raising.ask_agreement(speaker, max((one.at for one in mine), default=0), message)
        if heard is not None and heard.said is FormAnswer.NO:
            return "Nothing was changed: the user was asked and said no."
        if heard is None or heard.said is not FormAnswer.YES:
            why = f" The client was asked and {heard.why}." if heard else ""
            return f"Nothing was changed.{why} The user lets it go on with `menugate next` at a terminal."
        await self.raising.leave_message(
            speaker, f"Let go on: {describe_runs(speaker)}.{because.replace(' waits', ' waited')}"
        )
        return None

    async def _run_stop(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        if (typed := find_typed_reason(given)) is None:
            return build_user_messages(describe_missing_word("stop"))
        reason = format_reason(typed, "the person stopped it")
        stopping = partial(
            runs.stop_runs,
            principal=speaker.principal,
            session=speaker.session or None,
            run=self.new_run(),
            reason=reason,
        )
        order = self._build_order(speaker, reason, ends=True)
        # The stopped sessions come first and unnested, because the store looks for them in the result.
        *_, ordered = await self._write_and_refresh(lambda tx: (*stopping(tx), stops.give_order(tx, order)))
        heard = await collect_stop_answers(self.store, ordered)
        return build_user_messages(
            f"The user stopped {describe_runs(speaker)}; what it had come to is cleared.{describe_stop_answers(heard)}"
        )

    def _build_order(self, speaker: PromptCaller, reason: str, ends: bool) -> stops.StopOrder:
        return stops.StopOrder(self.new_run(), speaker.principal, speaker.session or None, ends, reason)

    async def _write_and_refresh(self, deed: Callable[[Transaction], T]) -> T:
        """Write, and load the holds before the command is answered: the very next call must obey them."""
        answer = await self.store.write(deed)
        await self.holds.refresh()
        return answer


def describe_stop_answers(heard: StopAnswers) -> str:
    parts = (
        ("Ended", heard.ended),
        ("Still running", heard.running),
        ("No answer within 2 seconds, so that what they run may go on, from the servers with process id", heard.silent),
    )
    return "".join(f" {what}: {'; '.join(names)}." for what, names in parts if names)


def describe_runs(speaker: PromptCaller) -> str:
    return "the run" if speaker.session else "every run"


def find_typed_reason(given: Mapping[str, str]) -> str | None:
    """Return what was typed after `now`, which some hosts leave in the argument before; None if that word is
    missing."""
    words = " ".join(str(given.get(name, "")) for name in ("when", "reason")).split()
    return " ".join(words[1:]) if words[:1] == [NOW] else None


def format_reason(typed: str, otherwise: str) -> str:
    cut = typed[:LONGEST_REASON].rstrip(".")
    return f"{otherwise}: {cut}" if cut else otherwise


def describe_missing_word(command: str) -> str:
    return f"Nothing was changed: `{command}` needs the word `{NOW}`, and takes a reason after it."
