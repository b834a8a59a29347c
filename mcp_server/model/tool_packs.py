"""What can be added to the house? Tools, prompts and resources that come together."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp_server.model.tools import Tool

if TYPE_CHECKING:
    from mcp_server.model.context import Client

Message: TypeAlias = Mapping[str, Any]
"""In the protocol's shape: `{"role": ..., "content": {...}}`."""


@dataclass(frozen=True, slots=True)
class PromptArgument:
    name: str
    description: str = ""
    required: bool = False
    values: Callable[[str], Sequence[str]] | None = None
    """What completes a half-typed value."""
    acts: bool = False
    """Given to a command that reads, it makes it one that acts."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Words the person can ask for by name; hosts show them as slash commands."""

    name: str
    title: str
    description: str
    render: Callable[[Mapping[str, str]], Sequence[Message]]
    arguments: tuple[PromptArgument, ...] = ()
    ask: Callable[["Client", Mapping[str, str]], Awaitable[Mapping[str, str]]] | None = None
    """What has to be asked through the client before the words can be said; the answers join the arguments."""
    render_for: Callable[[str, Mapping[str, str]], Awaitable[Sequence[Mapping[str, Any]]]] | None = None
    """In place of `render`, where the words depend on who asks: the principal comes first."""


@dataclass(frozen=True, slots=True)
class PromptCaller:
    """Whoever typed a command: the person behind a client."""

    principal: str
    session: str
    """Where that client stands; empty where nothing remembers it."""
    client: "Client"


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A deed of the person's, among the prompts of hosts that keep those for their user: getting it does it. No pack
    ships one."""

    name: str
    title: str
    description: str
    run: Callable[[PromptCaller, Mapping[str, str]], Awaitable[Sequence[Message]]]
    arguments: tuple[PromptArgument, ...] = ()
    acts: bool = True
    """False where it only reads, which every host may offer to whomever it likes."""
    typed: str = ""
    """What does the same at a terminal."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Something to read at a fixed address."""

    uri: str
    name: str
    description: str
    media_type: str
    read: Callable[[], str | bytes]


@dataclass(frozen=True, slots=True)
class Template:
    """Something to read at an address with holes in it."""

    uri_template: str
    name: str
    description: str
    media_type: str
    read: Callable[[Mapping[str, str]], str | bytes]
    values: Callable[[str, str], Sequence[str]] | None = None
    """What completes a half-typed hole: its name and what is typed so far."""


@dataclass(frozen=True, slots=True)
class PrincipalResource:
    """Something kept for one principal, to be read by that one alone."""

    uri_template: str
    """An address, with or without holes."""
    name: str
    description: str
    media_type: str
    read: Callable[[str, Mapping[str, str]], Awaitable[str | None]]
    """Given the principal and what stands in the holes; None where there is nothing of theirs."""
    values: Callable[[str, str, str], Awaitable[Sequence[str]]] | None = None
    """What completes a half-typed hole for a principal: its name and what is typed so far."""


@dataclass(frozen=True, slots=True)
class Pack:
    """What a third party ships under the entry point group `menugate.tools`."""

    name: str
    tools: tuple[Tool, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resources: tuple[Resource, ...] = ()
    templates: tuple[Template, ...] = ()
    menus: tuple[str, ...] = ()
    """Folders with further mode files, absolute paths."""
    longest_name: int = 0
    """For a pack whose names are given from outside and longer than every host allows; 0 leaves the limit as it is."""
