"""What do the shells say, and when do they end? Looking, waiting, typing and ending."""

import time
from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict

import anyio

from mcp_server.model.ending import Code, Done, Ending, Problem
from mcp_server.model.ports.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, schema_of
from mcp_server.model.tool import ACTING, REVIEWING, WARMUP, Arguments, Demand, Effect, Hints, Tool
from tools.shell import shells
from tools.shell.bash import MEANINGS, UNKNOWN, obeyed
from tools.shell.screen import readable
from tools.shell.shells import Shell

MOST_WAIT = 300.0
STEP = 1.0
KEYS = ("", "\x03", "\x04", "\x1a", "\x1c", "q", "y", "n")
"""What answers a program, and is no command."""

ShellId = Annotated[str, "The shell, by the id `bash` answered or your name for it", Is(longest=200)]
Same = Annotated[str, "The same as `bash_id`", Is(longest=200)]


class OutputArguments(TypedDict):
    bash_id: NotRequired[ShellId]
    shell_id: NotRequired[Same]
    filter: NotRequired[Annotated[str, "Only lines in which this regular expression is found", Is(longest=1000)]]
    offset: NotRequired[
        Annotated[int, "Show from this character on, below zero from the end; what is new if left out", Is()]
    ]


class WriteArguments(TypedDict):
    shell_id: NotRequired[ShellId]
    bash_id: NotRequired[Annotated[str, "The same as `shell_id`", Is(longest=200)]]
    content: NotRequired[Annotated[str, "What to type; `\\u0003` is Ctrl-C", Is(longest=100_000)]]
    press_enter: NotRequired[Annotated[bool, "Press Enter after it", Is(default=False)]]


class KillArguments(TypedDict):
    shell_id: NotRequired[ShellId]
    bash_id: NotRequired[Annotated[str, "The same as `shell_id`", Is(longest=200)]]


class WaitArguments(TypedDict):
    seconds: Annotated[float, "How long at the most, up to 300", Is(at_least=0, at_most=MOST_WAIT)]
    bash_id: NotRequired[Annotated[str, "Stop waiting when this shell has ended", Is(longest=200)]]
    shell_id: NotRequired[Same]
    until: NotRequired[
        Annotated[str, "Stop waiting when this regular expression is found in what it prints", Is(longest=1000)]
    ]


async def bash_output(ctx: Context, args: OutputArguments) -> Ending:
    shell = shells.named(ctx, args)
    offset = args.get("offset")
    if offset is None:
        start, text = shell.screen.read, shell.screen.new()
        shell.screen.looked()
    else:
        start = max(shell.screen.total + offset, 0) if offset < 0 else offset
        text = shell.screen.since(start)
    text = readable(text)
    if expression := args.get("filter"):
        text = "\n".join(await shells.matching(expression, text.split("\n")))
    return said(shell, text, start)


def said(shell: Shell, text: str, start: int) -> Done:
    text = text.strip("\n")
    body = f"{text}\n\n" if text else "[nothing new]\n" if start else "[no output]\n"
    data = {
        "output": text,
        "running": shell.code is None,
        "exit_code": shell.code,
        "bash_id": shell.id,
        "offset": start,
        "next_offset": shell.screen.total,
    }
    note = f"\n{found}" if shell.code is not None and (found := obeyed(shell.planted)) else ""
    return Done(f"{body}[{state(shell)}]{note}", data, printed=True)


def state(shell: Shell) -> str:
    if shell.code is None:
        return f"running for {time.monotonic() - shell.begun:.0f} s; {shell.screen.total:,} characters so far"
    late = ", because it ran longer than it may" if shell.over_time else ""
    return f"ended with exit code {shell.code}{MEANINGS.get(shell.code, '')}{late}"


async def write_to_shell(ctx: Context, args: WriteArguments) -> Ending:
    shell = shells.named(ctx, args)
    shells.same_profile(ctx, shell)
    if shell.code is not None:
        return Problem(Code.NOT_FOUND, f"Shell `{shell.id}` has {state(shell)}.", "Start another one with `bash`.")
    text = args.get("content", "") + ("\n" if args.get("press_enter") else "")
    start = shell.screen.read
    await shell.child.write(text.encode("utf-8", "replace"))
    shell.screen.looked()
    await shell.quiet(1.0)
    return said(shell, readable(shell.screen.new()), start)


async def kill_shell(ctx: Context, args: KillArguments) -> Ending:
    shell = shells.named(ctx, args)
    was = state(shell)
    await shell.close(shells.GRACE)
    text = readable(shell.screen.new()).strip("\n")
    await shells.forget(ctx, shell)
    note = f"Shell `{shell.id}` was ended; it was {was}." if was.startswith("running") else f"It had {was} already."
    note = "\n".join(filter(None, (note, obeyed(shell.planted))))
    return Done(f"{text}\n\n{note}" if text else note, {"bash_id": shell.id, "output": text}, printed=True)


