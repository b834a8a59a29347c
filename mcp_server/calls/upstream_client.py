"""What does a server behind menugate get of the client? Its port, and what it logs there has no secret in it."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from mcp_server.guards.redaction import Redactor
from mcp_server.model.context import Client

MAX_LOG_CHARS = 20_000
"""Of one message in a server's log."""


class ServerClient(Struct, frozen=True):
    client: Client
    server: str
    redactor: Redactor

    @property
    def name(self) -> str:
        return self.client.name

    @property
    def carried(self) -> Collection[str]:
        return self.client.carried

    def can(self, what: str) -> bool:
        return self.client.can(what)

    def get_note(self, key: str) -> str:
        return self.client.get_note(key)

    async def request(self, key: str, method: str, params: Mapping[str, Any], note: str = "") -> Mapping[str, Any]:
        return await self.client.request(key, method, params, note)

    async def request_all(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> Mapping[str, Mapping[str, Any]]:
        return await self.client.request_all(questions)

    async def announce_change(self, what: str, uri: str = "") -> None:
        await self.client.announce_change(what, uri)

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Log under the server's name, so that nobody takes it for menugate's own."""
        shown = self.redactor.redact_value(data)
        if len(text := json.dumps(shown, ensure_ascii=False)) > MAX_LOG_CHARS:
            shown = f"{text[:MAX_LOG_CHARS]}…"
        name = f"{self.server}.{logger}" if logger else self.server
        await self.client.log(level, shown, self.redactor.redact(name))

    async def end_elicitation(self, elicitation: str) -> None:
        await self.client.end_elicitation(elicitation)
