"""How did a call end? A value, never an exception: Done, Problem with a code, or a Question to the user.

The page docs/codes.md is generated from the codes here. A code is never renamed: clients and rules match on it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self, TypeAlias

from msgspec import Struct, field


class Code(StrEnum):
    """A code with its meaning. A code without a meaning cannot be defined."""

    meaning: str

    def __new__(cls, code: str, meaning: str = "") -> Self:
        if not meaning:
            raise TypeError(f'the code `{code}` has no meaning: write `{code} = "{code}", "what it means"`')
        member = str.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member

    # Returned by the decision, in the order of its layers.
    UNKNOWN_TOOL = "UNKNOWN_TOOL", "no tool has that name"
    BLOCKED = "BLOCKED", "the operator's blocklist forbids this call; no profile or approval changes that"
    WRONG_MODE = "WRONG_MODE", "the tool belongs to a mode this session is not in; the answer names the mode to enter"
    WRONG_STAGE = "WRONG_STAGE", "the run's stage does not allow what the tool does"
    WRONG_PHASE = "WRONG_PHASE", "the phase this run is in does not include the tool; the answer says how to continue"
    READ_ONLY_WORK = (
        "READ_ONLY_WORK",
        "the work mode (plan, research, review) or the AI mode (chat) only allows reading",
    )
    PROFILE_TOO_LOW = (
        "PROFILE_TOO_LOW",
        "the user's permission profile is too low for the tool or for these arguments",
    )
    RULE_DENIED = "RULE_DENIED", "a deny rule matches the call"
    INVALID_ARGUMENTS = "INVALID_ARGUMENTS", "the arguments do not fit the tool's schema"
    BUDGET_SPENT = "BUDGET_SPENT", "the run has used up a budget that the user or the operator set"
    PHASE_SPENT = "PHASE_SPENT", "the phase has no calls left; move to the next phase or go back"
    RUN_PAUSED = "RUN_PAUSED", "the run is paused until the user resumes it"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED", "the call needs the user's approval"
    APPROVAL_DENIED = "APPROVAL_DENIED", "the user was asked about the call and did not approve it"
    # Returned by the menus.
    UNKNOWN_MODE = "UNKNOWN_MODE", "no mode has that name, number, title or trigger"
    AMBIGUOUS_MODE = "AMBIGUOUS_MODE", "no single mode matches; the answer lists the choices by number"
    ALREADY_AT_ROOT = "ALREADY_AT_ROOT", "there is no mode to leave"
    UNKNOWN_HANDLE = "UNKNOWN_HANDLE", "the menu handle is unknown: it is made up, expired, or another caller's"
    NOT_READ_ONLY = "NOT_READ_ONLY", "menu_read carries only tools that read; use menu_call for the others"
    NOT_CARRIED = "NOT_CARRIED", "a carrier cannot carry meta-tools or itself; call them by their own names"
    # Returned by `think`.
    REASONING_INCOMPLETE = (
        "REASONING_INCOMPLETE",
        "reasoning is on, and the thought lacks a required part",
    )
    # Returned while the tool runs.
    TIMEOUT = "TIMEOUT", "the tool did not finish within its time and was stopped"
    CANCELLED = "CANCELLED", "the client cancelled the call, or the user stopped the run"
    BUSY = "BUSY", "another process is using the workspace's state; nothing ran"
    STORE_FULL = "STORE_FULL", "the ledger cannot be written because the disk is full; nothing ran"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE", "the state file cannot be read or written; nothing ran"
    NOT_GRANTED = "NOT_GRANTED", "the tool tried to do more than this call was granted; nothing was done"
    PATH_REFUSED = "PATH_REFUSED", "the path leaves the workspace, is not a plain file or folder, or is protected"
    NETWORK_REFUSED = "NETWORK_REFUSED", "the network address is not public, or not allowed"
    NOT_FOUND = "NOT_FOUND", "nothing exists at that path"
    ALREADY_EXISTS = "ALREADY_EXISTS", "something already exists at that path"
    NOT_READ = "NOT_READ", "the file must be read in this session before it is changed"
    STALE = "STALE", "the file has changed since it was read, or what the user approved has changed"
    NO_MATCH = "NO_MATCH", "the text to replace is not in the file"
    AMBIGUOUS_MATCH = "AMBIGUOUS_MATCH", "the text to replace is in the file more than once"
    NOT_TEXT = "NOT_TEXT", "the file is not text"
    UNKNOWN_ID = "UNKNOWN_ID", "nothing in this session has that id: it is made up, gone, or another session's"
    WRONG_STATE = "WRONG_STATE", "this cannot be done in the current state; the answer says what can be done"
    NO_EVIDENCE = "NO_EVIDENCE", "nothing on record, or nothing new, supports the claim"
    TOO_LARGE = "TOO_LARGE", "a file, an argument, a result or a count is over its limit"
    UNSAFE_REPOSITORY = (
        "UNSAFE_REPOSITORY",
        "the repository makes git run programs, and no sandbox here can contain them",
    )
    TOOL_FAILED = "TOOL_FAILED", "the tool ran and failed; the message says how"
    UPSTREAM_AWAY = "UPSTREAM_AWAY", "the server behind this tool cannot be reached now; its other tools fail alike"
    UPSTREAM_FAULT = "UPSTREAM_FAULT", "the server behind this tool broke off or sent something that is not MCP"
    UPSTREAM_LOGIN = "UPSTREAM_LOGIN", "the server behind this tool asks for credentials that nobody configured"
    INTERNAL = "INTERNAL", "menugate itself failed; the details are in its log, not in the answer"


class Picture(Struct, frozen=True):
    """A picture, as bytes with its media type."""

    data: bytes
    media_type: str


class Raw(Struct, frozen=True):
    """A content block that already has the protocol's shape and is passed through unchanged."""

    block: Mapping[str, Any]


