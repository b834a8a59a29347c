"""Which calls wait for an answer that comes with another request? Each for a while, and for its own caller only."""

import asyncio
import contextvars
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from msgspec import Struct

from mcp_server.model.upstreams import UpstreamCaller
from mcp_server.upstreams.calls import UpstreamCall
from mcp_server.upstreams.questions import KEY

TTL_SECONDS = 600.0
MAX_PARKED = 64
"""Of all callers; of more, the oldest is given up."""

Binding: TypeAlias = tuple[str, str, str, str, str]


class ParkedCall(Struct, frozen=True):
    call: UpstreamCall
    binding: Binding
    timer: asyncio.TimerHandle


@dataclass
class ParkedCalls:
    _by_token: dict[str, ParkedCall] = field(default_factory=dict[str, ParkedCall])
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    def put(self, call: UpstreamCall, mount: str, params: Mapping[str, Any]) -> None:
        assert call.round is not None
        token = call.round.token
        while len(self._by_token) >= MAX_PARKED:
            self._give_up(next(iter(self._by_token)))
        timer = asyncio.get_running_loop().call_later(TTL_SECONDS, self._give_up, token)
        self._by_token[token] = ParkedCall(call, bind(mount, call.method, params, call.caller), timer)

    def take(self, mount: str, method: str, params: Mapping[str, Any], caller: UpstreamCaller) -> UpstreamCall | None:
        """Return the call whose answers this request brings, if it is the same request of the same caller."""
        binding = bind(mount, method, params, caller)
        for key in caller.client.carried:
            token = key.removeprefix(KEY).rpartition("-")[0] if key.startswith(KEY) else ""
            parked = self._by_token.get(token)
            if parked is not None and parked.binding == binding:
                del self._by_token[token]
                parked.timer.cancel()
                return parked.call
        return None

    async def close(self) -> None:
        for token in list(self._by_token):
            self._give_up(token)
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _give_up(self, token: str) -> None:
        parked = self._by_token.pop(token, None)
        if parked is not None:
            parked.timer.cancel()
            work = parked.call.abandon("the answer to its question never came")
            task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


def bind(mount: str, method: str, params: Mapping[str, Any], caller: UpstreamCaller) -> Binding:
    session = caller.session if caller.lasting else ""
    return caller.principal, session, mount, method, json.dumps(params, sort_keys=True)
