"""How did a call end? A value, never an exception: Done, Problem with a code, or a Question to the person.

The page docs/codes.md is generated from the codes here. A code is never renamed: clients and rules match on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias


class Code(StrEnum):
    # Found by the decision, in the order of its layers.
    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    BLOCKED = "BLOCKED"
    WRONG_MODE = "WRONG_MODE"
    WRONG_STAGE = "WRONG_STAGE"
    WRONG_PHASE = "WRONG_PHASE"
    READ_ONLY_WORK = "READ_ONLY_WORK"
    PROFILE_TOO_LOW = "PROFILE_TOO_LOW"
    RULE_DENIED = "RULE_DENIED"
    INVALID_ARGUMENTS = "INVALID_ARGUMENTS"
    BUDGET_SPENT = "BUDGET_SPENT"
    PHASE_SPENT = "PHASE_SPENT"
    RUN_PAUSED = "RUN_PAUSED"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    APPROVAL_DENIED = "APPROVAL_DENIED"
    # Found on the way through the menus.
    UNKNOWN_MODE = "UNKNOWN_MODE"
    AMBIGUOUS_MODE = "AMBIGUOUS_MODE"
    ALREADY_AT_ROOT = "ALREADY_AT_ROOT"
    UNKNOWN_HANDLE = "UNKNOWN_HANDLE"
    NOT_READ_ONLY = "NOT_READ_ONLY"
    NOT_CARRIED = "NOT_CARRIED"
    # Found in a thought.
    REASONING_INCOMPLETE = "REASONING_INCOMPLETE"
    # Found while the tool runs.
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    BUSY = "BUSY"
    STORE_FULL = "STORE_FULL"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    NOT_GRANTED = "NOT_GRANTED"
    PATH_REFUSED = "PATH_REFUSED"
    NETWORK_REFUSED = "NETWORK_REFUSED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    NOT_READ = "NOT_READ"
    STALE = "STALE"
    NO_MATCH = "NO_MATCH"
    AMBIGUOUS_MATCH = "AMBIGUOUS_MATCH"
    NOT_TEXT = "NOT_TEXT"
    UNKNOWN_ID = "UNKNOWN_ID"
    WRONG_STATE = "WRONG_STATE"
    NO_EVIDENCE = "NO_EVIDENCE"
    TOO_LARGE = "TOO_LARGE"
    UNSAFE_REPOSITORY = "UNSAFE_REPOSITORY"
    TOOL_FAILED = "TOOL_FAILED"
    INTERNAL = "INTERNAL"


MEANINGS: dict[Code, str] = {
    Code.UNKNOWN_TOOL: "no tool of that name is registered",
    Code.BLOCKED: "the operator's blocklist forbids this call, whatever the profile or an approval says",
    Code.WRONG_MODE: "the tool belongs to a mode this session is not in; the answer names the mode to enter",
    Code.WRONG_STAGE: "the stage of this run does not include what the tool does",
    Code.WRONG_PHASE: "the phase this run is in does not include the tool; the answer says how to go on",
    Code.READ_ONLY_WORK: "the kind of work that holds only reads (plan, research, review, or ai mode chat)",
    Code.PROFILE_TOO_LOW: "the person's permission profile does not cover the tool, or not with these arguments",
    Code.RULE_DENIED: "a deny rule matches the call",
    Code.INVALID_ARGUMENTS: "the arguments do not fit the tool's schema",
    Code.BUDGET_SPENT: "the run has used up a budget the person or the operator set",
    Code.PHASE_SPENT: "the phase has used up its calls; its own tools lead on, or back",
    Code.RUN_PAUSED: "the run is paused until the person lets it go on",
    Code.APPROVAL_REQUIRED: "the call waits for the person's yes",
    Code.APPROVAL_DENIED: "the person was asked about the call and did not say yes",
    Code.UNKNOWN_MODE: "no mode answers to that name, number, title or trigger",
    Code.AMBIGUOUS_MODE: "several modes answer; the answer lists them by number",
    Code.ALREADY_AT_ROOT: "there is no mode to leave",
    Code.UNKNOWN_HANDLE: "the menu handle is not known: made up, expired, or somebody else's",
    Code.NOT_READ_ONLY: "menu_read carries only tools that only read; menu_call carries the others",
    Code.NOT_CARRIED: "a carrier cannot carry meta-tools or itself; call them by their own names",
    Code.REASONING_INCOMPLETE: "reasoning is on, and the thought lacks what opens a run or joins two steps",
    Code.TIMEOUT: "the tool did not finish within its time and was stopped",
    Code.CANCELLED: "the client took the call back, or the person stopped the run",
    Code.BUSY: "the workspace's state is held by another process; nothing ran",
    Code.STORE_FULL: "the ledger cannot be written because the disk is full; nothing ran",
    Code.STORE_UNAVAILABLE: "the state file cannot be read or written; nothing ran",
    Code.NOT_GRANTED: "the tool tried to do more than this call was granted; nothing was done",
    Code.PATH_REFUSED: "the path leaves the workspace, is not a plain file or folder, or is protected",
    Code.NETWORK_REFUSED: "the place of the network is no public one, or not among those that may be reached",
    Code.NOT_FOUND: "there is nothing at that path",
    Code.ALREADY_EXISTS: "something is already at that path",
    Code.NOT_READ: "the file has to be read in this session before it is changed",
    Code.STALE: "the file changed since it was read",
    Code.NO_MATCH: "the text to replace is not in the file",
    Code.AMBIGUOUS_MATCH: "the text to replace is in the file more than once",
    Code.NOT_TEXT: "the file is not text",
    Code.UNKNOWN_ID: "this session has nothing of that id: made up, another session's, or gone",
    Code.WRONG_STATE: "what was asked does not follow from how far the thing is; the answer says what does",
    Code.NO_EVIDENCE: "what was claimed is not borne out by anything on record, or by nothing new",
    Code.TOO_LARGE: "the file, argument, result or number of things is over its limit",
    Code.UNSAFE_REPOSITORY: "the repository names programs for git to run, and nothing here holds them",
    Code.TOOL_FAILED: "the tool ran and failed; the message says how",
    Code.INTERNAL: "menugate itself failed; the details are in its log, not in the answer",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, as bytes with its media type."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Raw:
    """A content block that already has the protocol's own shape, passed through unchanged."""

    block: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """It worked. Everything the model needs is in `text`; `data` says the same for programs."""

    text: str
    data: Mapping[str, Any] | None = None
    blocks: tuple[Picture | Raw, ...] = ()
    outside: str | None = None
    """Where the text comes from, if that is somebody else's: it is sanitized and marked as untrusted."""
    printed: bool = False
    """A program printed it for a terminal: anything that a terminal or a model would obey unseen is removed."""
    verbatim: bool = False
    """The text will be edited and must match byte for byte: only values known to be secret are removed, not what merely
    looks like one."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Bookkeeping for the ledger (sizes, paths), never shown."""


@dataclass(frozen=True, slots=True)
class Problem:
    """It did not work: which code, what happened in the reader's words, and what to do next."""

    code: Code
    message: str
    way_out: str = ""
    data: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """Starts with `Error`, because half of the hosts do not show the flag."""
        return f"Error {self.code}: {self.message}" + (f"\n{self.way_out}" if self.way_out else "")


@dataclass(frozen=True, slots=True)
class Question:
    """The person has to answer first. The id covers session, run, step, tool and the arguments' digest."""

    id: str
    text: str


Ending: TypeAlias = Done | Problem | Question


class Refusal(Exception):
    """A guard's refusal, raised where the effect would have happened and caught only by the pipeline.

    Guards are called from deep inside tools; an exception is the one form that cannot be overlooked on the way out.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem
