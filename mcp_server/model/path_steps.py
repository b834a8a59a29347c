"""What does a call do to paths, step by step, if it only makes new ones? Whether it does, what is there decides."""

from typing import Literal, NamedTuple, TypeAlias

StepKind: TypeAlias = Literal[
    "enters",  # the folder that later steps start from
    "makes folders",
    "makes files",
    "copies",
    "moves",
    "links",
    "matches",  # gives the names that a pattern fits to a program
    "changes",  # anything
]
MAKING = frozenset(("copies", "moves", "links"))
LOOKING = MAKING | {"matches"}
"""What a call may do unasked only if nothing that is there stands against it."""


class PathStep(NamedTuple):
    does: StepKind
    folder: str
    """Where it happens, below the workspace."""
    paths: tuple[str, ...] = ()
    """What it makes, or what it copies, moves or links to; of `changes`, the name of the program."""
    patterns: tuple[str, ...] = ()
    """More of them, each with a pattern as its last name."""
    into: str = ""
    """Where to: a new path, or a folder that is there."""
    whole: bool = False
    """With everything in a folder, or with the folders around it."""
    keeps: bool = False
    """It leaves what is there as it is."""
    exact: bool = False
    """`into` is the new path, also if a folder is there."""
    guards: bool = False
    """Nothing that follows runs unless it succeeds."""
