"""Which shells does this session have? Running commands, kept by a name nobody can guess, and found by it again."""

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
from tools.shell.output import WINDOW, Screen, make_readable

PREFIX = "bash_"
MOST = 32
"""Shells one session may have at a time."""
GRACE = 2.0
IDLE = 7200.0
PATIENCE = 1.0
"""Seconds a pattern may take, on all that was printed."""
MOST_NAMED = 200
VARIABLES = {
    "TERM": "xterm-256color",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "PYTHONUNBUFFERED": "1",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""Nothing that would wait for a person who is not there."""


@dataclass(eq=False)
class ShellSession:
    """A command that runs, and what it has printed so far."""

    id: str
    command: str
    child: ChildProcess
    aside: OutputOverflow
    """What it printed between its beginning and its end, as far as there is room for that."""
    profile: Profile
    """The person's, when it was started: its sandbox is that one's."""
    seconds: float
    screen: Screen = field(default_factory=Screen)
    begun: float = field(default_factory=time.monotonic)
    over_time: bool = False
    planted: tuple[str, ...] = ()
    """What other programs obey and was made since it began, as far as that was looked for."""
    _news: anyio.Event = field(default_factory=anyio.Event)
    _done: anyio.Event = field(default_factory=anyio.Event)
    _writing: anyio.Lock = field(default_factory=anyio.Lock)
    _task: "asyncio.Task[None] | None" = None

    @property
    def code(self) -> int | None:
        """None while it runs, and as long as not all it printed is here."""
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
        self.screen.add(piece, last)
        news, self._news = self._news, anyio.Event()
        news.set()

    async def _put_aside(self) -> None:
        async with self._writing:
            await to_thread.run_sync(self.aside.add, self.screen.take_overflow())

    async def read_window(self, start: int) -> str:
        """So much of what is not at hand, from this character on; nothing where that is not kept."""
        await self._put_aside()
        first, end = self.screen.get_missing_range()
        async with self._writing:
            most = min(WINDOW, end - start)
            return await to_thread.run_sync(self.aside.read, start - first, most) if first <= start < end else ""

    def describe_hidden(self) -> str:
        """Where the rest is, in words for whoever made the call."""
        first, end = self.screen.get_missing_range()
        if first == end:
            return ""
        lost = end - first - self.aside.size - self.screen.overflow_size
        gone = f"; of the last {lost:,} of them there was too much to keep" if lost else ""
        return (
            f"[{end - first:,} characters in the middle are not among this: "
            f'bash_output {{"bash_id": "{self.id}", "offset": {first}}} shows them, a part at a time{gone}]'
        )

    async def find_newly_planted(self) -> tuple[str, ...]:
        """What it has planted since somebody looked last."""
        before, self.planted = self.planted, tuple(await self.child.find_planted_places())
        return tuple(one for one in self.planted if one not in before)

    async def wait_for_end(self, seconds: float) -> bool:
        """Wait so long for it to end; whether it has."""
        with anyio.move_on_after(seconds):
            await self._done.wait()
        return self._done.is_set()

    async def wait_for_more(self) -> None:
        """Wait until it prints something, or ends."""
        if not self._done.is_set():
            await self._news.wait()

    async def wait_for_quiet(self, most: float, pause: float = 0.15) -> None:
        """Wait until it has printed something, and then nothing for a moment; no longer than so many seconds."""
        waiting = most
        with anyio.move_on_after(most):
            while not self._done.is_set():
                news = self._news
                with anyio.move_on_after(waiting) as waited:
                    await news.wait()
                if waited.cancelled_caught:
                    return
                waiting = pause

    def describe_folder(self) -> str:
        """Where it is now. Where that cannot be told, it is another place whenever something was printed."""
        return (
            self.child.find_current_folder() or f"a folder that cannot be told ({self.screen.total} characters printed)"
        )

    async def close(self, grace: float = 0.0) -> None:
        with anyio.CancelScope(shield=True):
            await self.child.kill(grace)
            await self._done.wait()
            async with self._writing:
                if self.aside.size:
                    await to_thread.run_sync(self.aside.close)


async def start_shell(ctx: Context, line: str, folder: str, seconds: float, terminal: bool) -> ShellSession:
    """Start a line of shell. It goes on after the call only once it is kept."""
    argv = (
        ("bash", "--noprofile", "--norc", "-c", line)
        if line
        # Without `+H`, `!x` in a line would become an earlier line, so that not what is shown would run.
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
    """A command that could not start, or was cut off, has no exit code: it failed, and its shell is gone."""
    if shell.code is not None and shell.child.cut_off is not None:
        failure = shell.child.describe_failure(make_readable(shell.screen.get_text_since(0)))
        await forget_shell(ctx, shell)
        raise Refusal(make_command_problem(failure))


def keep_shell(ctx: Context, shell: ShellSession, name: str = "") -> None:
    """`name` is one the caller gave it, by which this session finds it as well."""
    ctx.belongings.keep(shell.id, shell, shell.close, IDLE)
    if name and name != shell.id:
        ctx.belongings.keep(build_shell_label(name), shell, _do_nothing, IDLE)


async def _do_nothing() -> None:
    """What has two names is closed by the first."""


async def make_room(ctx: Context) -> None:
    """Refuses one shell too many, and forgets the oldest of those that have ended."""
    shells = list_shells(ctx)
    running = [one for one in shells if one.code is None]
    if len(running) >= MOST:
        raise Refusal(
            Problem(
                Code.TOO_LARGE,
                f"This session has {MOST} shells running already.",
                "End one with `kill_shell`: " + ", ".join(f"`{one.id}`" for one in running[:5]) + " ...",
            )
        )
    await forget_oldest(ctx)


async def forget_oldest(ctx: Context) -> None:
    ended = [one for one in list_shells(ctx) if one.code is not None]
    for one in ended[: max(len(ended) - MOST, 0)]:
        await forget_shell(ctx, one)


def list_shells(ctx: Context) -> list[ShellSession]:
    found = (ctx.belongings.get(name) for name in ctx.belongings.names() if name.startswith(PREFIX))
    return [one for one in found if isinstance(one, ShellSession)]


def find_shell(ctx: Context, name: str) -> ShellSession | None:
    shell = ctx.belongings.get(name) if name.startswith(PREFIX) else None
    shell = shell or ctx.belongings.get(build_shell_label(name))
    return shell if isinstance(shell, ShellSession) else None


def get_named_shell(ctx: Context, args: Mapping[str, Any]) -> ShellSession:
    """The shell meant by either of the names it goes by. Made up, ended long ago and somebody else's look the same."""
    name = args.get("bash_id") or args.get("shell_id") or ""
    if not name:
        raise Refusal(
            Problem(
                Code.INVALID_ARGUMENTS, "Which shell is meant is missing.", "Give `bash_id`, as `bash` answered it."
            )
        )
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
    """A shell keeps the sandbox it was started in; a person who lowered the profile since did not mean that."""
    if not ctx.processes.profile.covers(shell.profile):
        raise Refusal(
            Problem(
                Code.PROFILE_TOO_LOW,
                f"Shell `{shell.id}` was started when the profile was `{shell.profile}`; now it is lower.",
                "End it with `kill_shell`, and start another one.",
            )
        )


async def forget_shell(ctx: Context, shell: ShellSession) -> None:
    for name in ctx.belongings.names():
        if ctx.belongings.get(name) is shell:
            await ctx.belongings.drop(name)


async def find_matching(expression: str, texts: Sequence[str]) -> list[str]:
    """Which of these texts it is found in. In a thread, and with a limit: an expression can take for ever."""
    return await to_thread.run_sync(_find_matching, expression, texts)


def _find_matching(expression: str, texts: Sequence[str]) -> list[str]:
    import regex

    if why := describe_pattern_danger(expression):
        raise build_pattern_refusal(expression, f"is not looked for: {why}")
    try:
        pattern = regex.compile(expression)
    except (regex.error, RecursionError, OverflowError, MemoryError) as fault:
        raise build_pattern_refusal(expression, f"is no regular expression: {fault}") from None
    until = time.monotonic() + PATIENCE
    try:
        # Letting others run meanwhile is what keeps the server answering.
        return [
            one for one in texts if pattern.search(one, timeout=max(until - time.monotonic(), 0.001), concurrent=True)
        ]
    except (TimeoutError, MemoryError):  # what goes back and forth takes room as well as time
        raise build_slow_refusal(expression) from None


def build_pattern_refusal(text: str, why: str) -> Refusal:
    named = text if len(text) <= MOST_NAMED else f"{text[:MOST_NAMED]}…"
    return Refusal(Problem(Code.INVALID_ARGUMENTS, f"`{named}` {why}.", "Mend it, or leave it out."))


def build_slow_refusal(text: str) -> Refusal:
    return Refusal(
        Problem(
            Code.TIMEOUT,
            f"Looking for `{text}` took more than {PATIENCE:g} s and was stopped.",
            "Use a simpler expression, without a repetition inside a repetition.",
        )
    )
