"""What is an upstream? An MCP server behind menugate: where it is, what it offers, and how a call reaches it.

`Mount` is what you configured, `Catalogue` what the server said it offers. Definitions and results stay in the
protocol's own shape, as JSON values, so that nothing a server sends is lost on its way to the client.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, field

from mcp_server.model.context import Client, Progress
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Arguments, Effect
from mcp_server.model.upstream_packages import MountPackage

Definition: TypeAlias = Mapping[str, Any]
"""A tool, prompt, resource or template as its server described it."""
WireResult: TypeAlias = Mapping[str, Any]
"""A result in the protocol's shape, as its server sent it."""


class Serve(StrEnum):
    """Who shares one running instance of a server."""

    SESSION = "session"
    PRINCIPAL = "principal"
    ALL = "all"


class CatalogueChanges(StrEnum):
    """What happens to a tool that is new or described differently since you approved its server."""

    ASK = "ask"
    ALLOW_NEW = "allow-new"
    ALLOW = "allow"


class HttpTransport(StrEnum):
    STREAMABLE = "http"
    SSE = "sse"


class ProtocolEra(StrEnum):
    """Which handshake menugate tries with a server."""

    AUTO = "auto"
    LEGACY = "legacy"
    MODERN = "modern"


@dataclass(frozen=True, slots=True)
class StdioTarget:
    """A server that menugate starts."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str], repr=False)
    """What the server gets besides a minimal environment, with every variable and secret filled in."""
    folder: str = ""
    """Where it starts; empty: in the workspace."""


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A server that is already running somewhere."""

    url: str
    transport: HttpTransport = HttpTransport.STREAMABLE
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str], repr=False)


Target: TypeAlias = StdioTarget | HttpTarget


class ToolShape(Struct, frozen=True):
    """How you want one tool of a server to look and count."""

    name: str = ""
    description: str = ""
    hide: frozenset[str] = frozenset()
    """Arguments that clients do not see and cannot set."""
    fix: Arguments = field(default_factory=dict[str, Any])
    """Arguments with a fixed value: they leave the schema, and the gate judges the call with them."""
    effect: Effect | None = None
    profile: Profile | None = None
    seconds: float | None = None


class ResultTrim(Struct, frozen=True):
    """What is kept of a server's results."""

    keep: tuple[str, ...] = ()
    """The only paths kept in structured results; empty keeps all."""
    drop: tuple[str, ...] = ()
    max_chars: int | None = None


@dataclass(frozen=True, slots=True)
class MountSandbox:
    """What a server that menugate starts may reach."""

    write: tuple[str, ...] = ()
    """Folders in which it may write, besides its own."""
    network: tuple[str, ...] = ()
    """Hosts that it may reach; none if empty."""
    home: bool = False
    """Whether it reads your home folder."""
    own: Path | None = dataclasses.field(default=None, compare=False)
    """Its own folder, which is its home; None if this account can keep nothing."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A server as you configured it."""

    name: str
    slug: str
    """The first part of its tools' names: `[a-z0-9]{1,14}`, and no other mount's."""
    target: Target
    source: str = dataclasses.field(default="", compare=False)
    """Where it is written, as `file:line`."""
    secrets: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    """The names of the stored secrets that its definition refers to."""
    serve: Serve = Serve.PRINCIPAL
    changes: CatalogueChanges = CatalogueChanges.ASK
    era: ProtocolEra = ProtocolEra.AUTO
    tools: Mapping[str, ToolShape] = dataclasses.field(default_factory=dict[str, ToolShape])
    """By the server's own name for the tool."""
    result: ResultTrim = dataclasses.field(default_factory=ResultTrim)
    prefixed: bool = True
    """False: its tools keep their names."""
    roots: bool = False
    """Whether the server is told where the workspace is."""
    sandbox: MountSandbox | None = None
    """None if nothing was said about it."""
    package: MountPackage | None = None
    """What its command line fetches, if that is kept here; None if nothing is."""
    disabled: bool = False
    start_seconds: float = 30.0
    call_seconds: float = 60.0
    idle_seconds: float = 600.0

    @property
    def uri_prefix(self) -> str:
        """What the addresses of its resources begin with here; empty if they stay as they are."""
        return self.slug if self.prefixed else ""


class MountBinding(Struct, frozen=True):
    """Which definition of a server a tool was built from."""

    digest: str
    uri_prefix: str
    """What stands before the addresses in its results."""


