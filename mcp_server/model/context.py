"""What is a tool given? The session, what it was granted, and the ports it may reach; nothing else."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mcp_server.model.documents import Records
    from mcp_server.model.files import Files
    from mcp_server.model.index import Index
    from mcp_server.model.memory import Memory
    from mcp_server.model.network import Network
    from mcp_server.model.processes import Processes
    from mcp_server.model.results import Ending, Problem
    from mcp_server.model.sessions import Session
    from mcp_server.model.tools import Arguments, Demand


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

    def get_note(self, key: str) -> str:
        """What was noted with this question when it went out, where the call has come back with its answer."""
        ...

    async def request(self, key: str, method: str, params: Mapping[str, Any], note: str = "") -> Mapping[str, Any]:
        """Ask and get the answer. `key` names the question within the call; `note` is for whoever looks at the answer,
        and the client neither reads nor changes it.

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

    async def announce_change(self, what: str, uri: str = "") -> None:
        """Say that the list of `tools`, `prompts` or `resources`, or the `resource` at `uri`, is not what it was."""
        ...

    async def log(self, level: str, data: Any, logger: str | None = None) -> None: ...


class Person(Protocol):
    """The human being behind the client."""

    async def tell(self, message: str, attachments: Sequence[str] = ()) -> str:
        """Leave a message where `menugate messages` shows it; the id it got."""
        ...

    async def find_signature(self, repository: str) -> tuple[tuple[str, str], tuple[str, str]] | None:
        """Author and committer, each with name and address, as the person's own git has them in the repository whose
        own folder this is; None where one of them is not known."""
        ...

    async def find_ignore_file(self, repository: str) -> str:
        """The file of patterns for what the person's own git leaves out in every repository; empty where there is
        none."""
        ...

    async def find_hooks_folder(self, repository: str) -> str:
        """The folder in which the person's own git has the hooks of every repository; empty where each has its own."""
        ...

    def is_reachable(self) -> bool:
        """Can this person be asked through the client, now?"""
        ...

    async def ask(self, key: str, message: str) -> tuple[str, str | None]:
        """`accept`, `decline`, `cancel` or `timeout`, and what was written."""
        ...


class Navigator(Protocol):
    """Where the session stands in the menus, and how it moves."""

    def show_menu(self) -> "Ending": ...

    async def enter(self, wish: str) -> "Ending": ...

    async def leave(self) -> "Ending": ...

    async def think(self, content: str) -> "Ending": ...

    async def complete(self, answer: str, status: str) -> "Ending": ...

    async def change_phase(self, before: str | None, after: str | None, reason: str) -> "Problem | None":
        """Take the run from one phase to another, None being none; why not, where it is in a third one by now."""
        ...


class SessionObjects(Protocol):
    """What lives as long as the session does: a shell, a language server. Nobody else's session finds it."""

    def get(self, name: str) -> Any | None:
        """What is kept under that name; asking for it also counts as using it."""
        ...

    def names(self) -> Sequence[str]: ...

    def keep(self, name: str, thing: Any, close: Callable[[], Awaitable[None]], idle: float = 1800.0) -> None:
        """Keep it under a name that is free. It is closed, once, when it is dropped, when nobody used it for so many
        seconds, when the session ends, or when the server stops."""
        ...

    async def drop(self, name: str) -> None:
        """Close it and forget it; nothing where there is none."""
        ...


class Context(Protocol):
    @property
    def session(self) -> "Session": ...
    @property
    def demand(self) -> "Demand": ...
    @property
    def files(self) -> "Files": ...
    @property
    def processes(self) -> "Processes": ...
    @property
    def network(self) -> "Network": ...
    @property
    def belongings(self) -> SessionObjects: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def client(self) -> Client: ...
    @property
    def person(self) -> Person: ...
    @property
    def desk(self) -> Navigator: ...
    @property
    def records(self) -> "Records": ...
    @property
    def index(self) -> "Index": ...
    @property
    def memory(self) -> "Memory": ...
    @property
    def hides(self) -> "Callable[[str], bool] | None":
        """Whether a rule keeps this path from the tool, which then does not show it either; None where no rule does.

        Never told is how much that was: it would say whether a search fits what may not be seen."""
        ...

    @property
    def stands(self) -> "Arguments | None":
        """The facts that the person said yes to, as the tool's `stands_on` gave them; None where nobody was asked.

        They held just before the call began. What acts on more than its arguments compares once more, with what it
        holds in its hands: another call may have been quicker."""
        ...

    async def call_tool(self, tool: str, arguments: "Arguments") -> "Ending":
        """Call another tool on the way to this one's answer, through the same gate, under the posture of now.

        Every layer decides, the mode alone does not ask whether that tool is listed where the caller stands. What is
        refused comes back as a value; the ledger tells both calls, and which was made by which. Meta-tools and
        carriers cannot be reached, and calls within calls end at a depth.
        """
        ...
