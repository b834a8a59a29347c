"""May a prompt widen what holds? Only with the person's yes, which a client alone cannot give unnoticed.

Which program is at the other end is told by its own word, and some hand prompts to their model. So the question is the
same form as before a tool that destroys, with four characters to be typed from its message. Each is answered once,
whatever the answer, and is bound to what it was put under, so that an old yes opens nothing twice. Whoever said yes,
the person finds it in `menugate messages`.
"""

import secrets
from dataclasses import dataclass, field

from mcp_server.calls.approval_form import FormReply, ask
from mcp_server.model.posture import Posture, PostureChange, word_of
from mcp_server.model.tool_packs import PromptCaller
from mcp_server.policy import badge
from mcp_server.policy.posture_width import wider
from mcp_server.state.engine.rows import Clock
from mcp_server.state.store import Store


@dataclass
class ProfileRaise:
    store: Store
    clock: Clock
    out_of_band: bool
    """The operator does not trust clients to ask the person."""
    _process: str = field(default_factory=lambda: secrets.token_hex(8))
    _answered: dict[str, int] = field(default_factory=dict[str, int])
    """How many questions each principal was done with; what went out before is no longer answered."""

    async def agreed(self, speaker: PromptCaller, under: object, message: str) -> FormReply | None:
        """What the person said to it; None where no client may ask. `under` is what the answer is bound to."""
        if self.out_of_band or not speaker.client.can("elicitation"):
            return None
        so_far = self._answered.get(speaker.principal, 0)
        heard = await ask(speaker.client, self.clock, f"widen-{self._process}-{so_far}-{under}", message)
        self._answered[speaker.principal] = so_far + 1
        return heard

    async def tell(self, speaker: PromptCaller, what: str) -> None:
        text = f"{what} It was asked for in {speaker.client.name or 'a client'}, which put the question to you."
        await self.store.leave_message(speaker.session, text, principal=speaker.principal)


def question(least: Posture, change: PostureChange) -> str:
    steps = [
        f"{axis.replace('_', ' ')} from {word_of(getattr(least, axis))} to {word_of(wished)}"
        for axis, wished in change.axes.items()
        if wider(axis, wished, getattr(least, axis))
    ]
    what = ", ".join(steps) or f"{badge.named(change.axes)}, in place of something narrower that is to come"
    return f"A command in this client asks for more than you allow now: {what} ({change.scope})."
