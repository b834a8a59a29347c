"""The four tools around `bash`: look at a shell, wait for it, type into it, end it."""

import time

import anyio

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Problem
from tools.shell import shells
from tools.shell.bash import MEANINGS, format_planted_warning
from tools.shell.definitions import BashKillArguments, BashOutputArguments, BashWaitArguments, BashWriteArguments
from tools.shell.demands import KEYS
from tools.shell.output import make_readable
from tools.shell.shells import ShellSession

STEP = 1.0
INTERRUPTS = frozenset("\x03\x1a\x1c")


async def show_shell_output(ctx: Context, args: BashOutputArguments) -> Ending:
    shell = shells.get_named_shell(ctx, args)
    await shells.raise_if_broken(ctx, shell)
    offset, end = args.get("offset"), None
    if offset is None:
        start, text = shell.screen.read, shell.screen.take_new_text()
        shell.screen.mark_searched()
    else:
        start = max(shell.screen.total + offset, 0) if offset < 0 else offset
        text = await shell.read_window(start)
        end = start + len(text) if text else None
        text = text or shell.screen.get_text_since(start)
    text = make_readable(text)
    if expression := args.get("filter"):
        text = "\n".join(await shells.find_matching(expression, text.split("\n")))
    return build_output_answer(shell, text, start, end)


def build_output_answer(shell: ShellSession, text: str, start: int, end: int | None = None) -> Done:
    """`end` is set if there is more output behind what is shown."""
    text = text.strip("\n")
    body = f"{text}\n\n" if text else "[nothing new]\n" if start else "[no output]\n"
    data = {
        "output": text,
        "running": shell.code is None,
        "exit_code": shell.code,
        "bash_id": shell.id,
        "offset": start,
        "next_offset": shell.screen.total if end is None else end,
    }
    where = shell.describe_hidden() if end is None and start < shell.screen.get_missing_range()[1] else ""
    where = where if end is None else f"[up to offset {end} of {shell.screen.total}]"
    note = f"\n{found}" if shell.code is not None and (found := format_planted_warning(shell.planted)) else ""
    return Done("\n".join(filter(None, (f"{body}[{describe_state(shell)}]{note}", where))), data, printed=True)


def describe_state(shell: ShellSession) -> str:
    if shell.code is None:
        return f"running for {time.monotonic() - shell.begun:.0f} s; {shell.screen.total:,} characters so far"
    late = ", because it exceeded its time limit" if shell.over_time else ""
    return f"ended with exit code {shell.code}{MEANINGS.get(shell.code, '')}{late}"


async def write_to_shell(ctx: Context, args: BashWriteArguments) -> Ending:
    shell = shells.get_named_shell(ctx, args)
    shells.raise_if_profile_lower(ctx, shell)
    await shells.raise_if_broken(ctx, shell)
    if shell.code is not None:
        return Problem(
            Code.NOT_FOUND, f"Shell `{shell.id}` has {describe_state(shell)}.", "Start another one with `bash`."
        )
    text = args.get("content", "") + ("\n" if args.get("press_enter") else "")
    start = shell.screen.read
    if shell.takes_lines and args.get("content", "") not in KEYS:
        shell.notes.append(text)
    shell.interrupted = shell.interrupted or not INTERRUPTS.isdisjoint(text)
    if shell.takes_lines:
        shell.child.line = text
    await shell.type_text(text.encode("utf-8", "replace"))
    shell.screen.mark_searched()
    await shell.wait_for_quiet(1.0)
    return build_output_answer(shell, make_readable(shell.screen.take_new_text()), start)


async def kill_shell(ctx: Context, args: BashKillArguments) -> Ending:
    shell = shells.get_named_shell(ctx, args)
    was = describe_state(shell)
    await shell.close(shells.GRACE)
    text = make_readable(shell.screen.take_new_text()).strip("\n")
    await shells.forget_shell(ctx, shell)
    note = f"Ended shell `{shell.id}`; it was {was}." if was.startswith("running") else f"It had already {was}."
    note = "\n".join(filter(None, (note, format_planted_warning(shell.planted))))
    return Done(f"{text}\n\n{note}" if text else note, {"bash_id": shell.id, "output": text}, printed=True)


async def wait(ctx: Context, args: BashWaitArguments) -> Ending:
    seconds, expression = float(args["seconds"]), args.get("until")
    if not (args.get("bash_id") or args.get("shell_id")):
        if expression:
            return Problem(
                Code.INVALID_ARGUMENTS,
                "`until` is searched for in the output of a shell.",
                "Pass its `bash_id` as well.",
            )
        await _wait_seconds(ctx, seconds)
        return Done(f"Waited {seconds:g} s.")
    shell = shells.get_named_shell(ctx, args)
    start = shell.screen.read
    found = await _wait_for_shell(ctx, shell, seconds, expression)
    await shells.raise_if_broken(ctx, shell)
    why = "found" if found else "ended" if shell.code is not None else "time over"
    shown = make_readable(shell.screen.take_new_text())
    shell.screen.mark_searched()
    ending = build_output_answer(shell, shown, start)
    head = f"`{expression}` was found" if found and expression else why
    return Done(f"{ending.text}\n[{head}]", {**(ending.data or {}), "stopped": why}, printed=True)


async def _wait_seconds(ctx: Context, seconds: float) -> None:
    begun = anyio.current_time()
    while (left := seconds - (anyio.current_time() - begun)) > 0:
        await anyio.sleep(min(STEP, left))
        await ctx.progress(min(round(anyio.current_time() - begun, 1), seconds), seconds, "waiting")


async def _wait_for_shell(ctx: Context, shell: ShellSession, seconds: float, expression: str | None) -> bool:
    """Wait until the shell ends or prints a match; return whether it printed one."""
    until = anyio.current_time() + seconds
    begun, seen = anyio.current_time(), shell.screen.searched
    while True:
        over = shell.code is not None
        if expression is not None:
            text, total = shell.screen.get_text_since(seen), shell.screen.total
            if await shells.find_matching(expression, [text]):
                return True
            # The last line may not be complete yet.
            seen = max(seen, total - len(text.rpartition("\n")[2]))
        left = until - anyio.current_time()
        if over or left <= 0:
            return False
        with anyio.move_on_after(min(STEP, left)) as pause:
            await (shell.wait_for_more() if expression is not None else shell.wait_for_end(min(STEP, left)))
        if pause.cancelled_caught or expression is None:
            await ctx.progress(round(anyio.current_time() - begun, 1), seconds, describe_state(shell))
