"""What does menugate itself have to say and to read, beside its tools?"""

from collections.abc import Awaitable, Callable

from mcp_server.library.words import Words
from mcp_server.model.pack import Pack
from mcp_server.model.posture import Posture
from mcp_server.state import Store
from mcp_server.wire.own.prompts import Sayings
from mcp_server.wire.own.summaries import Summaries


def own_pack(words: Words, root: str, store: Store, posture: Callable[[str], Awaitable[Posture]]) -> Pack:
    summaries = Summaries(store)
    return Pack(
        "menugate",
        prompts=Sayings(words, root, posture).prompts(),
        resources=summaries.resources(),
        templates=summaries.templates(),
    )
