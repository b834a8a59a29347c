"""Runs a line: in a new shell, in one that stays open, or in the background."""

import time
from collections.abc import Sequence

import anyio

from mcp_server.model.context import Context
from mcp_server.model.results import Done, Ending, Refusal
from tools.shell import kept_shell, shells
from tools.shell.current_folder import NUL, raise_if_elsewhere
from tools.shell.definitions import LONGEST, BashArguments
from tools.shell.hints import format_hints, format_network_hint
from tools.shell.offline_lines import MANAGERS
from tools.shell.output import make_readable
from tools.shell.shells import ShellSession

USUAL = 120.0
BACKGROUND, LONGEST_BACKGROUND = 1800.0, 7200.0
LEAST_MILLISECONDS = 1000
"""Below this a number can only mean seconds."""
STEP = 2.0
"""Seconds between two reports of progress."""
LAST = 4000
"""The last line is looked for in so many characters."""
EARLY = 0.4
"""Seconds to wait whether a background command fails at once."""
MOST_NAMED = 10


async def run_command(ctx: Context, args: BashArguments) -> Ending:
    name = args.get("bash_id") or args.get("shell_id") or ""
    if "\0" in args["command"]:
        return NUL
    if args.get("run_in_background"):
        return await _run_in_background(ctx, args, name)
    return await (_run_in_shell(ctx, args, name) if name else _run_alone(ctx, args))


async def _run_alone(ctx: Context, args: BashArguments) -> Ending:
    limit = get_time_limit(args, USUAL, LONGEST)
    shell = await shells.start_shell(ctx, args["command"], args.get("exec_dir", ""), LONGEST_BACKGROUND, terminal=False)
    kept = False
    try:
        if await _wait_with_progress(ctx, shell, limit):
            await shells.raise_if_broken(ctx, shell)
            if shell.describe_hidden():
                await shells.forget_oldest(ctx)
                shells.keep_shell(ctx, shell)
                kept = True
            return build_ended_answer(ctx, shell, shell.screen.take_new_text())
        await shells.make_room(ctx)
        shells.keep_shell(ctx, shell)
        kept = True
        return build_running_answer(ctx, shell, f"It did not end within {limit:g} s and continues in the background.")
    finally:
        if not kept:
            await shell.close()


async def _run_in_background(ctx: Context, args: BashArguments, name: str) -> Ending:
    await shells.make_room(ctx)
    if name and shells.find_shell(ctx, name):
        await shells.forget_shell(ctx, shells.get_named_shell(ctx, {"bash_id": name}))
    limit = get_time_limit(args, BACKGROUND, LONGEST_BACKGROUND)
    shell = await shells.start_shell(ctx, args["command"], args.get("exec_dir", ""), limit, terminal=True)
    shells.keep_shell(ctx, shell, name)
    await shell.wait_for_end(EARLY)
    if shell.code is not None:
        await shells.raise_if_broken(ctx, shell)
        return build_ended_answer(ctx, shell, shell.screen.take_new_text())
    return build_running_answer(ctx, shell, f"It runs in the background, for at most {limit:g} s.")


async def _open_shell(ctx: Context, args: BashArguments, name: str) -> ShellSession:
    """Return the shell of this name, starting it if it does not run."""
    shell = shells.find_shell(ctx, name)
    if shell is not None and shell.code is None:
        await raise_if_elsewhere(ctx, shell, args.get("exec_dir"))
        return shell
    await shells.make_room(ctx)
    if shell is not None:
        await shells.forget_shell(ctx, shell)
    shell = await shells.start_shell(ctx, "", args.get("exec_dir", ""), LONGEST_BACKGROUND, terminal=True)
    shells.keep_shell(ctx, shell, name)
    shell.child.line = ""
    await shell.child.write(b"stty -echo; PS1=; PS2=\n")
    await shell.wait_for_quiet(2.0)
    await shells.raise_if_broken(ctx, shell)
    shell.screen.take_new_text()
    shell.fresh = await kept_shell.read_state(shell)
    return shell


async def _run_in_shell(ctx: Context, args: BashArguments, name: str) -> Ending:
    """Run it in a shell that stays open and keeps its folder and variables."""
    shell = await _open_shell(ctx, args, name)
    shells.raise_if_profile_lower(ctx, shell)
    limit = get_time_limit(args, USUAL, LONGEST)
    async with kept_shell.take_turn(shell, limit):
        typed = shell.typed
        await kept_shell.require_same_shell(ctx, shell, args)
        if typed != shell.typed:
            raise Refusal(kept_shell.LATER)
        return await _type_line(ctx, shell, args["command"], limit)


