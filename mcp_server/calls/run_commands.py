"""What do `/pause`, `/next` and `/stop` do? They pause, continue or clear the run of the client they are typed in.

A client without a session has no run of its own, so there they apply to every run of the user. Each works without an
argument; one that is there must be a known word, because some hosts fill in what the user did not type. Ending a pause
must be approved first.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct

from mcp_server.calls.pauses import Holds
from mcp_server.calls.posture import PostureChanges
from mcp_server.calls.posture_raise import SETTLED, ProfileRaise
from mcp_server.calls.slash import MOVED, build_argument, build_user_messages
from mcp_server.calls.stops import StopAnswers, collect_stop_answers
from mcp_server.model.posture import ChangeSource, PostureChange
from mcp_server.model.results import Problem
from mcp_server.model.sessions import Hold, Holder
from mcp_server.model.text import format_count
from mcp_server.model.tool_packs import Message, PromptCaller, SlashCommand
from mcp_server.state import runs, stops
from mcp_server.state.engine.rows import VersionMoved
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.store import Store

T = TypeVar("T")
MAX_UNITS = 1000
MAX_REASON_CHARS = 200
NOW = "now"
PAUSED = "the user paused it"


class RunCommands(Struct, frozen=True):
    changes: PostureChanges
    holds: Holds
    new_run: Callable[[], str]
    raising: ProfileRaise

    @property
    def store(self) -> Store:
        return self.changes.store

    def build_commands(self) -> tuple[SlashCommand, ...]:
        units = build_argument("units", "how many units, in `assisted` (default: 1)", ("1", "2", "5"))
        when = build_argument("when", f"`{NOW}`, before a reason", (NOW,))
        why = (when, build_argument("reason", "what to tell the model", ()))
        stop, pause = "End the run and clear its state.", "Pause the run; it keeps its state."
        resume = "Resume the run; in `assisted`, for this many units."
        return (
            SlashCommand("next", "Next", resume, self._run_next, (units,), typed="menugate next"),
            SlashCommand("pause", "Pause", pause, self._run_pause, why, typed="menugate pause"),
            SlashCommand("stop", "Stop", stop, self._run_stop, why, typed="menugate stop"),
        )

    async def _run_pause(self, speaker: PromptCaller, arguments: Mapping[str, str]) -> Sequence[Message]:
        if (reason := find_typed_reason(arguments)) is None:
            return build_user_messages(describe_missing_word("pause"))
        hold = Hold(Holder.PERSON, format_reason(reason, PAUSED))
        pausing = partial(runs.pause_session, principal=speaker.principal, session=speaker.session, hold=hold)
        order = self._build_order(speaker, hold.reason, ends=False)
        hold_set, ordered = await self._write_and_refresh(lambda tx: (pausing(tx), stops.give_order(tx, order)))
        answers = await collect_stop_answers(self.store, ordered)
        said = f": {hold_set.reason}" if hold_set.reason != PAUSED else ""
        return build_user_messages(
            f"The user paused {describe_runs(speaker)}, keeping its state{said}.{describe_stop_answers(answers)}"
        )

    async def _run_next(self, speaker: PromptCaller, arguments: Mapping[str, str]) -> Sequence[Message]:
        typed = str(arguments.get("units", "")).strip() if arguments else "1"
        if not (typed.isascii() and typed.isdigit() and 1 <= int(typed) <= MAX_UNITS):
            return build_user_messages(
                f"Nothing was changed: `next` needs the number of units, from 1 to {MAX_UNITS}, usually 1."
            )
        if (answered := await self._ask_to_continue(speaker, int(typed))) is not None:
            return build_user_messages(answered)
        resume = partial(
            runs.resume_session, principal=speaker.principal, session=speaker.session or None, units=int(typed)
        )
        lifted = await self._write_and_refresh(resume)
        return build_user_messages(await self._describe_resumed(speaker, lifted))

    async def _describe_resumed(self, speaker: PromptCaller, lifted: Sequence[Hold]) -> str:
        holds = await self.store.read(runs.load_holds)
        if (speaker.principal, "") in holds:
            return "The user paused every run at a terminal; they can be resumed only there."
        return f"The user resumed {describe_runs(speaker)}.{describe_pause(lifted)}"

    async def _ask_to_continue(self, speaker: PromptCaller, units: int) -> str | None:
        """Return what came of asking the user; None if nobody has to be asked."""
        holds = await self.store.read(runs.load_holds)
        own = [
            hold
            for (principal, session), hold in holds.items()
            if principal == speaker.principal and (not speaker.session or session == speaker.session)
        ]
        if units == 1 and all(hold.by is Holder.UNIT for hold in own):
            # Looking at a finished unit and going on to the next is what `assisted` is for.
            return None
        runs_named, pause = describe_runs(speaker), describe_pause(own)
        limit = f"{format_count(units, 'unit')}, if run control is `assisted`"
        asks = f"A command in this client asks to resume {runs_named} ({limit})."
        change = PostureChange(
            id=self.changes.new_id(),
            axes={},
            reason=f"/next in {speaker.client.name or 'a client'}",
            door=ChangeSource.PROMPT,
            session=speaker.session,
            units=units,
        )
        under, granted = max((hold.at for hold in own), default=0), f"Resumed {runs_named}.{pause}"
        answer = await self.raising.ask_agreement(speaker, change, None, asks + pause, granted, under)
        if isinstance(answer, Problem):
            return answer.text
        if isinstance(answer, VersionMoved):
            return MOVED
        await self.holds.refresh()
        if answer.settled:
            return SETTLED
        if answer.is_declined:
            return "Nothing was changed: the user declined."
        if answer.is_agreed:
            return await self._describe_resumed(speaker, own)
        why = f" The client was asked and {answer.why}." if answer.why else ""
        return (
            f"Nothing was changed yet.{why} The user can resume it at a terminal with "
            f"`menugate steer --confirm {answer.request.id}`, within an hour."
        )

    async def _run_stop(self, speaker: PromptCaller, arguments: Mapping[str, str]) -> Sequence[Message]:
        if (given_reason := find_typed_reason(arguments)) is None:
            return build_user_messages(describe_missing_word("stop"))
        reason = format_reason(given_reason, "the user stopped it")
        stopping = partial(
            runs.stop_runs,
            principal=speaker.principal,
            session=speaker.session or None,
            run=self.new_run(),
            reason=reason,
        )
        order = self._build_order(speaker, reason, ends=True)
        # The stopped sessions come first and unnested, because the store searches the result for them.
        *_, ordered = await self._write_and_refresh(lambda tx: (*stopping(tx), stops.give_order(tx, order)))
        answers = await collect_stop_answers(self.store, ordered)
        return build_user_messages(
            f"The user stopped {describe_runs(speaker)} and cleared its state.{describe_stop_answers(answers)}"
        )

    def _build_order(self, speaker: PromptCaller, reason: str, ends: bool) -> stops.StopOrder:
        return stops.StopOrder(self.new_run(), speaker.principal, speaker.session or None, ends, reason)

    async def _write_and_refresh(self, write: Callable[[Transaction], T]) -> T:
        """Write, and load the holds before the command is answered: the very next call must obey them."""
        result = await self.store.write(write)
        await self.holds.refresh()
        return result


def describe_stop_answers(answers: StopAnswers) -> str:
    parts = (
        ("Ended", answers.ended),
        ("Still running", answers.running),
        ("Servers that did not answer within 2 seconds and may still be running calls, by process id", answers.silent),
    )
    return "".join(f" {what}: {'; '.join(names)}." for what, names in parts if names)


def describe_runs(speaker: PromptCaller) -> str:
    return "the run" if speaker.session else "every run"


def describe_pause(holds: Sequence[Hold]) -> str:
    reasons = "; ".join(dict.fromkeys(hold.reason.rstrip(".") for hold in holds))
    return f" It was paused because: {reasons}." if reasons else ""


def find_typed_reason(arguments: Mapping[str, str]) -> str | None:
    """Return what was typed after `now`, in either argument, because hosts split differently; empty if nothing was
    typed at all, None if something else was."""
    if not arguments:
        return ""
    words = " ".join(str(arguments.get(name, "")) for name in ("when", "reason")).split()
    return " ".join(words[1:]) if words[:1] == [NOW] else None


def format_reason(typed: str, default: str) -> str:
    cut = typed[:MAX_REASON_CHARS].rstrip(".")
    return f"{default}: {cut}" if cut else default


def describe_missing_word(command: str) -> str:
    return f"Nothing was changed: type `{command}` alone, or `{command} {NOW}` and a reason."
