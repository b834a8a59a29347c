"""Does the person agree to a command that allows more? The client may ask them, or they confirm it at a terminal.

A prompt widens the posture only with the person's approval, which no client can give without their noticing. A client
is known only by the name it gives itself, and some hosts hand prompts to their model. So the person gets the same form
as before a destructive call, with four characters to type from its message. The request is stored before the form goes
out: whatever becomes of the form, `menugate status` shows the request, and the terminal can confirm it. Each question
is bound to its request and the posture it was asked under, so no approval works twice.
"""

from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.approval_form import MOST_TRIES, FormAnswer, FormReply, ask_person, count_tries
from mcp_server.calls.posture import PostureChanges
from mcp_server.calls.withdrawal import withdraw_when_answered
from mcp_server.model.posture import PostureChange, PostureChoice
from mcp_server.model.results import Problem
from mcp_server.model.tool_packs import PromptCaller
from mcp_server.policy.badge import describe_wish
from mcp_server.policy.posture import DECLINED, find_confirmable_change
from mcp_server.state import messages, posture
from mcp_server.state.engine.rows import Clock, VersionMoved
from mcp_server.state.store import Store

KEY = "widen-"
"""Prefix of a question's name when a client carries it back and forth."""
SETTLED = "Nothing was changed here: the request was answered, cancelled, replaced or closed in the meantime."


class RaiseAnswer(Struct, frozen=True):
    """What became of a request for more."""

    request: PostureChange
    reply: FormReply | None = None
    """None if nobody was asked."""
    settled: bool = False
    """It was answered or cancelled elsewhere, or had to be given up."""
    choice: PostureChoice | None = None
    """The choice after the person agreed."""

    @property
    def is_agreed(self) -> bool:
        return self.choice is not None

    @property
    def is_declined(self) -> bool:
        return self.reply is not None and self.reply.said is FormAnswer.NO

    @property
    def why(self) -> str:
        return self.reply.why if self.reply else ""


class ProfileRaise(Struct, frozen=True):
    store: Store
    clock: Clock
    out_of_band: bool
    """The operator does not trust clients to ask the person."""
    changes: PostureChanges

    async def ask_agreement(
        self, speaker: PromptCaller, change: PostureChange, epoch: int | None, message: str, granted: str, under: object
    ) -> RaiseAnswer | Problem | VersionMoved:
        """Ask for this change and make it if the person agrees. `granted`: what a message tells them then. `under`:
        what an answer is bound to, besides the request."""
        wanted = replace(change, unconfirmed=True)
        carried = frozenset(key.removeprefix(KEY).partition("-")[0] for key in speaker.client.carried)
        request = await self.changes.open_request(speaker.principal, wanted, epoch, carried)
        if not isinstance(request, PostureChange):
            return request
        if request.id == wanted.id:
            await self._leave_note(speaker, request, "Nothing changes until you agree.")
        is_askable = not self.out_of_band and speaker.may_widen and speaker.client.can("elicitation")
        if not is_askable or request.tries >= MOST_TRIES:
            return RaiseAnswer(request)
        key = f"{KEY}{request.id}-{request.tries}-{under}"
        reply: FormReply | None = None
        async with withdraw_when_answered(self.store, partial(self._is_settled, speaker.principal, request.id)):
            reply = await ask_person(speaker.client, self.clock, key, message)
        if not reply:
            return RaiseAnswer(request, settled=True)
        if reply.said is FormAnswer.YES:
            return await self._make_change(speaker, RaiseAnswer(request, reply), epoch, granted)
        return await self._leave_unchanged(speaker, RaiseAnswer(request, reply))

    async def _is_settled(self, principal: str, id: str) -> bool:
        choice = await self.store.read(partial(posture.load_choice, principal=principal))
        return choice is None or find_confirmable_change(choice, id, self.clock.now_ns()) is None

    async def _make_change(
        self, speaker: PromptCaller, answer: RaiseAnswer, epoch: int | None, granted: str
    ) -> RaiseAnswer | VersionMoved:
        choice = await self.changes.confirm_request(speaker.principal, answer.request.id, epoch)
        if isinstance(choice, VersionMoved):
            return choice
        if choice is None:
            return replace(answer, settled=True)
        text = f"{granted} This was requested in {get_client_name(speaker)}, which asked you to approve it."
        await self._put_note(speaker, answer.request, text)
        return replace(answer, choice=choice)

    async def _leave_unchanged(self, speaker: PromptCaller, answer: RaiseAnswer) -> RaiseAnswer:
        request, reply = answer.request, answer.reply
        assert reply is not None, "the client was asked"
        why = DECLINED if answer.is_declined else f"not agreed to: the client {reply.why}"
        tries = count_tries(reply.said)
        after = await self.changes.leave_request(speaker.principal, request.id, tries, why)
        if after is None:
            return replace(answer, settled=True)
        what = "You were asked there and declined." if answer.is_declined else f"The client was asked and {reply.why}."
        await self._leave_note(speaker, request, f"{what} Nothing was changed.", is_open=not answer.is_declined)
        return replace(answer, request=after)

    async def _leave_note(
        self, speaker: PromptCaller, request: PostureChange, outcome: str, is_open: bool = True
    ) -> None:
        text = (
            f"A command in {get_client_name(speaker)} asks for more than you allow: {describe_wish(request)}. {outcome}"
        )
        if is_open:
            text += f" You can agree at a terminal with `menugate steer --confirm {request.id}`, within an hour."
        await self._put_note(speaker, request, text)

    async def _put_note(self, speaker: PromptCaller, request: PostureChange, text: str) -> None:
        """Leave one message for each request, however often it was asked about."""
        await self.store.write(
            partial(
                messages.put_note,
                id=f"request-{request.id}",
                session=speaker.session,
                text=text,
                principal=speaker.principal,
            )
        )


def get_client_name(speaker: PromptCaller) -> str:
    return speaker.client.name or "a client"
