"""What would a line do in the shell that is kept open for it? Earlier lines may have changed what its names mean.

A shell is asked about itself only if the user is asked about a line in it, or if something was typed into it that may
have changed it. It answers over its terminal and starts no process.
"""

import posixpath
import re
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
from msgspec.structs import replace

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tools import Arguments, Demand
from tools.shell import shells
from tools.shell.classify import classify_line, list_words
from tools.shell.demands import demand_approval
from tools.shell.output import Capture
from tools.shell.run_files import STANDS_IN, find_run_files
from tools.shell.shell_state import MISLEADING, REPORTS, ShellState, describe_shell, find_other_meaning, parse_reports
from tools.shell.shells import ShellSession
from tools.shell.surroundings import look_around
from tools.shell.verdicts import CommandKind

PATIENCE = 3.0
"""Seconds for a shell to answer about itself."""
SOURCING = re.compile(r"(?:^|[\s;&|({])(?:\.|source)\s")
LASTING = re.compile(r"\b(?:trap|function|readonly|declare|typeset)\b|\(\s*\)")
"""A line with a function, a trap or the like: it runs unasked, but what it sets up stays."""
USED = re.compile(r"\$\{?[!#]?(\w+)")
LATER = Problem(
    Code.STALE,
    "The shell has changed since this call was judged, so the line might mean something else. Nothing ran.",
    "Make the call again; the user may be asked.",
)


def note_line(shell: ShellSession, line: str) -> None:
    """Remember a line that may change what names mean in the shell."""
    if classify_line(line).kind is CommandKind.ASKED or SOURCING.search(line) or LASTING.search(line):
        shell.notes.append(line)


@asynccontextmanager
async def take_turn(shell: ShellSession, seconds: float) -> AsyncGenerator[None]:
    """Wait for the line before and keep others out; raise if it still runs, because a line would be its input."""
    raise_unless_takes_lines(shell)
    with anyio.move_on_after(seconds) as waiting:
        await shell.turn.acquire()
    if waiting.cancelled_caught:
        raise build_busy_refusal(shell)
    try:
        if shell.is_busy and shell.interrupted:
            # bash drops the rest of a line that is interrupted, so the mark at its end never comes.
            shell.interrupted = False
            await shell.child.write(begin_waiting(shell))
        with anyio.move_on_after(seconds):
            while shell.is_busy and shell.code is None:
                await shell.wait_for_more()
        if shell.is_busy and shell.code is None:
            raise build_busy_refusal(shell)
        yield
    finally:
        shell.turn.release()


def begin_waiting(shell: ShellSession) -> bytes:
    """Return what makes the shell print that its line has ended, and with which code."""
    mark = f"menugate-{secrets.token_hex(8)}"
    shell.waits_for = (mark, shell.screen.total)
    # The mark is written in two pieces, so that the terminal's echo of this line is not taken for output.
    return f"printf '\\n%s%s %s\\n' {mark[:8]} {mark[8:]} \"$?\"\n".encode()


def build_busy_refusal(shell: ShellSession) -> Refusal:
    return Refusal(
        Problem(
            Code.TIMEOUT,
            f"The shell `{shell.id}` still runs an earlier line. Nothing was typed into it.",
            "Look with `bash_output`, type to its program with `write_to_shell`, or use another `bash_id`.",
        )
    )


def raise_unless_takes_lines(shell: ShellSession) -> None:
    if not shell.takes_lines and shell.code is None:
        raise Refusal(
            Problem(
                Code.INVALID_ARGUMENTS,
                f"The shell `{shell.id}` runs a program, which would get this line as its input. Nothing was typed.",
                "Type to the program with `write_to_shell`, or use another `bash_id` for lines.",
            )
        )