async def wait(ctx: Context, args: WaitArguments) -> Ending:
    seconds, expression = float(args["seconds"]), args.get("until")
    if not (args.get("bash_id") or args.get("shell_id")):
        if expression:
            return Problem(
                Code.INVALID_ARGUMENTS, "`until` is looked for in what a shell prints.", "Give its `bash_id` too."
            )
        await _waited(ctx, seconds)
        return Done(f"Waited {seconds:g} s.")
    shell = shells.named(ctx, args)
    start = shell.screen.read
    found = await _awaited(ctx, shell, seconds, expression)
    why = "found" if found else "ended" if shell.code is not None else "time over"
    shown = readable(shell.screen.new())
    shell.screen.looked()
    ending = said(shell, shown, start)
    head = f"`{expression}` was found" if found and expression else why
    return Done(f"{ending.text}\n[{head}]", {**(ending.data or {}), "stopped": why}, printed=True)


async def _waited(ctx: Context, seconds: float) -> None:
    begun = anyio.current_time()
    while (left := seconds - (anyio.current_time() - begun)) > 0:
        await anyio.sleep(min(STEP, left))
        await ctx.progress(min(round(anyio.current_time() - begun, 1), seconds), seconds, "waiting")


async def _awaited(ctx: Context, shell: Shell, seconds: float, expression: str | None) -> bool:
    """Until the shell has ended or, where one is given, the expression is found; whether it was."""
    until = anyio.current_time() + seconds
    begun, seen = anyio.current_time(), shell.screen.searched
    while True:
        over = shell.code is not None
        if expression is not None:
            text, total = shell.screen.since(seen), shell.screen.total
            if await shells.matching(expression, [text]):
                return True
            # The last line may still be going on.
            seen = max(seen, total - len(text.rpartition("\n")[2]))
        left = until - anyio.current_time()
        if over or left <= 0:
            return False
        with anyio.move_on_after(min(STEP, left)) as pause:
            await (shell.more() if expression is not None else shell.ended(min(STEP, left)))
        if pause.cancelled_caught or expression is None:
            await ctx.progress(round(anyio.current_time() - begun, 1), seconds, state(shell))


def typed(args: Arguments) -> Demand:
    """Whatever is typed may be part of a command; only answers and keys are not."""
    if args.get("content", "") in KEYS:
        return Demand(Effect.EXEC, Profile.NORMAL)
    return Demand(Effect.EXEC, Profile.NORMAL, UNKNOWN, waivable=True, asked_below=Profile.TRUSTED)


def _tool(name: str, title: str, description: str, arguments: type, run: Any, **more: Any) -> Tool:
    return Tool(name=name, title=title, description=description, arguments=schema_of(arguments), run=run, **more)


READING: Mapping[str, Any] = {
    "profile": Profile.RESTRICTED,
    "hints": Hints(read_only=True, destructive=False, idempotent=False, open_world=False),
}
OUTPUT = _tool(
    "bash_output",
    "Look at a shell",
    (
        "Show what a shell of this session has printed since you last looked, whether it runs, and how it ended. "
        "`offset` shows it again from a character on; `filter` shows the lines a regular expression is found in. "
        'Example: {"bash_id": "bash_...", "filter": "error|warning"}'
    ),
    OutputArguments,
    bash_output,
    effect=Effect.READ_LOCAL,
    stages=WARMUP | ACTING | REVIEWING,
    large=True,
    **READING,
)
WRITE = _tool(
    "write_to_shell",
    "Type into a shell",
    (
        "Type into a shell that runs in the background, and show what it says to that. Answers a program's question, "
        'interrupts it with `\\u0003`, or runs a line. Example: {"shell_id": "bash_...", "content": "y", '
        '"press_enter": true}'
    ),
    WriteArguments,
    write_to_shell,
    profile=Profile.NORMAL,
    effect=Effect.EXEC,
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=True),
    stages=ACTING,
    demand=typed,
    shut_in=True,
)
KILL = _tool(
    "kill_shell",
    "End a shell",
    'End a shell of this session with all it started, and show its last output. Example: {"shell_id": "bash_..."}',
    KillArguments,
    kill_shell,
    profile=Profile.NORMAL,
    effect=Effect.SESSION,
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    stages=ACTING,
)
WAIT = _tool(
    "wait",
    "Wait",
    (
        "Wait some seconds, up to 300: until a shell has ended (`bash_id`), or until a regular expression is found in "
        'what it prints (`until`), and no longer. Example: {"seconds": 60, "bash_id": "bash_...", '
        '"until": "listening on"}'
    ),
    WaitArguments,
    wait,
    effect=Effect.NONE,
    stages=WARMUP | ACTING,
    timeout=MOST_WAIT + 30,
    **{**READING, "hints": Hints(read_only=True, destructive=False, idempotent=True, open_world=False)},
)
