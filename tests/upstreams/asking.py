"""A client that a server behind menugate asks something."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_server.model.upstreams import WireResult
from mcp_server.upstreams.servers import UpstreamServers
from tests.upstreams.ground import Recorder, caller

BOTH = ("elicitation", "elicitation.url")


class CallEnded(Exception):
    """How a client of the newest revision ends a call with a question."""


@dataclass
class AskingAgain(Recorder):
    """A client that can be asked only between calls."""

    given: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    async def request_all(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> Mapping[str, Mapping[str, Any]]:
        self.asked += [question for key, question in questions.items() if key not in self.given]
        if missing := [key for key in questions if key not in self.given]:
            self.carried = missing
            raise CallEnded
        return {key: self.given[key] for key in questions}

    def answer(self) -> None:
        self.given.update(dict.fromkeys(self.carried, self.answers))


def text_of(result: WireResult) -> Any:
    return json.loads(result["content"][0]["text"])


async def ask(servers: UpstreamServers, client: Recorder, session: str = "s1", **arguments: str) -> Any:
    return text_of(await servers.call_tool("ordinary", "ask", arguments, caller(client, session)))
