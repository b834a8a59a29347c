"""How did a call end? A value, never an exception: Done, Problem, or a Question to the person."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp_server.model.codes import Code


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, as bytes with its media type."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Raw:
    """A content block that is already in the protocol's own shape, carried through unchanged."""

    block: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """It worked. Everything the model needs is in `text`; `data` says the same for programs."""

    text: str
    data: Mapping[str, Any] | None = None
    blocks: tuple[Picture | Raw, ...] = ()
    outside: str | None = None
    """Where the text comes from, when that is somebody else's: it is sanitized and marked as untrusted."""
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
    """A guard's no, raised where the effect would have happened and caught by the pipeline only.

    Guards are called from deep inside tools; an exception is the one shape that cannot be overlooked on the way out.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem
