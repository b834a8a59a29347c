"""In which folder will this line run, and in which shell? The same line means something else in another one."""

import posixpath
import re
from collections.abc import Mapping

from anyio import to_thread
from msgspec.structs import replace

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import escape_name, quote_text
from mcp_server.model.tools import Arguments, Demand
from tools.shell import shells
from tools.shell.classify import classify_line
from tools.shell.demands import build_demand
from tools.shell.hints import find_line_download
from tools.shell.kept_shell import PATIENCE, read_shell_facts, take_turn
from tools.shell.lines import read_line
from tools.shell.run_files import STANDS_IN
from tools.shell.shells import ShellSession
from tools.shell.surroundings import look_around
from tools.shell.vain_lines import find_failure
from tools.shell.verdicts import CommandKind

PLAIN_TEXT = re.compile(r"[\t\n\x20-\x7e]*")
SYNTAX_OPTIONS = re.compile("extglob|shopt|alias|BASHOPTS")
SYNTAX_ERROR = re.compile("syntax error|unexpected EOF")
SYNTAX_SECONDS = 5.0
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
            await _raise_if_vain(ctx, args["command"], args.get("exec_dir") or ".")
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


async def demand_known(ctx: Context, args: Arguments, demand: Demand) -> Demand | None:
    """What does the line need, now that it can be looked up what the workspace holds? In a shell that stays open, its
    folder is looked at later."""
    if ctx.processes.profile.covers(Profile.TRUSTED):
        return None
    folder = args.get("exec_dir") or "."
    verdict = await to_thread.run_sync(classify_line, args["command"], folder, look_around(ctx))
    if verdict.kind is not CommandKind.ASKED:
        return build_demand(args, verdict)
    name = "" if ctx.processes.network else await to_thread.run_sync(find_line_download, ctx, args["command"])
    if not name or not demand.confirm or demand.takes:
        return None
    offline = f"{quote_text(name)} may need a network, and commands have none at `{ctx.processes.profile}`"
    return replace(demand, confirm=f"{demand.confirm}; {offline}")


async def _raise_if_vain(ctx: Context, text: str, folder: str) -> None:
    """Refuse a line that cannot succeed. One with odd characters is for the user to see."""
    if not PLAIN_TEXT.fullmatch(text):
        return
    line = read_line(text)
    if line is None:
        if why := await _find_syntax_error(ctx, text):
            raise Refusal(
                Problem(Code.INVALID_ARGUMENTS, f"bash cannot read the line. Nothing ran. {why}", "Correct it.")
            )
        return
    if not line.commands:
        return
    if vain := await to_thread.run_sync(find_failure, line, folder, look_around(ctx)):
        because = f"{vain.because[0].upper()}{vain.because[1:]}"
        raise Refusal(Problem(vain.code, f"{because}, so the line cannot succeed. Nothing ran.", vain.way_out))


async def _find_syntax_error(ctx: Context, text: str) -> str:
    """Let bash read the line without running it. What an option of bash would allow, it does not know by then."""
    if SYNTAX_OPTIONS.search(text):
        return ""
    found = await ctx.processes.run(Command(("bash", "-n", "-c", text), read_only=True, seconds=SYNTAX_SECONDS))
    said = escape_name(found.err.decode("utf-8", "replace").strip().split("\n")[0])
    return said if found.code and not found.timed_out and SYNTAX_ERROR.search(said) else ""


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