async def read_state(shell: ShellSession) -> ShellState | None:
    """Ask the shell what names mean in it; None if it does not say, or might say what is not so."""
    if any(MISLEADING.search(line) for line in shell.notes):
        return None
    mark = secrets.token_hex(8)
    begin, middle, end = (f"{mark}-{part}" for part in ("begin", "next", "end"))
    # Each mark is written in two pieces, so that an echo of what is typed is not taken for output.
    says = {part: rf"\builtin printf %s%s {part[:8]} {part[8:]}" for part in (begin, middle, end)}
    asked = f"; {says[middle]}; ".join(rf"\builtin {one} 2>/dev/null || \builtin true" for one in REPORTS)
    shell.capture = Capture(begin.encode(), end.encode())
    try:
        await shell.child.write(f"{says[begin]}; {asked}; {says[end]}\n".encode())
        with anyio.move_on_after(PATIENCE):
            while shell.capture.inside is None and shell.code is None:
                await shell.wait_for_more()
        inside = shell.capture.inside
    finally:
        shell.release_capture()
    text = (inside or b"").decode("utf-8", "replace").replace("\r\n", "\n")
    sections = text.split(middle)
    return parse_reports(sections) if len(sections) == len(REPORTS) else None


def find_kept_shell(ctx: Context, args: Arguments) -> ShellSession | None:
    """Find the running shell that would get the line."""
    name = args.get("bash_id") or args.get("shell_id") or ""
    shell = shells.find_shell(ctx, name) if name and not args.get("run_in_background") else None
    return shell if shell is not None and shell.code is None else None


async def demand_in_shell(ctx: Context, args: Arguments, demand: Demand) -> Demand:
    """What does this line need in the shell where it would run? It may ask where a new shell would not."""
    shell = find_kept_shell(ctx, args)
    if shell is None or ctx.processes.profile.covers(Profile.TRUSTED):
        return demand
    async with take_turn(shell, PATIENCE):
        return await judge_in_shell(ctx, shell, args["command"], demand)


async def judge_in_shell(ctx: Context, shell: ShellSession, line: str, demand: Demand) -> Demand:
    now = await read_state(shell) if shell.notes or not shell.child.find_current_folder() else shell.fresh
    verdict = classify_line(line, _find_folder(ctx, shell, now), look_around(ctx))
    if demand.confirm is None and verdict.kind is CommandKind.ASKED:
        demand = demand_approval(line, verdict.because)
    why = find_other_meaning(list_words(line), shell.fresh, now, ctx.files.root) if shell.notes else ""
    # No rule was written about what names mean here, so none answers this.
    reason = "; ".join(filter(None, (demand.confirm, why)))
    return replace(demand, confirm=reason, waivable=False) if why else demand


def _find_folder(ctx: Context, shell: ShellSession, now: ShellState | None) -> str:
    """Return the folder below the workspace, or the whole path of another one."""
    here = shell.child.find_current_folder() or (now.folder if now is not None else "") or "/"
    relative = posixpath.relpath(here, ctx.files.root)
    return here if relative.split("/")[0] == ".." else relative


async def read_shell_facts(ctx: Context, shell: ShellSession, line: str) -> Mapping[str, str]:
    """Return what the user has to know about the shell. The turn must be held."""
    here = {STANDS_IN: shell.describe_folder(), "its id": shell.id}
    now = await read_state(shell)
    uses = set(USED.findall(line))
    since = {"lines typed into it": str(shell.typed)} if find_run_files(line, ".").untold else {}
    # A file can replace what the shell is asked with, and so keep a function of its own out of the answers.
    sourced = "\n".join(dict.fromkeys(one for one in shell.notes if SOURCING.search(one)))
    hides = {"it has run files that can hide what they defined": sourced} if sourced else {}
    return {**here, **describe_shell(list_words(line), uses, shell.fresh, now, ctx.files.root), **since, **hides}


async def require_same_shell(ctx: Context, shell: ShellSession, args: Arguments) -> None:
    """Raise if the shell is not as it was when the call was approved, or judged. The turn must be held."""
    if ctx.stands is not None and "its id" not in ctx.stands:
        if shell.typed:
            raise Refusal(LATER)
        return
    if ctx.stands is not None:
        if dict(ctx.stands) != await read_shell_facts(ctx, shell, args["command"]):
            raise Refusal(LATER)
        return
    if ctx.processes.profile.covers(Profile.TRUSTED):
        return
    there = await judge_in_shell(ctx, shell, args["command"], ctx.demand)
    if there.confirm != ctx.demand.confirm:
        raise Refusal(LATER)
