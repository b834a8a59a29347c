"""What happens on a connection beside our own requests? The server's questions and notices find whom they are for."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from mcp_server.model.upstreams import Mount, UpstreamCaller
from mcp_server.upstreams.catalogue import LISTS
from mcp_server.upstreams.handshake import Agreement
from mcp_server.upstreams.log_levels import LogLevels, drop_level
from mcp_server.upstreams.messages import Link
from mcp_server.upstreams.peer import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Asked,
    Noticed,
    OpenRequest,
    Peer,
    UpstreamError,
)
from mcp_server.upstreams.questions import ELICIT, LIST_ROOTS
from mcp_server.upstreams.turns import SessionTurns

CHANGED_LISTS: Mapping[str, frozenset[str]] = {
    "notifications/tools/list_changed": frozenset({"tools"}),
    "notifications/prompts/list_changed": frozenset({"prompts"}),
    "notifications/resources/list_changed": frozenset({"resources", "templates"}),
}

ELICITATION_DONE = "notifications/elicitation/complete"
MAX_ELICITATIONS = 64
"""That are open; of more, the oldest are forgotten."""
SETTLE_SECONDS = 5.0
"""For a server to say that it watches a resource."""
UNCLEAR = "several calls are running, and menugate cannot tell which of them asks"


@dataclass(eq=False)
class Connection:
    mount: Mount
    link: Link
    workspace: str
    """Its URI, for servers that are told."""
    on_updated: Callable[[str], None]
    """Receives the URI of a resource that changed."""
    agreement: Agreement = field(default_factory=lambda: Agreement(""))
    calls: dict[OpenRequest, UpstreamCaller] = field(default_factory=dict[OpenRequest, UpstreamCaller])
    """The calls that the server is working on, and for whom."""
    stale: set[str] = field(default_factory=lambda: set(LISTS))
    """The lists that must be read again."""
    announced: set[str] = field(default_factory=set[str])
    """Those of them that the server said had changed."""
    waiting: set[OpenRequest] = field(default_factory=set[OpenRequest])
    """Those of them that wait for the answer to a question."""
    asks: bool = False
    """True once the server has asked the user something."""
    turns: SessionTurns = field(default_factory=SessionTurns)
    changed: anyio.Event = field(default_factory=anyio.Event)
    """Set when a list becomes stale."""
    resubscribe: anyio.Event = field(default_factory=anyio.Event)
    """Set when other resources are to be watched."""
    watched: set[str] = field(default_factory=set[str])
    """The resources that the server says it watches for us."""
    settled: anyio.Event = field(default_factory=anyio.Event)
    """Set whenever `watched` changes."""
    log_levels: LogLevels = field(default_factory=LogLevels)
    elicitations: dict[str, tuple[OpenRequest, UpstreamCaller]] = field(
        default_factory=dict[str, tuple[OpenRequest, UpstreamCaller]]
    )
    """Who was asked to open an address, and for which call, by the server's own name for it."""
    answered: int = 0
    """Calls that it answered."""
    on_first_question: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    watchers: list[Callable[[Noticed], None]] = field(default_factory=list[Callable[[Noticed], None]])
    """Receive everything that the server says of its own accord."""
    peer: Peer = field(init=False)
    _unclear: deque[Asked] = field(default_factory=deque[Asked])

    def __post_init__(self) -> None:
        self.peer = Peer(self.link, self._take_request, self._take_notice)

    async def send_call(
        self, method: str, params: Mapping[str, Any], caller: UpstreamCaller, more: Mapping[str, str]
    ) -> OpenRequest:
        """`more`: further HTTP headers."""
        metas = (*(running.meta for running in self.calls.values()), caller.meta)
        await self.log_levels.adjust(self.peer, self.agreement, metas)
        stamped, headers = self.agreement.stamp(method, params)
        if not self.agreement.modern:
            stamped = drop_level(stamped)
        headers.update(more)
        request = await self.peer.send_request(method, stamped, headers, reports=caller.progress is not None)
        self.calls[request] = caller
        return request

    async def cancel(self, request: OpenRequest, reason: str) -> None:
        self._drop(request)
        await self.peer.cancel(request, reason, self.agreement.stamp("notifications/cancelled", {})[1])

    def finish(self, request: OpenRequest) -> None:
        self._drop(request)
        self.peer.forget(request)

    def _drop(self, request: OpenRequest) -> None:
        self.calls.pop(request, None)
        self.waiting.discard(request)
        self.settle_questions()

    def note_watched(self, uris: Iterable[str]) -> None:
        self.watched = set(uris)
        self.settled.set()
        self.settled = anyio.Event()

    async def wait_until_watched(self, uri: str) -> None:
        with anyio.move_on_after(SETTLE_SECONDS):
            while uri not in self.watched and self.peer.ended is None:
                await self.settled.wait()

    def mark_stale(self, lists: frozenset[str], announced: bool = True) -> None:
        self.stale |= lists
        if announced:
            self.announced |= lists
        self.changed.set()

    def _take_request(self, asked: Asked) -> None:
        if asked.method == LIST_ROOTS and self.mount.roots:
            self.peer.reply_soon(asked, self.list_roots())
        elif asked.method == ELICIT:
            self._hand_over(asked)
        else:
            self.peer.reply_soon(asked, UpstreamError(METHOD_NOT_FOUND, f"menugate does not offer {asked.method[:80]}"))

    def list_roots(self) -> Mapping[str, Any]:
        return {"roots": [{"uri": self.workspace, "name": "workspace"}]}

    def _hand_over(self, asked: Asked) -> None:
        self.note_asking()
        self._unclear.append(asked)
        self.settle_questions()

    def note_asking(self) -> None:
        """Remember that the server asks, and tell whoever may hold it later."""
        if not self.asks:
            self.asks = True
            for tell in self.on_first_question:
                tell()

    def settle_questions(self) -> None:
        """Hand over the questions of which it is clear by now whose they are. A call that waits for an answer asks
        nothing, so it is none of those that may have asked."""
        able = {request: caller for request, caller in self.calls.items() if request not in self.waiting}
        sessions = {(caller.principal, caller.session) for caller in able.values()}
        if len(sessions) == 1:
            while self._unclear and able:
                self._give(self._unclear.popleft(), able)
        elif len(self._unclear) >= len(sessions):
            # Every call that may have asked has asked, and nothing says which is which.
            while self._unclear:
                self.peer.reply_soon(self._unclear.popleft(), UpstreamError(INVALID_REQUEST, UNCLEAR))

    def _give(self, asked: Asked, able: dict[OpenRequest, UpstreamCaller]) -> None:
        """To the latest call: for its session it makes no difference."""
        request = next(reversed(able))
        del able[request]
        self.waiting.add(request)
        request.put(asked)

    def _take_notice(self, notice: Noticed) -> None:
        for watcher in self.watchers:
            watcher(notice)
        if lists := CHANGED_LISTS.get(notice.method):
            self.mark_stale(lists)
        elif notice.method == "notifications/resources/updated":
            if isinstance(uri := notice.params.get("uri"), str):
                self.on_updated(uri)
        elif notice.method == "notifications/subscriptions/acknowledged":
            self._take_watched(notice.params.get("notifications"))
        elif notice.method == "notifications/message":
            # Nothing says to which call it belongs, and another person's is none of this one's business.
            if len({caller.principal for caller in self.calls.values()}) == 1:
                for request in self.calls:
                    request.put(notice)
        elif notice.method == ELICITATION_DONE:
            self._take_done_elicitation(notice)

    def note_elicitation(self, elicitation: str, request: OpenRequest, caller: UpstreamCaller) -> None:
        if len(self.elicitations) >= MAX_ELICITATIONS:
            del self.elicitations[next(iter(self.elicitations))]
        self.elicitations[elicitation] = request, caller

    def _take_done_elicitation(self, notice: Noticed) -> None:
        """Tell the client that was asked, even if the call has ended by now."""
        elicitation = notice.params.get("elicitationId")
        request, caller = self.elicitations.pop(str(elicitation), (None, None))
        if request is not None and request in self.calls:
            request.put(notice)
        elif caller is not None:
            self.peer.run_soon(caller.client.end_elicitation, str(elicitation))

    def _take_watched(self, honoured: Any) -> None:
        uris: Any = cast(dict[str, Any], honoured).get("resourceSubscriptions") if isinstance(honoured, dict) else None
        self.note_watched(
            one for one in cast(list[Any], uris if isinstance(uris, list) else []) if isinstance(one, str)
        )