class Catalogue(Struct, frozen=True):
    """What a server offers, as it said when it was last asked."""

    tools: tuple[Definition, ...] = ()
    prompts: tuple[Definition, ...] = ()
    resources: tuple[Definition, ...] = ()
    templates: tuple[Definition, ...] = ()
    instructions: str = ""
    server: Definition = field(default_factory=dict[str, Any])
    """Its name, version and title."""
    capabilities: Definition = field(default_factory=dict[str, Any])
    protocol: str = ""
    """The revision it speaks."""
    read_at: int = 0
    """In nanoseconds."""


class UpstreamState(StrEnum):
    IDLE = "idle"
    """Not running; the next call starts it."""
    STARTING = "starting"
    READY = "ready"
    AWAY = "away"
    """It failed, and is tried again after a while, or by the next call after that."""
    LOGIN = "log-in"
    """It asks for credentials that the configuration does not give it."""
    DISABLED = "disabled"


class UpstreamStatus(Struct, frozen=True):
    state: UpstreamState
    reason: str = ""
    """Why it is away, in words for you."""
    since: int = 0
    """In nanoseconds."""
    catalogue: Catalogue | None = None
    """The last one known, which is served while the server is away."""


class UpstreamCaller(Struct, frozen=True):
    """For whom a request is made, and how the server's questions and notices reach them."""

    principal: str
    session: str
    client: Client
    progress: Progress | None = None
    """None if the client did not ask for progress."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What of the request's `_meta` is passed on."""
    definition: str = ""
    """The digest of the server's definition that the call was judged by; empty if nothing was judged. A server that is
    defined differently by then does not get the call."""
    lasting: bool = True
    """False if the session ends with this request, so that the answer to a question comes in another one."""


class UpstreamChange(Struct, frozen=True):
    """What became different without a call, for those who serve lists and subscriptions."""

    mount: str
    what: str
    """`catalogue`, `state`, or `resource` for the one at `uri`."""
    uri: str = ""
    principal: str = ""
    """Whose instance it was, for a resource; empty if everybody shares it."""


class UpstreamAccess(Protocol):
    """What a tool may ask of the servers behind menugate during one call."""

    async def call_tool(self, server: str, tool: str, arguments: Arguments) -> WireResult:
        """Call the tool that this call is about, by the server's own name for it; any other is refused."""
        ...

    async def read_resource(self, server: str, uri: str) -> WireResult:
        """Read the resource that this call is about, by the server's own address."""
        ...

    async def get_prompt(self, server: str, prompt: str, arguments: Mapping[str, str]) -> WireResult:
        """Get the prompt that this call is about."""
        ...

    def note_links(self, server: str, uris: Iterable[str]) -> None:
        """Remember addresses that the server has named in a result: its client may read them, listed or not."""
        ...


class Upstreams(Protocol):
    """The way to the servers behind menugate. If a server cannot be reached, breaks off or breaks the protocol, a
    `Refusal` says so; a result that the server itself marks as an error is returned as it is. A protocol error is a
    `Refusal` as well, with all of it as `error` in its data.

    If the server asks the user something, the question goes through the caller's client, and so may end the call. The
    server goes on with it when the same caller makes the same call with the answer.
    """

    def get_status(self, mount: str) -> UpstreamStatus: ...

    async def get_catalogue(self, mount: str, caller: UpstreamCaller) -> Catalogue:
        """Return what the server offers, and start it if no catalogue is known."""
        ...

    async def call_tool(self, mount: str, tool: str, arguments: Arguments, caller: UpstreamCaller) -> WireResult:
        """Call a tool by the server's own name for it."""
        ...

    async def read_resource(self, mount: str, uri: str, caller: UpstreamCaller) -> WireResult: ...

    async def get_prompt(
        self, mount: str, prompt: str, arguments: Mapping[str, str], caller: UpstreamCaller
    ) -> WireResult: ...

    async def subscribe(self, mount: str, uri: str, caller: UpstreamCaller) -> None:
        """Watch a resource for the caller's session: each change becomes an `UpstreamChange`."""
        ...

    async def unsubscribe(self, mount: str, uri: str, caller: UpstreamCaller) -> None: ...

    def end_session(self, session: str) -> None:
        """Stop the instances that only this session uses, and its subscriptions."""
        ...

    async def complete(self, mount: str, params: Mapping[str, Any], caller: UpstreamCaller) -> WireResult:
        """Complete a half-typed argument of a prompt or template."""
        ...
