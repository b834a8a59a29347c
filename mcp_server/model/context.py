"""What does a tool receive? The session, what it was granted, and the ports it may use; nothing else."""

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
    """Reports progress to a client that asked for it; costs nothing if none did."""

    async def __call__(self, done: float, /, total: float | None = None, message: str | None = None) -> None: ...


class Client(Protocol):
    """The program at the other end, as far as the protocol lets a tool talk to it."""

    @property
    def name(self) -> str: ...

    def can(self, what: str) -> bool:
        """`elicitation`, `elicitation.url`, `sampling`, `sampling.tools` or `roots`, as the client declared them."""
        ...

    @property
    def carried(self) -> Collection[str]:
        """The keys of the questions that this call comes back with, if a question ends a call and its answer starts it
        again. Only the server can put a key here."""
        ...

    def get_note(self, key: str) -> str:
        """Return the note that was sent along with this question, if the call has come back with its answer."""
        ...

    async def request(self, key: str, method: str, params: Mapping[str, Any], note: str = "") -> Mapping[str, Any]:
        """Ask, and return the answer. `key` names the question within the call; `note` is for whoever checks the
        answer, and the client can neither read nor change it.

        If the protocol has no way back to the client, the call ends here with the question and starts again from the
        top with the answer, so a tool must do nothing lasting before its last question.
        """
        ...

    async def request_all(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Ask several questions, given as method and params by key; the answers have the same keys.

        In one round trip if the protocol allows it, otherwise one after the other.
        """
        ...

    async def announce_change(self, what: str, uri: str = "") -> None:
        """Announce that the list of `tools`, `prompts` or `resources`, or the `resource` at `uri`, has changed."""
        ...

    async def log(self, level: str, data: Any, logger: str | None = None) -> None: ...


class Person(Protocol):
    """The human being behind the client."""

    async def tell(self, message: str, attachments: Sequence[str] = (), asks: bool = False) -> str:
        """Leave a message where `menugate messages` shows it; return its id. `asks`: the user should reply to it, and
        the reply reaches the model with a later result."""
        ...

    async def tell_and_wait(self, message: str, attachments: Sequence[str] = ()) -> tuple[str, str | None, str]:
        """Leave the message, ask it through the client, and wait for the answer there or for `menugate messages
        reply`. Return `accept`, `decline`, `cancel` or `timeout`, what was answered, and the message's id."""
        ...

    async def find_signature(self, repository: str) -> tuple[tuple[str, str], tuple[str, str]] | None:
        """Return author and committer, each with name and address, as the person's own git has them for the repository
        with this git folder; None if one of them is unknown."""
        ...

    async def find_ignore_file(self, repository: str) -> str:
        """The file with the patterns that the person's own git ignores in every repository; empty if there is none."""
        ...

    async def find_hooks_folder(self, repository: str) -> str:
        """The folder in which the person's own git keeps the hooks of all repositories; empty if each has its own."""
        ...

    def is_reachable(self) -> bool:
        """True if this person can be asked through the client now."""
        ...

    async def ask(self, key: str, message: str) -> tuple[str, str | None]:
        """Return `accept`, `decline`, `cancel` or `timeout`, and what was written."""
        ...


class Navigator(Protocol):
    """Where the session is in the menus, and how it moves."""

    def show_menu(self) -> "Ending": ...

    async def enter(self, query: str) -> "Ending": ...

    async def leave(self) -> "Ending": ...

    async def think(self, content: str) -> "Ending": ...

    async def complete(self, answer: str, status: str) -> "Ending": ...

    async def change_phase(self, before: str | None, after: str | None, reason: str) -> "Problem | None":
        """Move the run from one phase to another; None is no phase. Returns why not if it is in a third one by now."""
        ...


class SessionObjects(Protocol):
    """What lives as long as the session: a shell, a language server. No other session finds it."""

    def get(self, name: str) -> Any | None:
        """Return what is kept under that name. Asking for it counts as using it."""
        ...

    def names(self) -> Sequence[str]: ...

    def keep(self, name: str, thing: Any, close: Callable[[], Awaitable[None]], idle: float = 1800.0) -> None:
        """Keep it under a free name. It is closed once: when it is dropped, when it was unused for that many seconds,
        when the session ends, or when the server stops."""
        ...

    async def drop(self, name: str) -> None:
        """Close it and forget it; does nothing if there is none."""
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
    def navigator(self) -> Navigator: ...
    @property
    def records(self) -> "Records": ...
    @property
    def index(self) -> "Index": ...
    @property
    def memory(self) -> "Memory": ...
    @property
    def hides(self) -> "Callable[[str], bool] | None":
        """True for a path that a rule keeps from the tool, which must not show it either; None if no rule hides
        anything.

        How much was hidden is never reported: that would tell whether a search matches what must not be seen.
        """
        ...

    @property
    def stands(self) -> "Arguments | None":
        """The facts that the person approved, as the tool's `stands_on` gave them; None if nobody was asked.

        They held just before the call began. A tool that acts on more than its arguments compares once more with what
        it has opened: another call may have been quicker.
        """
        ...

    async def call_tool(self, tool: str, arguments: "Arguments") -> "Ending":
        """Call another tool for this one's answer, through the same gate, under the current posture.

        Every layer decides, except that the mode does not check whether the tool is listed where the caller is. A
        refusal comes back as a value. The ledger has both calls, and which one made which. Meta tools and carriers
        cannot be reached, and calls within calls are limited in depth.
        """
        ...
