"""Which shells does this session have? They are kept under ids that cannot be guessed."""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.processes import ChildProcess, Command, OutputOverflow, make_command_problem
from mcp_server.model.regex import describe_pattern_danger
from mcp_server.model.results import Code, Problem, Refusal
from tools.shell.definitions import build_shell_label
from tools.shell.output import WINDOW, Capture, Screen, make_readable
from tools.shell.shell_state import ShellState

PREFIX = "bash_"
MAX_SHELLS = 32
"""Shells that one session may run at a time."""
GRACE = 2.0
IDLE = 7200.0
PATIENCE = 1.0
"""Seconds that a search of the output may take."""
MAX_NAMED = 200
VARIABLES = {
    "TERM": "xterm-256color",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "PYTHONUNBUFFERED": "1",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""Keep programs from waiting for somebody at a keyboard."""


@dataclass(eq=False)
class ShellSession:
    """A running command and its output so far."""

    id: str
    command: str
    child: ChildProcess
    aside: OutputOverflow
    """The middle of a long output, as far as there is room for it."""
    profile: Profile
    """The profile when it was started, which its sandbox keeps."""
    seconds: float
    screen: Screen = field(default_factory=Screen)
    begun: float = field(default_factory=time.monotonic)
    over_time: bool = False
    fresh: ShellState | None = None
    """What names meant in it when it was new; None if it did not say."""
    notes: list[str] = field(default_factory=list[str])
    """What was typed into it that may have changed what names mean."""
    typed: int = 0
    """How often something was typed into it."""
    turn: anyio.Lock = field(default_factory=anyio.Lock)
    """Held by the one line that runs in it, or that looks at it."""
    waits_for: tuple[str, int] = ("", 0)
    """The mark that it prints when its last line has ended, and from where on."""
    interrupted: bool = False
    """Since then, a key was typed that may have ended the line before its mark."""
    capture: Capture | None = None
    """Takes what it says about itself, which is no output."""
    planted: tuple[str, ...] = ()
    """New files that other programs obey, as far as they were looked for."""
    _news: anyio.Event = field(default_factory=anyio.Event)
    _done: anyio.Event = field(default_factory=anyio.Event)
    _writing: anyio.Lock = field(default_factory=anyio.Lock)
    _task: "asyncio.Task[None] | None" = None

    @property
    def code(self) -> int | None:
        """None while it runs or not all of its output has arrived."""
        return self.child.code if self._done.is_set() else None

    def follow(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._follow_output())

    async def _follow_output(self) -> None:
        try:
            with anyio.move_on_after(self.seconds) as limit:
                async for piece in self.child.output():
                    self._add_output(piece)
                    if self.screen.is_overfull:
                        await self._put_aside()
                await self.child.wait()
            self.over_time = limit.cancelled_caught
        finally:
            await self.child.kill(GRACE if self.over_time else 0.0)
            try:
                self.planted = tuple(await self.child.find_planted_places())
            finally:
                self._done.set()
                self._add_output(b"", last=True)

    def _add_output(self, piece: bytes, last: bool = False) -> None:
        if self.capture is not None:
            piece = self.capture.take(piece, last)
        self.screen.add(piece, last)
        news, self._news = self._news, anyio.Event()
        news.set()

    async def _put_aside(self) -> None:
        async with self._writing:
            await to_thread.run_sync(self.aside.add, self.screen.take_overflow())

    async def read_window(self, start: int) -> str:
        """Return the part of the middle that starts at this character; empty if it is not kept."""
        await self._put_aside()
        first, end = self.screen.get_missing_range()
        async with self._writing:
            most = min(WINDOW, end - start)
            return await to_thread.run_sync(self.aside.read, start - first, most) if first <= start < end else ""

    def describe_hidden(self) -> str:
        """Say how to get the part that is not shown."""
        first, end = self.screen.get_missing_range()
        if first == end:
            return ""
        lost = end - first - self.aside.size - self.screen.overflow_size
        gone = f"; the last {lost:,} of them were too many to keep" if lost else ""
        return (
            f"[{end - first:,} characters in the middle are not shown: "
            f'bash_output {{"bash_id": "{self.id}", "offset": {first}}} shows them in parts{gone}]'
        )

    async def find_newly_planted(self) -> tuple[str, ...]:
        """Return the files that other programs obey and that are new since the last look."""
        before, self.planted = self.planted, tuple(await self.child.find_planted_places())
        return tuple(one for one in self.planted if one not in before)

    async def wait_for_end(self, seconds: float) -> bool:
        """Wait for the end; return whether it has ended."""
        with anyio.move_on_after(seconds):
            await self._done.wait()
        return self._done.is_set()

    async def wait_for_more(self) -> None:
        """Wait until it prints something, or ends."""
        if not self._done.is_set():
            await self._news.wait()

    async def wait_for_quiet(self, most: float, pause: float = 0.15) -> None:
        """Wait until it has printed something and then pauses, at most so many seconds."""
        waiting = most
        with anyio.move_on_after(most):
            while not self._done.is_set():
                news = self._news
                with anyio.move_on_after(waiting) as waited:
                    await news.wait()
                if waited.cancelled_caught:
                    return
                waiting = pause

    @property
    def takes_lines(self) -> bool:
        """False if it runs a program of its own, which would get a line as its input."""
        return not self.command

    @property
    def is_busy(self) -> bool:
        mark, start = self.waits_for
        return bool(mark) and f"\n{mark} " not in self.screen.get_text_since(start).replace("\r\n", "\n")

    def release_capture(self) -> None:
        """Show what was held back after all, if it did not become what was waited for."""
        if self.capture is not None:
            capture, self.capture = self.capture, None
            self.screen.add(capture.stop())

    async def type_text(self, text: bytes) -> None:
        self.typed += 1
        await self.child.write(text)

    def describe_folder(self) -> str:
        """Return its current folder. If that is unknown, any output may mean that it has changed."""
        return self.child.find_current_folder() or f"an unknown folder ({self.screen.total} characters printed)"

    async def close(self, grace: float = 0.0) -> None:
        with anyio.CancelScope(shield=True):
            await self.child.kill(grace)
            await self._done.wait()
            async with self._writing:
                if self.aside.size:
                    await to_thread.run_sync(self.aside.close)


async def start_shell(ctx: Context, line: str, folder: str, seconds: float, terminal: bool) -> ShellSession:
    """Start a line, or an interactive shell if there is none. It outlives the call only if `keep_shell` is called."""
    argv = (
        ("bash", "--noprofile", "--norc", "-c", line)
        if line
        # `+H`: otherwise `!x` in a line becomes an earlier line, and more runs than was shown.
        else ("bash", "--noprofile", "--norc", "--noediting", "+H", "-i")
    )
    env = VARIABLES if terminal else VARIABLES | {"TERM": "dumb", "NO_COLOR": "1"}
    command = Command(argv, folder=folder, env={**env, "PS1": "$ "}, seconds=seconds, project_first=True)
    child = await ctx.processes.start(command, terminal)
    shell = ShellSession(
        PREFIX + secrets.token_urlsafe(16), line, child, ctx.processes.open_overflow(), ctx.processes.profile, seconds
    )
    shell.follow()
    return shell


async def raise_if_broken(ctx: Context, shell: ShellSession) -> None:
    """Refuse with the reason if the command could not start or was cut off, so that it has no exit code."""
    if shell.code is not None and shell.child.cut_off is not None:
        failure = shell.child.describe_failure(make_readable(shell.screen.get_text_since(0)))
        await forget_shell(ctx, shell)
        raise Refusal(make_command_problem(failure))


def keep_shell(ctx: Context, shell: ShellSession, name: str = "") -> None:
    """`name` is the caller's own name for it, under which the session finds it too."""
    ctx.belongings.keep(shell.id, shell, shell.close, IDLE)
    if name and name != shell.id:
        ctx.belongings.keep(build_shell_label(name), shell, _do_nothing, IDLE)


async def _do_nothing() -> None:
    """A shell with two names is closed under its first one."""


async def make_room(ctx: Context) -> None:
    """Refuse one shell too many, and forget the oldest that have ended."""
    shells = list_shells(ctx)
    running = [one for one in shells if one.code is None]
    if len(running) >= MAX_SHELLS:
        raise Refusal(
            Problem(
                Code.TOO_LARGE,
                f"This session already runs {MAX_SHELLS} shells.",
                "End one with `kill_shell`: " + ", ".join(f"`{one.id}`" for one in running[:5]) + " ...",
            )
        )
    await forget_oldest(ctx)


async def forget_oldest(ctx: Context) -> None:
    ended = [one for one in list_shells(ctx) if one.code is not None]
    for one in ended[: max(len(ended) - MAX_SHELLS, 0)]:
        await forget_shell(ctx, one)


def list_shells(ctx: Context) -> list[ShellSession]:
    found = (ctx.belongings.get(name) for name in ctx.belongings.names() if name.startswith(PREFIX))
    return [one for one in found if isinstance(one, ShellSession)]


def find_shell(ctx: Context, name: str) -> ShellSession | None:
    shell = ctx.belongings.get(name) if name.startswith(PREFIX) else None
    shell = shell or ctx.belongings.get(build_shell_label(name))
    return shell if isinstance(shell, ShellSession) else None


def get_named_shell(ctx: Context, args: Mapping[str, Any]) -> ShellSession:
    """Find the shell by id or name. An unknown id, a forgotten one and that of another session give the same answer."""
    name = args.get("bash_id") or args.get("shell_id") or ""
    if not name:
        raise Refusal(Problem(Code.INVALID_ARGUMENTS, "`bash_id` is missing.", "Pass the id that `bash` returned."))
    if shell := find_shell(ctx, name):
        return shell
    running = ", ".join(f"`{one.id}` ({one.command[:40]})" for one in list_shells(ctx)) or "none"
    raise Refusal(
        Problem(
            Code.NOT_FOUND,
            f"This session has no shell `{name}`.",
            f"Its shells: {running}. Start one with `bash` and `run_in_background`.",
        )
    )


def raise_if_profile_lower(ctx: Context, shell: ShellSession) -> None:
    """A shell keeps its sandbox, which allows more than a profile that was lowered since."""
    if not ctx.processes.profile.covers(shell.profile):
        raise Refusal(
            Problem(
                Code.PROFILE_TOO_LOW,
                f"Shell `{shell.id}` was started when the profile was `{shell.profile}`; now it is lower.",
                "End it with `kill_shell` and start a new one.",
            )
        )


async def forget_shell(ctx: Context, shell: ShellSession) -> None:
    for name in ctx.belongings.names():
        if ctx.belongings.get(name) is shell:
            await ctx.belongings.drop(name)


async def find_matching(expression: str, texts: Sequence[str]) -> list[str]:
    """Return the texts that contain a match. In a thread with a time limit, because an expression can take forever."""
    return await to_thread.run_sync(_find_matching, expression, texts)


def _find_matching(expression: str, texts: Sequence[str]) -> list[str]:
    import regex

    if why := describe_pattern_danger(expression):
        raise build_pattern_refusal(expression, f"is not searched for: {why}")
    try:
        pattern = regex.compile(expression)
    except (regex.error, RecursionError, OverflowError, MemoryError) as fault:
        raise build_pattern_refusal(expression, f"is not a regular expression: {fault}") from None
    until = time.monotonic() + PATIENCE
    try:
        # `concurrent` lets other threads run, so that the server keeps answering.
        return [
            one for one in texts if pattern.search(one, timeout=max(until - time.monotonic(), 0.001), concurrent=True)
        ]
    except (TimeoutError, MemoryError):  # backtracking takes memory as well as time
        raise build_slow_refusal(expression) from None


def build_pattern_refusal(text: str, why: str) -> Refusal:
    named = text if len(text) <= MAX_NAMED else f"{text[:MAX_NAMED]}…"
    return Refusal(Problem(Code.INVALID_ARGUMENTS, f"`{named}` {why}.", "Correct it, or leave it out."))


def build_slow_refusal(text: str) -> Refusal:
    return Refusal(
        Problem(
            Code.TIMEOUT,
            f"The search for `{text}` took more than {PATIENCE:g} s and was stopped.",
            "Use a simpler expression, without a repetition inside a repetition.",
        )
    )
