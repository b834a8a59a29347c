"""In which folder will this line run, and in which shell? The same line means something else in another one."""

import posixpath
import re
from collections.abc import Mapping

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.processes import PROJECT_PROGRAMS
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.shell import WordRole
from mcp_server.model.text import escape_name
from mcp_server.model.tools import Arguments
from tools.shell import shells
from tools.shell.kept_shell import PATIENCE, read_shell_facts, take_turn
from tools.shell.lines import read_line
from tools.shell.run_files import STANDS_IN
from tools.shell.shell_builtins import BUILTIN_NAMES
from tools.shell.shells import ShellSession

PROGRAM = re.compile(r"[\w./+-]+")
NUL = Problem(Code.INVALID_ARGUMENTS, "`command` contains a NUL character, which ends a line of bash.", "Leave it out.")


async def read_line_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    """Return what the user has to know about the shell. Refuse what cannot run before the user is asked about it."""
    if "\0" in args["command"]:
        raise Refusal(NUL)
    name = args.get("bash_id") or args.get("shell_id") or ""
    shell = shells.find_shell(ctx, name) if name and not args.get("run_in_background") else None
    # A shell that has ended is started again, in `exec_dir`.
    if shell is None or shell.code is not None:
        await _raise_unless_folder(ctx, args.get("exec_dir"))
        if not name:
            await to_thread.run_sync(_raise_unless_installed, ctx, args["command"], args.get("exec_dir") or ".")
        return {}
    await raise_if_elsewhere(ctx, shell, args.get("exec_dir"))
    async with take_turn(shell, PATIENCE):
        return await read_shell_facts(ctx, shell, args["command"])


async def read_keys_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    name = args.get("bash_id") or args.get("shell_id") or ""
    shell = shells.find_shell(ctx, name) if name else None
    if shell is None:
        return {}
    if not shell.takes_lines or shell.is_busy or shell.turn.locked():
        runs = shell.command or "a line that was typed before"
        return {STANDS_IN: shell.describe_folder(), "its id": shell.id, "it runs": runs}
    async with take_turn(shell, PATIENCE):
        return await read_shell_facts(ctx, shell, args.get("content", ""))


def _raise_unless_installed(ctx: Context, text: str, folder: str) -> None:
    """Refuse a line that is one command whose program does not exist. Of a longer one, a part may run without it."""
    line = read_line(text)
    words = line.commands[0].words if line is not None and line.plain else ()
    if not words or words[0].role is not WordRole.WORD or not PROGRAM.fullmatch(words[0].source):
        return
    name = words[0].text
    if "/" in name:
        if name.startswith("/") or _exists(ctx, posixpath.join(folder, name)):
            return
    elif (
        name in BUILTIN_NAMES
        or ctx.processes.find_program(name)
        or any(_exists(ctx, posixpath.join(place, name)) for place in PROJECT_PROGRAMS)
    ):
        return
    missing = f"There is no {'file' if '/' in name else 'program'} `{name}`, so the line cannot run. Nothing ran."
    raise Refusal(Problem(Code.NOT_FOUND, missing, "Check the name."))


def _exists(ctx: Context, path: str) -> bool:
    try:
        ctx.files.get_info(path)
    except Refusal as refused:
        return refused.problem.code is not Code.NOT_FOUND
    return True


async def _raise_unless_folder(ctx: Context, wanted: str | None) -> None:
    if wanted is None:
        return
    entry = await to_thread.run_sync(ctx.files.get_info, wanted)
    if entry.kind not in ("directory", "link"):  # a link is followed, and checked, when the line starts
        raise Refusal(
            Problem(
                Code.INVALID_ARGUMENTS,
                f"`exec_dir` is `{escape_name(wanted)}`, which is not a folder. Nothing ran.",
                "Name a folder of the workspace, or leave `exec_dir` out.",
            )
        )


async def raise_if_elsewhere(ctx: Context, shell: ShellSession, wanted: str | None) -> None:
    """A shell that is open stays in its folder, so a line with another `exec_dir` would not run where it says."""
    if wanted is None:
        return
    here = shell.child.find_current_folder()
    entry = await to_thread.run_sync(ctx.files.get_info, wanted)
    if here and entry.kind == "directory" and posixpath.normpath(f"{ctx.files.root}/{entry.path}") == here:
        return
    where = f"stands in `{here}`" if here else "is in an unknown folder"
    raise Refusal(
        Problem(
            Code.INVALID_ARGUMENTS,
            f"The shell `{shell.id}` {where}, so this line would not run in `{escape_name(wanted)}`. Nothing ran.",
            "Leave `exec_dir` out, or begin the line with `cd ...`.",
        )
    )
