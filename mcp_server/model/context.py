"""What does a tool receive? Its session, the demand it was granted, and the ports it may use; nothing else."""

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
    from mcp_server.model.secrets import SecretNames
    from mcp_server.model.sessions import Session
    from mcp_server.model.tools import Arguments, Demand
    from mcp_server.model.upstreams import UpstreamAccess


LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Progress(Protocol):
    """Reports progress if the client asked for it; otherwise does nothing."""

    async def __call__(self, done: float, /, total: float | None = None, message: str | None = None) -> None: ...


class Client(Protocol):
    """The client program, as far as the protocol lets a tool talk to it."""

    @property
    def name(self) -> str: ...

    def can(self, what: str) -> bool:
        """True if the client declared this: `elicitation`, `elicitation.url`, `sampling`, `sampling.tools` or
        `roots`."""
        ...

    @property
    def carried(self) -> Collection[str]:
        """The keys of the questions whose answers this call brings, if a question ended the call and the answer started
        it again. Only the server can put a key here."""
        ...

    def get_note(self, key: str) -> str:
        """Return the note that was sent with this question, if this call brings its answer."""
        ...

    async def request(self, key: str, method: str, params: Mapping[str, Any], note: str = "") -> Mapping[str, Any]:
        """Ask, and return the answer. `key` identifies the question within the call. `note` is for the code that checks
        the answer; the client can neither read nor change it.

        If the protocol cannot ask during a call, the call ends here with the question, and starts again from the top
        when the answer comes. So a tool must change nothing before its last question.
        """
        ...

    async def request_all(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Ask several questions, given as method and params by key; the answers have the same keys.

        They are asked in one round trip if the protocol allows it, otherwise one after the other.
        """
        ...

    async def announce_change(self, what: str, uri: str = "") -> None:
        """Announce that the list of `tools`, `prompts` or `resources`, or the `resource` at `uri`, has changed."""
        ...

    async def log(self, level: str, data: Any, logger: str | None = None) -> None: ...

    async def end_elicitation(self, elicitation: str) -> None:
        """Tell the client that what it was asked to do in a browser is done."""
        ...


class Person(Protocol):
    """The user behind the client."""

    async def tell(self, message: str, attachments: Sequence[str] = (), asks: bool = False) -> str:
        """Leave a message where `menugate messages` shows it; return its id. `asks`: the user should reply to it, and
        the reply reaches the model with a later result."""
        ...

    async def tell_and_wait(self, message: str, attachments: Sequence[str] = ()) -> tuple[str, str | None, str]:
        """Leave the message, show it in the client, and wait for an answer there or from `menugate messages reply`.
        Return what `ask` returns, and the message's id."""
        ...

    async def find_signature(self, repository: str) -> tuple[tuple[str, str], tuple[str, str]] | None:
        """Return the author and committer that the user's own git would write in the repository with this git folder,
        each as name and address. None if either is unknown."""
        ...

    async def find_ignore_file(self, repository: str) -> str:
        """Return the path of the user's own ignore file for every git repository; empty if there is none."""
        ...

    async def find_hooks_folder(self, repository: str) -> str:
        """Return the folder in which the user's own git keeps the hooks of all repositories; empty if each has its
        own."""
        ...

    def is_reachable(self) -> bool:
        """True if the user can be asked through the client now."""
        ...

    async def ask(self, key: str, message: str) -> tuple[str, str | None]:
        """Ask the user. Return `accept` and the text they wrote; or None and why there is none: `decline`, `cancel`,
        `timeout`, or `automatic` if the client answered within a second, before anyone could have read it."""
        ...


class Navigator(Protocol):
    """Where the session is in the menus, and how it moves."""

    def show_menu(self) -> "Ending": ...

    def show_modes(self) -> "Ending":
        """List every mode, wherever the session is."""
        ...

    async def enter(self, query: str) -> "Ending": ...

    async def find_tools(self, need: str, category: str = "") -> "Ending":
        """Name the tools that fit a need, in any mode or in the one given."""
        ...

    def describe_tools(self, names: Sequence[str]) -> "Ending":
        """Show the whole schemas of tools."""
        ...

    async def add_tools(self, names: Sequence[str]) -> "Ending":
        """Add tools of any mode to the session's list until the run ends, and show their schemas."""
        ...

    def list_servers(self) -> "Ending":
        """List the servers behind menugate."""
        ...

    def list_server_tools(self, server: str) -> "Ending": ...

    def find_server_tool(self, server: str, tool: str) -> "str | Problem":
        """Return the name by which `call_tool` calls a server's tool."""
        ...

    def find_server_resource(self, server: str, uri: str) -> "tuple[str, Arguments] | Problem":
        """Return with what `call_tool` reads a server's resource."""
        ...

    async def leave(self) -> "Ending": ...

    async def think(self, content: str) -> "Ending": ...

    async def complete(self, answer: str, status: str) -> "Ending": ...

    async def change_phase(self, before: str | None, after: str | None, reason: str) -> "Problem | None":
        """Move the run from one phase to another; None is no phase. Returns a problem if it has moved elsewhere
        meanwhile."""
        ...


class SessionObjects(Protocol):
    """Objects that live as long as the session, such as a shell or a language server. Other sessions cannot reach
    them."""

    def get(self, name: str) -> Any | None:
        """Return the object of that name, which counts as using it; None if there is none."""
        ...

    def names(self) -> Sequence[str]: ...

    def keep(self, name: str, thing: Any, close: Callable[[], Awaitable[None]], idle: float = 1800.0) -> None:
        """Keep an object under an unused name. It is closed once: when it is dropped, after `idle` seconds without use,
        when the session ends, or when the server stops."""
        ...

    async def drop(self, name: str) -> None:
        """Close and forget the object of that name; do nothing if there is none."""
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
    def secrets(self) -> "SecretNames": ...
    @property
    def upstreams(self) -> "UpstreamAccess":
        """The servers behind menugate. Only their own tools can use it; others use `call_tool`."""
        ...

    @property
    def hides(self) -> "Callable[[str], bool] | None":
        """Returns True for a path that a rule hides from the tool, and that the tool must not show. None if no rule
        hides anything.

        Never report how much was hidden: that would reveal whether a search matches hidden files.
        """
        ...

    @property
    def stands(self) -> "Arguments | None":
        """The facts that the user approved, as the tool's `stands_on` returned them; None if the user was not asked.

        They were true just before the call began, but another call may have been quicker. So a tool that acts on more
        than its arguments has to compare them with what it has opened.
        """
        ...

    async def call_tool(self, tool: str, arguments: "Arguments") -> "Ending":
        """Call another tool and return its result. The call goes through the same gate, with the current posture.

        Every layer checks it, except that the tool need not be in the session's mode. A refusal is returned as a value.
        The ledger records both calls, and which one made the other. Meta-tools and carriers cannot be called, and the
        depth of nested calls is limited.
        """
        ...
