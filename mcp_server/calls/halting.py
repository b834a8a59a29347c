"""What do `/pause`, `/next` and `/stop` do? The run of the client they are typed in waits, goes on, or is cleared away.

A client that nothing remembers has no run of its own: there it is every run of the person's. Each takes a word that was
typed for it, because some hosts get every prompt when they start; and what ends a pause is asked about first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from mcp_server.calls.approval_form import FormAnswer
from mcp_server.calls.pauses import Holds
from mcp_server.calls.raising import ProfileRaise
from mcp_server.calls.slash import argument, said
from mcp_server.calls.stops import StopAnswers, hear
from mcp_server.model.sessions import Hold, Holder
from mcp_server.model.tool_packs import Message, PromptCaller, SlashCommand
from mcp_server.state import runs, stops
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.store import Store

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

    def commands(self) -> tuple[SlashCommand, ...]:
        units = argument("units", "how many units, in `assisted`; otherwise 1", ("1", "2", "5"), required=True)
        when = argument("when", f"`{NOW}`, without which nothing happens", (NOW,), required=True)
        why = (when, argument("reason", "what whoever calls is told", ()))
        ends, waits = "End the run and clear what it has come to.", "Let the run wait, with all it has come to."
        goes_on = "Let the run go on; in `assisted`, for so many units."
        return (
            SlashCommand("next", "Next", goes_on, self._next, (units,), typed="menugate next"),
            SlashCommand("pause", "Pause", waits, self._pause, why, typed="menugate pause"),
            SlashCommand("stop", "Stop", ends, self._stop, why, typed="menugate stop"),
        )

    async def _pause(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        if (typed := reason_in(given)) is None:
            return said(needs_word("pause"))
        hold = Hold(Holder.PERSON, reason_of(typed, "the person paused it"))
        pausing = partial(runs.pause, principal=speaker.principal, session=speaker.session, hold=hold)
        order = self._order(speaker, hold.reason, ends=False)
        held, ordered = await self._written(lambda tx: (pausing(tx), stops.give(tx, order)))
        heard = await hear(self.store, ordered)
        return said(f"The user paused {which(speaker)}: {held.reason}. What it has come to is kept.{in_words(heard)}")

    async def _next(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        typed = str(given.get("units", "")).strip()
        if not (typed.isascii() and typed.isdigit() and 1 <= int(typed) <= MOST_UNITS):
            return said(f"Nothing was changed: `next` needs the number of units, from 1 to {MOST_UNITS}; mostly 1.")
        if (refused := await self._unagreed(speaker, int(typed))) is not None:
            return said(refused)
        going = partial(runs.go_on, principal=speaker.principal, session=speaker.session or None, units=int(typed))
        lifted = await self._written(going)
        everywhere = await self.store.read(runs.holds)
        waited = "; ".join(dict.fromkeys(one.reason for one in lifted))
        if (speaker.principal, "") in everywhere:
            return said("Every run of the user's was paused at a terminal, and goes on from there alone.")
        return said(f"The user let {which(speaker)} go on." + (f" It waited because: {waited}." if waited else ""))

    async def _unagreed(self, speaker: PromptCaller, units: int) -> str | None:
        """Why it does not go on; None where the user said that it may, or nothing keeps it."""
        every = await self.store.read(runs.holds)
        mine = [
            held
            for (principal, session), held in every.items()
            if principal == speaker.principal and (not speaker.session or session == speaker.session)
        ]
        if not mine and units == 1:
            return None
        waits = "; ".join(dict.fromkeys(one.reason.rstrip(".") for one in mine))
        because = f" It waits because: {waits}." if waits else ""
        message = f"A command in this client asks to let {which(speaker)} go on, for {units} in `assisted`.{because}"
        heard = await self.raising.agreed(speaker, max((one.at for one in mine), default=0), message)
        if heard is not None and heard.said is FormAnswer.NO:
            return "Nothing was changed: the user was asked and said no."
        if heard is None or heard.said is not FormAnswer.YES:
            why = f" The client was asked and {heard.why}." if heard else ""
            return f"Nothing was changed.{why} The user lets it go on with `menugate next` at a terminal."
        await self.raising.tell(speaker, f"Let go on: {which(speaker)}.{because.replace(' waits', ' waited')}")
        return None

    async def _stop(self, speaker: PromptCaller, given: Mapping[str, str]) -> Sequence[Message]:
        if (typed := reason_in(given)) is None:
            return said(needs_word("stop"))
        reason = reason_of(typed, "the person stopped it")
        stopping = partial(
            runs.stop,
            principal=speaker.principal,
            session=speaker.session or None,
            run=self.new_run(),
            reason=reason,
        )
        order = self._order(speaker, reason, ends=True)
        # The sessions that moved come first, as they are, which the store has to see.
        *_, ordered = await self._written(lambda tx: (*stopping(tx), stops.give(tx, order)))
        heard = await hear(self.store, ordered)
        return said(f"The user stopped {which(speaker)}; what it had come to is cleared.{in_words(heard)}")

    def _order(self, speaker: PromptCaller, reason: str, ends: bool) -> stops.StopOrder:
        return stops.StopOrder(self.new_run(), speaker.principal, speaker.session or None, ends, reason)

    async def _written(self, deed: Callable[[Transaction], T]) -> T:
        """In the file, and known here before the command is answered: the very next call is held to it."""
        answer = await self.store.write(deed)
        await self.holds.refresh()
        return answer


def in_words(heard: StopAnswers) -> str:
    parts = (
        ("Ended", heard.ended),
        ("Still running", heard.running),
        ("No answer within 2 seconds, so that what they run may go on, from the servers with process id", heard.silent),
    )
    return "".join(f" {what}: {'; '.join(names)}." for what, names in parts if names)


def which(speaker: PromptCaller) -> str:
    return "the run" if speaker.session else "every run"


def reason_in(given: Mapping[str, str]) -> str | None:
    """What was typed after `now`, which some hosts leave in the argument before; None where that word is missing."""
    words = " ".join(str(given.get(name, "")) for name in ("when", "reason")).split()
    return " ".join(words[1:]) if words[:1] == [NOW] else None


def reason_of(typed: str, otherwise: str) -> str:
    cut = typed[:LONGEST_REASON].rstrip(".")
    return f"{otherwise}: {cut}" if cut else otherwise


def needs_word(command: str) -> str:
    return f"Nothing was changed: `{command}` needs the word `{NOW}`, and takes a reason after it."
