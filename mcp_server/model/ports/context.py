"""What is a tool given? The session, what it was granted, and the ports it may reach; nothing else."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from mcp_server.model.ending import Ending
from mcp_server.model.ports.files import Files
from mcp_server.model.session import Session
from mcp_server.model.tool import Demand


class Progress(Protocol):
    """Tells a client that asked how far a call is; costs nothing where nobody asked."""

    async def __call__(self, done: float, /, total: float | None = None, message: str | None = None) -> None: ...


class Client(Protocol):
    """The program at the other end, as far as the protocol lets a tool speak to it."""

    @property
    def name(self) -> str: ...

    def can(self, what: str) -> bool:
        """`elicitation`, `elicitation.url`, `sampling`, `sampling.tools` or `roots`, as the client declared them."""
        ...

    @property
    def carried(self) -> Collection[str]:
        """The keys of the questions this call comes back with, where a question ends a call and the answer begins it
        anew. Nobody but us can put a key here."""
        ...

    async def request(self, key: str, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask and get the answer. `key` names the question within the call.

        Where the protocol has no way back to the client, the call ends here with the question and starts again from
        the top with the answer: a tool does nothing lasting before its last question.
        """
        ...

    async def request_all(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Ask several things at once, method and params by key; the answers by the same keys.

        In one round trip where the protocol has that, one after the other where it has not.
        """
        ...

    async def changed(self, what: str, uri: str = "") -> None:
        """Say that the list of `tools`, `prompts` or `resources`, or the `resource` at `uri`, is not what it was."""
        ...

    async def log(self, level: str, data: Any, logger: str | None = None) -> None: ...


class Person(Protocol):
    """The human being behind the client."""

    async def tell(self, message: str, attachments: Sequence[str] = ()) -> str:
        """Leave a message where `menugate messages` shows it; the id it got."""
        ...

    def reachable(self) -> bool:
        """Can this person be asked through the client, now?"""
        ...

    async def ask(self, key: str, message: str) -> tuple[str, str | None]:
        """`accept`, `decline`, `cancel` or `timeout`, and what was written."""
        ...


class Desk(Protocol):
    """Where the session stands in the menus, and how it moves."""

    def overview(self) -> Ending: ...

    async def enter(self, wish: str) -> Ending: ...

    async def leave(self) -> Ending: ...

    async def think(self, content: str) -> Ending: ...

    async def complete(self, answer: str, status: str) -> Ending: ...


class Context(Protocol):
    @property
    def session(self) -> Session: ...
    @property
    def demand(self) -> Demand: ...
    @property
    def files(self) -> Files: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def client(self) -> Client: ...
    @property
    def person(self) -> Person: ...
    @property
    def desk(self) -> Desk: ...
