"""What does a pack add to menugate? Tools, prompts and resources."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from mcp_server.model.tools import Tool

if TYPE_CHECKING:
    from mcp_server.model.context import Client

Message: TypeAlias = Mapping[str, Any]
"""A message in the protocol's shape: `{"role": ..., "content": {...}}`."""


class PromptArgument(Struct, frozen=True):
    name: str
    description: str = ""
    required: bool = False
    values: Callable[[str], Sequence[str]] | None = None
    """Completes a half-typed value."""
    acts: bool = False
    """A command that only reads becomes one that acts if this argument is given."""


class Prompt(Struct, frozen=True):
    """A text that the user can ask for by name; hosts show it as a slash command."""

    name: str
    title: str
    description: str
    render: Callable[[Mapping[str, str]], Sequence[Message]]
    arguments: tuple[PromptArgument, ...] = ()
    ask: Callable[["Client", Mapping[str, str]], Awaitable[Mapping[str, str]]] | None = None
    """Asks the user, through the client, for values that the text needs; the answers are added to the arguments."""
    render_for: Callable[[str, Mapping[str, str]], Awaitable[Sequence[Mapping[str, Any]]]] | None = None
    """Used instead of `render` if the text depends on who asks; its first argument is the principal."""


class PromptCaller(Struct, frozen=True):
    """The person behind a client who typed a command."""

    principal: str
    session: str
    """The client's session; empty if it has none."""
    client: "Client"
    may_widen: bool = False
    """The host is listed in a version that somebody looked at. In any other, a change that allows more is confirmed at
    a terminal."""


class SlashCommand(Struct, frozen=True):
    """An action of the person's, among the prompts of hosts that reserve those for their user: getting it runs it. No
    pack ships one."""

    name: str
    title: str
    description: str
    run: Callable[[PromptCaller, Mapping[str, str]], Awaitable[Sequence[Message]]]
    arguments: tuple[PromptArgument, ...] = ()
    acts: bool = True
    """False if it only reads; then every host may offer it to anyone."""
    typed: str = ""
    """What does the same at a terminal."""


class Resource(Struct, frozen=True):
    """Content that clients can read at a fixed address."""

    uri: str
    name: str
    description: str
    media_type: str
    read: Callable[[], str | bytes]


class Template(Struct, frozen=True):
    """Content that clients can read at an address with placeholders."""

    uri_template: str
    name: str
    description: str
    media_type: str
    read: Callable[[Mapping[str, str]], str | bytes]
    values: Callable[[str, str], Sequence[str]] | None = None
    """Completes a half-typed placeholder; gets its name and the text typed so far."""


class PrincipalResource(Struct, frozen=True):
    """Something kept for one principal, which only that one can read."""

    uri_template: str
    """An address, with or without placeholders."""
    name: str
    description: str
    media_type: str
    read: Callable[[str, Mapping[str, str]], Awaitable[str | None]]
    """Takes the principal and the placeholders' values; returns None if there is nothing of theirs."""
    values: Callable[[str, str, str], Awaitable[Sequence[str]]] | None = None
    """Completes a half-typed placeholder for a principal: its name and what is typed so far."""


class Pack(Struct, frozen=True):
    """The object that an entry point in the group `menugate.tools` leads to."""

    name: str
    tools: tuple[Tool, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resources: tuple[Resource, ...] = ()
    templates: tuple[Template, ...] = ()
    menus: tuple[str, ...] = ()
    """Absolute paths of folders with more mode files."""
    longest_name: int = 0
    """The longest tool name allowed, for a pack that does not choose its tools' names; 0 means the length that
    every host accepts."""
