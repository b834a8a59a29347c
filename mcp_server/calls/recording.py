"""What goes into the ledger about a call? A row before it runs, one after it, and one for every call that does not."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio

from mcp_server.calls.context import Asked, Found
from mcp_server.calls.sessions import Seat
from mcp_server.model.ending import Code, Ending, Problem
from mcp_server.model.policy import Decision, Layer, Verdict
from mcp_server.model.posture import Posture
from mcp_server.model.session import Session
from mcp_server.model.tool import Arguments
from mcp_server.state import Asked as Questioned
from mcp_server.state import Intent, Moved, Origin, Outcome, Refused, Store
from mcp_server.state.record import Judged

JudgedT = TypeVar("JudgedT", bound=Judged)
LONGEST_NAME = 80
"""A tool name that nobody registered is the caller's text; this much of it is kept."""


@dataclass(frozen=True)
class Recorder:
    store: Store
    tool_count: Callable[[Session, Posture], int]
    """How many tools the session saw when it called."""
    conversation: str = ""

    async def intend(self, found: Found, posture: Posture, decision: Decision) -> int | Moved:
        # A call that is taken back meanwhile has its record all the same, and would be left without an outcome.
        with anyio.CancelScope(shield=True):
            return await self.store.intend(self._judged(Intent, found, posture, decision))
        raise AssertionError("a scope that nobody cancels swallows nothing")

    async def refuse(self, found: Found, posture: Posture, decision: Decision) -> None:
        await self.store.record(self._judged(Refused, found, posture, decision))

    async def question(self, found: Found, posture: Posture, decision: Decision) -> None:
        await self.store.record(self._judged(Questioned, found, posture, decision))

    async def unfound(self, asked: Asked, posture: Posture, problem: Problem) -> None:
        digest, size = measured(asked.arguments)
        decision = Decision(Verdict.DENY, Layer.FIND, problem.code, reason=problem.message)
        await self.store.record(
            Refused(
                session=asked.seat.session,
                posture=posture,
                tool=asked.tool[:LONGEST_NAME],
                decision=decision,
                origin=self._origin(asked, asked.seat),
                arguments_sha256=digest,
                arguments_bytes=size,
            )
        )

    def conclude(
        self, found: Found, intent: int, ending: str, started_ns: int, shown: Ending | None = None, size: int = 0
    ) -> None:
        """How it went. Not waited for: what the caller was promised is the row before."""
        text = shown.text if shown is not None else ""
        self.store.conclude(
            Outcome(
                intent=intent,
                ending=ending,
                code=_code(shown) or (Code.CANCELLED if ending == "cancelled" else None),
                latency_us=(time.perf_counter_ns() - started_ns) // 1000,
                result_bytes=size,
                shown_bytes=len(text),
                session=found.seat.session.id,
                tool=found.tool.name,
            )
        )

    def _judged(self, kind: type[JudgedT], found: Found, posture: Posture, decision: Decision) -> JudgedT:
        digest, size = measured(found.arguments)
        return kind(
            session=found.seat.session,
            posture=posture,
            tool=found.tool.name,
            decision=decision,
            origin=self._origin(found.asked, found.seat),
            tool_count=self.tool_count(found.seat.session, posture),
            arguments_sha256=digest,
            arguments_bytes=size,
        )

    def _origin(self, asked: Asked, seat: Seat) -> Origin:
        return Origin(
            conversation=self.conversation,
            client=asked.client.name[:LONGEST_NAME],
            transport=asked.transport,
            passing=seat.passing,
        )


def measured(arguments: Arguments) -> tuple[str, int]:
    """The digest of the arguments in their one canonical form, and how long that is."""
    canonical = json.dumps(arguments, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(canonical).hexdigest(), len(canonical)


def _code(ending: Ending | None) -> Code | None:
    return ending.code if isinstance(ending, Problem) else None