async def _type_line(ctx: Context, shell: ShellSession, line: str, limit: float) -> Ending:
    report = kept_shell.begin_waiting(shell).decode()
    mark, before = shell.waits_for
    shell.screen.take_new_text()
    kept_shell.note_line(shell, line)
    shell.child.line = line
    await shell.type_text(type_whole(line, report))
    with anyio.move_on_after(limit):
        while (
            f"\n{mark} " not in (said := shell.screen.get_text_since(before).replace("\r\n", "\n"))
            and shell.code is None
        ):
            await shell.wait_for_more()
    said = shell.screen.take_new_text().replace("\r\n", "\n")
    text, found, rest = said.partition(f"\n{mark} ")
    if not found:
        if shell.code is not None:
            await shells.raise_if_broken(ctx, shell)
            return build_ended_answer(ctx, shell, said)
        return build_running_answer(ctx, shell, f"It did not end within {limit:g} s and continues in its shell.", said)
    code = rest.split("\n", 1)[0].strip()
    notes = (
        f"[in shell {shell.id}]",
        format_hints(ctx, line, text, code != "0") if code != "0" or MANAGERS.search(line) else "",
        format_planted_warning(await shell.find_newly_planted()),
    )
    return build_answer(shell, text, int(code) if code.isdigit() else None, "\n".join(filter(None, notes)))


LINE_BYTES = 3_000
"""A terminal cuts a line after 4,096."""
TYPED = {"\\": r"\\", "'": r"\'"}


def type_whole(command: str, report: str) -> bytes:
    """Return what to type, so that bash has the whole command before any of it runs: a program in it must not read the
    rest as its input, and quotes that are left open must not reach the next line."""
    pieces, size = [""], 0
    for char in command:
        typed = TYPED.get(char) or (char if ord(char) >= 0x20 and ord(char) != 0x7F else f"\\x{ord(char):02x}")
        if (size := size + len(typed.encode())) > LINE_BYTES:
            pieces, size = [*pieces, ""], len(typed.encode())
        pieces[-1] += typed
    text = "\\\n".join(f"$'{piece}'" for piece in pieces)
    return f"eval -- {text}; {report}".encode()


async def _wait_with_progress(ctx: Context, shell: ShellSession, limit: float) -> bool:
    """Wait for the end and report progress; return whether it ended."""
    begun = time.monotonic()
    while (left := limit - (time.monotonic() - begun)) > 0:
        if await shell.wait_for_end(min(STEP, left)):
            return True
        await ctx.progress(round(time.monotonic() - begun, 1), limit, find_last_line(shell) or "running")
    return False


def find_last_line(shell: ShellSession) -> str:
    """Return the last line if all of it is there. The rest of a secret that was cut would not be recognized."""
    start = max(shell.screen.total - LAST, 0)
    before, _, last = make_readable(shell.screen.get_text_since(start)).strip().rpartition("\n")
    return last if before or not start else ""


def get_time_limit(args: BashArguments, usual: float, longest: float) -> float:
    given = args.get("timeout")
    if given is None:
        return usual
    return min(given if given < LEAST_MILLISECONDS else given / 1000, longest)


def build_ended_answer(ctx: Context, shell: ShellSession, text: str) -> Done:
    """Return what it printed, and why it failed if it did."""
    line = shell.command or shell.child.line or ""
    late = "[stopped: it exceeded its time limit]" if shell.over_time else ""
    notes = (
        late,
        shell.describe_hidden(),
        format_hints(ctx, line, text, bool(shell.code)) if shell.code or MANAGERS.search(line) else "",
        format_planted_warning(shell.planted) if shell.planted else "",
    )
    return build_answer(shell, text, shell.code, "\n".join(filter(None, notes)))


def build_running_answer(ctx: Context, shell: ShellSession, why: str, said: str | None = None) -> Done:
    text = shell.screen.take_new_text() if said is None else said
    hint = format_network_hint(ctx, shell.command or shell.child.line or "")
    note = f'[running] {why}\nIts output: bash_output {{"bash_id": "{shell.id}"}}'
    return build_answer(shell, text, None, "\n".join(filter(None, (hint, note))))


def format_planted_warning(planted: Sequence[str]) -> str:
    """Name new files that `Write` would have asked the user about."""
    if not planted:
        return ""
    names = ", ".join(f"`{one}`" for one in planted[:MOST_NAMED])
    more = f" and {len(planted) - MOST_NAMED} more" if len(planted) > MOST_NAMED else ""
    return (
        f"[new since the command started: {names}{more}. Such files control other programs: tell the user, and "
        "delete those that you did not mean to create]"
    )


def build_answer(shell: ShellSession, text: str, code: int | None, note: str) -> Done:
    shown = make_readable(text).strip("\n")
    notes = [note] if note else []
    if code:
        notes.append(f"[exit code {code}{MEANINGS.get(code, '')}]")
    data = {"output": shown, "exit_code": code, "bash_id": shell.id, "running": shell.code is None}
    body = "\n\n".join(part for part in (shown, "\n".join(notes)) if part) or "[no output]"
    # Repeated in `meta`, because a long output is shortened and these would be cut off.
    return Done(body, data, printed=True, meta={"exit_code": code, "bash_id": shell.id})


MEANINGS = {
    126: ", not executable",
    127: ", command not found",
    124: ", timed out",
    130: ", interrupted",
    137: ", killed",
    143: ", ended by SIGTERM",
    153: ", a file exceeded the size limit",
    152: ", exceeded the processor time limit",
}
