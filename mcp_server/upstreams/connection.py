"""What happens on a connection beside our own requests? The server's questions and notices find whom they are for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from mcp_server.model.upstreams import Mount, UpstreamCaller
from mcp_server.upstreams.catalogue import LISTS
from mcp_server.upstreams.handshake import Agreement
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

CHANGED_LISTS: Mapping[str, frozenset[str]] = {
    "notifications/tools/list_changed": frozenset({"tools"}),
    "notifications/prompts/list_changed": frozenset({"prompts"}),
    "notifications/resources/list_changed": frozenset({"resources", "templates"}),
}


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
    changed: anyio.Event = field(default_factory=anyio.Event)
    """Set when a list becomes stale."""
    answered: int = 0
    """Calls that it answered."""
    peer: Peer = field(init=False)

    def __post_init__(self) -> None:
        self.peer = Peer(self.link, self._take_request, self._take_notice)

    async def send_call(self, method: str, params: Mapping[str, Any], caller: UpstreamCaller) -> OpenRequest:
        stamped, headers = self.agreement.stamp(method, params)
        request = await self.peer.send_request(method, stamped, headers, reports=caller.progress is not None)
        self.calls[request] = caller
        return request

    async def cancel(self, request: OpenRequest, reason: str) -> None:
        self.calls.pop(request, None)
        await self.peer.cancel(request, reason, self.agreement.stamp("notifications/cancelled", {})[1])

    def finish(self, request: OpenRequest) -> None:
        self.calls.pop(request, None)
        self.peer.forget(request)

    def mark_stale(self, lists: frozenset[str]) -> None:
        self.stale |= lists
        self.announced |= lists
        self.changed.set()

    def _take_request(self, asked: Asked) -> None:
        if asked.method == "roots/list" and self.mount.roots:
            self.peer.reply_soon(asked, self.list_roots())
        elif asked.method == "elicitation/create":
            self._hand_over(asked)
        else:
            self.peer.reply_soon(asked, UpstreamError(METHOD_NOT_FOUND, f"menugate does not offer {asked.method[:80]}"))

    def list_roots(self) -> Mapping[str, Any]:
        return {"roots": [{"uri": self.workspace, "name": "workspace"}]}

    def _hand_over(self, asked: Asked) -> None:
        """Nothing in the protocol says which call a question belongs to, so it must be clear without that."""
        if len({caller.session for caller in self.calls.values()}) == 1:
            next(reversed(self.calls)).put(asked)
        else:
            message = "menugate cannot tell whose call this belongs to"
            self.peer.reply_soon(asked, UpstreamError(INVALID_REQUEST, message))

    def _take_notice(self, notice: Noticed) -> None:
        if lists := CHANGED_LISTS.get(notice.method):
            self.mark_stale(lists)
        elif notice.method == "notifications/resources/updated":
            if isinstance(uri := notice.params.get("uri"), str):
                self.on_updated(uri)
        elif notice.method == "notifications/message":
            for request in self.calls:
                request.put(notice)
