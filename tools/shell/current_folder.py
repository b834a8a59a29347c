"""Where does the shell stand that a call goes on with? A line means something else in another folder."""

import posixpath
from collections.abc import Mapping

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tools import Arguments
from tools.shell import shells
from tools.shell.shells import ShellSession

NUL = Problem(Code.INVALID_ARGUMENTS, "The command holds a NUL character.", "Leave it out.")


async def read_line_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    if "\0" in args["command"]:
        raise Refusal(NUL)
    name = args.get("bash_id") or args.get("shell_id") or ""
    shell = shells.find_shell(ctx, name) if name and not args.get("run_in_background") else None
    # One that has ended is begun anew, in `exec_dir`.
    if shell is None or shell.code is not None:
        return {}
    await raise_if_elsewhere(ctx, shell, args.get("exec_dir"))
    return _build_facts(shell)


async def read_keys_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    name = args.get("bash_id") or args.get("shell_id") or ""
    shell = shells.find_shell(ctx, name) if name else None
    return _build_facts(shell) if shell is not None else {}


def _build_facts(shell: ShellSession) -> Mapping[str, str]:
    return {"the shell stands in": shell.describe_folder(), "its id": shell.id}


async def raise_if_elsewhere(ctx: Context, shell: ShellSession, wanted: str | None) -> None:
    """A shell that is there already goes on where it is: another folder would be shown, and not be where it runs."""
    if wanted is None:
        return
    here = shell.child.find_current_folder()
    entry = await to_thread.run_sync(ctx.files.get_info, wanted)
    if here and entry.kind == "directory" and posixpath.normpath(f"{ctx.files.root}/{entry.path}") == here:
        return
    where = f"stands in `{here}`" if here else "stands in a folder that cannot be told"
    raise Refusal(
        Problem(
            Code.INVALID_ARGUMENTS,
            f"The shell `{shell.id}` {where}, so this line would not run in `{wanted}`. Nothing ran.",
            "Leave `exec_dir` out, or begin the line with `cd ...`.",
        )
    )