class Done(Struct, frozen=True):
    """The call succeeded. `text` has everything the model needs; `data` has the same for programs."""

    text: str
    data: Mapping[str, Any] | None = None
    blocks: tuple[Picture | Raw, ...] = ()
    outside: str | None = None
    """Where the text comes from, if it comes from outside. It is then sanitized and marked as untrusted."""
    printed: bool = False
    """The text is a program's terminal output. Invisible characters that a terminal or a model would act on are
    removed."""
    verbatim: bool = False
    """The model will edit the text, so it must match byte for byte. Only known secrets are removed, not values that
    merely look like one."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Facts for the ledger (sizes, paths), which are never shown."""


class Relayed(Struct, frozen=True):
    """The result of another server's tool, in the protocol's shape and passed on as it was sent."""

    blocks: tuple[Mapping[str, Any], ...]
    data: Any = None
    """The structured content; None if there is none."""
    failed: bool = False
    """The server marked the result as an error."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The result's own `_meta`."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Facts for the ledger, which are never shown."""

    @property
    def text(self) -> str:
        texts = (block.get("text") for block in self.blocks if block.get("type") == "text")
        return "\n".join(text for text in texts if isinstance(text, str))


class Problem(Struct, frozen=True):
    """The call failed or was refused: a code, what happened in the reader's words, and what to do next."""

    code: Code
    message: str
    way_out: str = ""
    data: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text for the model. It starts with `Error`, because half of the hosts don't show the error flag."""
        return f"Error {self.code}: {self.message}" + (f"\n{self.way_out}" if self.way_out else "")


class Question(Struct, frozen=True):
    """The person must answer first. The id covers session, run, step, tool and the arguments' digest."""

    id: str
    text: str


Ending: TypeAlias = Done | Relayed | Problem | Question


def has_failed(ending: Ending) -> bool:
    return isinstance(ending, Problem) or (isinstance(ending, Relayed) and ending.failed)


class Refusal(Exception):
    """A guard's refusal, raised where the effect would have happened and caught only by the pipeline.

    Guards are called from deep inside tools, and an exception cannot be overlooked on the way out.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem

    @classmethod
    def because(cls, code: Code, message: str, way_out: str = "") -> "Refusal":
        return cls(Problem(code, message, way_out))
