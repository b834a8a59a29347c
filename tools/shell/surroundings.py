"""What is known, besides its text, about the place where a line will run?

The facts come in as functions, so that judging a line stays pure. Where nobody has looked, a judge knows none
of them and asks.
"""

import os
import posixpath
from collections.abc import Callable

from msgspec import Struct

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.processes import PROJECT_PROGRAMS
from mcp_server.model.results import Code, Refusal


class Surroundings(Struct, frozen=True):
    has_program: Callable[[str], bool]
    """Also one of the project's own environment; given without a folder, or with its whole path."""
    find_kind: Callable[[str], str]
    """Of a path below the workspace: `file`, `program` for one that may be executed, `directory`, or another word;
    empty if it is certain that nothing is there."""
    may_gain_privileges: bool = True
    root: str = ""
    """The whole path of the workspace."""
    network: bool = True
    """Commands may reach other machines."""


def look_around(ctx: Context) -> Surroundings:
    return Surroundings(
        lambda name: _has_program(ctx, name),
        lambda path: _find_kind(ctx, path),
        ctx.processes.profile is Profile.UNRESTRICTED or os.geteuid() == 0,
        ctx.files.root,
        ctx.processes.network,
    )


def _has_program(ctx: Context, name: str) -> bool:
    if ctx.processes.find_program(name):
        return True
    return "/" not in name and any(_find_kind(ctx, posixpath.join(place, name)) for place in PROJECT_PROGRAMS)


def _find_kind(ctx: Context, path: str) -> str:
    try:
        entry = ctx.files.get_info(path)
    except Refusal as refused:
        return "" if refused.problem.code is Code.NOT_FOUND else "other"
    return "program" if entry.kind == "file" and entry.mode & 0o111 else entry.kind
