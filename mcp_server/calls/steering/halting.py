"""What do `/pause`, `/next` and `/stop` do? The run of the client they are typed in waits, goes on, or is cleared away.

A client that nothing remembers has no run of its own: there it is every run of the person's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from mcp_server.calls.running.holding import Holds
from mcp_server.calls.running.live import Heard, hear
from mcp_server.calls.steering.commands import argument, said
from mcp_server.model.pack import Command, Message, Speaker
from mcp_server.model.session import Hold, Holder
from mcp_server.state import Store, deeds
from mcp_server.state.batch import Transaction

T = TypeVar("T")
MOST_UNITS = 1000
LONGEST_REASON = 200


@dataclass(frozen=True)
class Halting:
    store: Store
    holds: Holds
    new_run: Callable[[], str]

    def commands(self) -> tuple[Command, ...]:
        reason = argument("reason", "what whoever calls is told", ())
        units = argument("units", "how many units, in `assisted`", ("1", "2", "5"))
        return (
            Command("next", "Next", "Let the run go on; in `assisted`, for one unit.", self._next, (units,)),
            Command("pause", "Pause", "Let the run wait, with all it has come to.", self._pause, (reason,)),
            Command("stop", "Stop", "End the run and clear what it has come to.", self._stop, (reason,)),
        )

    async def _pause(self, speaker: Speaker, given: Mapping[str, str]) -> Sequence[Message]:
        hold = Hold(Holder.PERSON, reason_of(given, "the person paused it"))
        pausing = partial(deeds.pause, principal=speaker.principal, session=speaker.session, hold=hold)
        order = self._order(speaker, hold.reason, ends=False)
        held, ordered = await self._written(lambda tx: (pausing(tx), deeds.give(tx, order)))
        heard = await hear(self.store, ordered)
        return said(f"The user paused {which(speaker)}: {held.reason}. What it has come to is kept.{in_words(heard)}")

    async def _next(self, speaker: Speaker, given: Mapping[str, str]) -> Sequence[Message]:
        typed = str(given.get("units", "")).strip() or "1"
        if not (typed.isascii() and typed.isdigit() and 1 <= int(typed) <= MOST_UNITS):
            return said(f"Nothing was changed: the number of units is from 1 to {MOST_UNITS}.")
        going = partial(deeds.go_on, principal=speaker.principal, session=speaker.session or None, units=int(typed))
        lifted = await self._written(going)
        everywhere = await self.store.read(deeds.holds)
        waited = "; ".join(dict.fromkeys(one.reason for one in lifted))
        if (speaker.principal, "") in everywhere:
            return said("Every run of the user's was paused at a terminal, and goes on from there alone.")
        return said(f"The user let {which(speaker)} go on." + (f" It waited because: {waited}." if waited else ""))

    async def _stop(self, speaker: Speaker, given: Mapping[str, str]) -> Sequence[Message]:
        reason = reason_of(given, "the person stopped it")
        stopping = partial(
            deeds.stop,
            principal=speaker.principal,
            session=speaker.session or None,
            run=self.new_run(),
            reason=reason,
        )
        order = self._order(speaker, reason, ends=True)
        # The sessions that moved come first, as they are, which the store has to see.
        *_, ordered = await self._written(lambda tx: (*stopping(tx), deeds.give(tx, order)))
        heard = await hear(self.store, ordered)
        return said(f"The user stopped {which(speaker)}; what it had come to is cleared.{in_words(heard)}")

    def _order(self, speaker: Speaker, reason: str, ends: bool) -> deeds.Order:
        return deeds.Order(self.new_run(), speaker.principal, speaker.session or None, ends, reason)

    async def _written(self, deed: Callable[[Transaction], T]) -> T:
        """In the file, and known here before the command is answered: the very next call is held to it."""
        answer = await self.store.write(deed)
        await self.holds.refresh()
        return answer


def in_words(heard: Heard) -> str:
    parts = (
        ("Ended", heard.ended),
        ("Still running", heard.running),
        ("No answer within 2 seconds, so that what they run may go on, from the servers with process id", heard.silent),
    )
    return "".join(f" {what}: {'; '.join(names)}." for what, names in parts if names)


def which(speaker: Speaker) -> str:
    return "the run" if speaker.session else "every run"


def reason_of(given: Mapping[str, str], otherwise: str) -> str:
    typed = " ".join(str(given.get("reason", "")).split())[:LONGEST_REASON].rstrip(".")
    return f"{otherwise}: {typed}" if typed else otherwise
