"""How is git called?"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import Files
from mcp_server.model.processes import Command, CommandResult, Processes
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_one_line, to_plain_text
from tools.git.permissions import may_be_shared, to_umask
from tools.git.repository import Repository, find_repository

# Does the repository name programs that no option of git's keeps from running?
#
# Looked for in the words of its configuration files, wherever they stand: what merely looks like one counts as one.

PROGRAMS = re.compile(rb"\[\s*(filter|include|includeif)\b", re.IGNORECASE)
"""Filters, and what may hold some."""
MOST_CONFIG = 1 << 20
FILES = ("config", "config.worktree")
DEEPEST = 8


def raise_if_unsafe(files: Files, repository: Repository) -> None:
    """`Refusal` where git would run a program of the repository's on the content of files, and nothing holds it."""
    for path in _list_configuration_paths(files, repository):
        if found := PROGRAMS.search(_read_configuration(files, path)):
            raise Refusal(
                Problem(
                    Code.UNSAFE_REPOSITORY,
                    f"`{to_one_line(path)}` has a section `{to_one_line(found[1])}`, by which git may run programs of "
                    "the "
                    "repository's choosing, and no sandbox on this machine would hold them.",
                    "Have the person install bubblewrap, or take that section out of the file.",
                )
            )


def _list_configuration_paths(files: Files, repository: Repository) -> Iterator[str]:
    for folder in dict.fromkeys((repository.folder, repository.common)):
        yield from (f"{folder}/{name}" for name in FILES)
    yield from _list_submodule_configurations(files, f"{repository.common}/modules", DEEPEST)


def _list_submodule_configurations(files: Files, folder: str, depth: int) -> Iterator[str]:
    with suppress(Refusal):
        for entry in files.list_folder(folder) if depth else ():
            if entry.kind == "directory":
                yield from (f"{entry.path}/{name}" for name in FILES)
                inner = _is_there(files, f"{entry.path}/HEAD")
                yield from _list_submodule_configurations(
                    files, f"{entry.path}/modules" if inner else entry.path, depth - 1
                )


def _is_there(files: Files, path: str) -> bool:
    with suppress(Refusal):
        return bool(files.get_info(path))
    return False


def _read_configuration(files: Files, path: str) -> bytes:
    try:
        return files.read(path, MOST_CONFIG).data
    except Refusal as refusal:
        if refusal.problem.code is Code.NOT_FOUND:
            return b""
        raise


# How is git called? With every option pinned by which a repository could make it run something or read elsewhere.
#
# The rule for editing: git is started here and nowhere else, no argument comes from a caller but as a resolved
# commit, a checked branch name, a checked path behind `--`, or the value glued to its own option.

MOST_OUTPUT = 8 << 20
SECONDS = 50.0
MOST_SAID = 1200
UNSHARED = b"Operation not permitted"
HELD = (b"Read-only file system", b"Permission denied", b"Device or resource busy")

HOLDING = ("bubblewrap", "seatbelt")
"""Sandboxes in which a program that git runs cannot write where git itself may."""
WANTED_NONE = "none"
"""What the door says where the person wants no sandbox."""
HOOKS_OFF = "core.hooksPath=/dev/null"
PINNED = (
    # What would start a program.
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=false",
    "core.sshCommand=false",
    "core.gitProxy=false",
    "core.alternateRefsCommand=false",
    "sequence.editor=false",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "log.showSignature=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    # What would reach out: to other machines, to other repositories, to more than was asked for.
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "diff.submodule=short",
    "status.submoduleSummary=false",
    "core.protectNTFS=true",
    "core.protectHFS=true",
    # What would change how it speaks.
    "core.quotePath=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "log.showRoot=true",
    "log.diffMerges=separate",
    "color.ui=false",
    "column.ui=never",
    "advice.detachedHead=false",
)
ENVIRONMENT: dict[str, str] = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    # The same wherever it runs: of the person's home no sandbox shows anything, and some forbid even the question.
    "HOME": "/dev/null",
    "XDG_CONFIG_HOME": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_EDITOR": "false",
    "GIT_ALLOW_PROTOCOL": "none",
    # A partial clone would fetch what it lacks, with a program of the repository's choosing.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}


@dataclass(frozen=True, slots=True)
class GitProgram:
    """The program, for one call about one repository."""

    ctx: Context
    repository: Repository
    binary: str
    run_hooks: bool = False
    unlocked: tuple[str, ...] = ()
    """Protected files of the worktree that this call may change as well, as the person was told."""
    index: str = ""
    """Below the workspace: an index of this call's own, in the place of the repository's."""
    ignores: str = ""
    """A file of the person's, with patterns for what is no part of any repository."""

    @property
    def git_folder(self) -> str:
        """The whole path of the folder in which git keeps what belongs to this worktree."""
        return f"{self.ctx.files.root.rstrip('/')}/{self.repository.folder}"

    async def read(self, *arguments: str, magic: bool = False, stdin: bytes | None = None) -> bytes:
        """What it answers, from a git that can write nowhere."""
        return (await self.read_result(*arguments, magic=magic, stdin=stdin)).out

    async def read_result(self, *arguments: str, magic: bool = False, stdin: bytes | None = None) -> CommandResult:
        """The same, with whether there was more."""
        return _require_success(
            await self._run_read_only(replace(self._build_command(arguments, magic), stdin=stdin)), arguments[0]
        )

    async def test(self, *arguments: str, no: int = 1) -> CommandResult:
        """A question that is answered by how it ends; only what git cannot do at all is a problem."""
        ran = await self._run_read_only(self._build_command(arguments))
        return ran if ran.code == no and not ran.timed_out else _require_success(ran, arguments[0])

    async def _run_read_only(self, command: Command) -> CommandResult:
        try:
            return await self.ctx.processes.run(replace(command, read_only=True, no_more=True))
        except Refusal as refusal:
            if refusal.problem.code is not Code.NOT_GRANTED:
                raise
        # There is no sandbox. Where nothing but git itself would run, it is one program like any other, and the door
        # says whether this profile may start one.
        await self._raise_if_unsafe()
        return await self.ctx.processes.run(replace(command, no_more=True, argv=_skip_submodule_contents(command.argv)))

    async def change(
        self, *arguments: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        """From a git that may write in its own folder, and in the worktree as the grant says."""
        if self.ctx.processes.sandbox not in (*HOLDING, WANTED_NONE):
            await self._raise_if_unsafe()
        own = tuple(dict.fromkeys((self.repository.common, self.repository.folder)))
        command = replace(
            self._build_command(arguments),
            writable=own + self.unlocked,
            stdin=stdin,
            env=self._build_environment() | dict(env or {}),
        )
        # What a checkout makes is the worktree's, and its rights are the person's.
        if arguments[0] != "checkout" and (words := await self._read_umask()):
            command = replace(command, argv=("/bin/sh", "-c", f'umask {words} && exec "$@"', "sh", *command.argv))
        return _require_success(await self.ctx.processes.run(command), arguments[0], self.ctx.processes)

    async def _read_umask(self) -> str:
        if not await to_thread.run_sync(may_be_shared, self.ctx.files, self.repository):
            return ""
        told = await self.test("config", "--get", "core.sharedRepository")
        return "" if told.code else to_umask(told.out.decode("utf-8", "replace").strip().lower())

    async def _raise_if_unsafe(self) -> None:
        await to_thread.run_sync(raise_if_unsafe, self.ctx.files, self.repository)

    def _build_environment(self) -> dict[str, str]:
        # A hook is started as the person's git would start it, with a home to keep its own things in.
        own = {"GIT_INDEX_FILE": f"{self.ctx.files.root.rstrip('/')}/{self.index}"} if self.index else {}
        return {name: one for name, one in ENVIRONMENT.items() if not (self.run_hooks and name == "HOME")} | own

    def _build_command(self, arguments: Sequence[str], magic: bool = False) -> Command:
        root, here = self.ctx.files.root.rstrip("/"), self.repository
        pinned = PINNED if self.run_hooks else (*PINNED, HOOKS_OFF)
        pinned = (*pinned, f"core.excludesFile={self.ignores}") if self.ignores else pinned
        return Command(
            argv=(
                self.binary,
                "--no-pager",
                *(() if magic else ("--literal-pathspecs",)),
                f"--git-dir={root}/{here.folder}",
                f"--work-tree={root if here.top == '.' else f'{root}/{here.top}'}",
                *(word for setting in pinned for word in ("-c", setting)),
                *arguments,
            ),
            folder=here.top,
            env=self._build_environment(),
            lent=(self.ignores,) if self.ignores else (),
            seconds=SECONDS,
            sees_secrets=True,
            most_output=MOST_OUTPUT,
        )


async def open_repository(ctx: Context, repo_path: str, run_hooks: bool = False) -> GitProgram:
    """Git for the repository of this folder.

    What no option switches off are the filters that a repository's configuration names. They run shut in; and where
    there is nothing to shut them in, nothing runs.
    """
    repository = await to_thread.run_sync(find_repository, ctx.files, repo_path)
    binary = ctx.processes.find_program("git")
    if binary is None:
        raise Refusal(
            Problem(Code.NOT_FOUND, "There is no `git` on this machine's search path.", "Have the person install git.")
        )
    return GitProgram(ctx, repository, binary, run_hooks)


async def add_person_ignores(git: GitProgram) -> GitProgram:
    """It also passes over what the person's own git does, unless the repository names a file for that."""
    own = await git.ctx.person.find_ignore_file(git.git_folder)
    if not own or (await git.test("config", "--get", "core.excludesFile")).code == 0:
        return git
    return replace(git, ignores=own)


def _skip_submodule_contents(words: tuple[str, ...]) -> tuple[str, ...]:
    """Each is a repository with a configuration of its own."""
    for verb in ("status", "diff"):
        if verb in words:
            at = words.index(verb) + 1
            return (*words[:at], "--ignore-submodules=dirty", *words[at:])
    return words


def _require_success(ran: CommandResult, verb: str, door: Processes | None = None) -> CommandResult:
    """`door` is where a git that changes something was started."""
    if ran.timed_out:
        raise Refusal(
            Problem(Code.TIMEOUT, f"git {verb} did not finish within {SECONDS:g} s and was stopped.", "Ask for less.")
        )
    held = _describe_held_place(ran, door) if door else ""
    if held and ran.code == 0:
        # It goes on past a file that it cannot put in its place, and calls that well.
        raise Refusal(
            Problem(Code.TOOL_FAILED, f"git {verb} did not put every file in its place{format_complaint(ran)}", held)
        )
    # Stopped because it said more than is kept: what was kept is as good as it gets.
    if ran.code == 0 or (ran.cut and ran.code >= 128):
        return ran
    raise Refusal(
        Problem(
            Code.TOOL_FAILED, f"git {verb} failed{format_complaint(ran)}", held or _describe_sharing_failure(ran, door)
        )
    )


def _describe_sharing_failure(ran: CommandResult, door: Processes | None) -> str:
    if door is None or UNSHARED not in ran.err or os.geteuid() != 0:
        return ""
    return (
        "Where a repository is shared (`core.sharedRepository`), git gives a folder the bit that hands on its group, "
        "which the sandbox refuses to root. Tell the user: run menugate as yourself and not as root, or give the bit "
        "beforehand (`find .git -type d -exec chmod g+s {} +`), or share no more (`git config core.sharedRepository "
        "false`)."
    )


def _describe_held_place(ran: CommandResult, door: Processes) -> str:
    """What git could not know of a place that it was not let change."""
    if not any(words in ran.err for words in HELD) or not door.fixed:
        return ""
    names = ", ".join(f"`{one}`" for one in door.fixed)
    return (
        f"menugate itself runs from {names}, which git changes at the profile `unrestricted` only. Tell the user: a "
        "menugate installed outside the workspace does not hold it."
    )


def format_complaint(ran: CommandResult) -> str:
    """What git complained about, as the end of a sentence."""
    words = to_plain_text(ran.err[-MOST_SAID:]).strip()
    lines = [line for line in words.split("\n") if line.strip() and not line.startswith("hint:")]
    return f", and said:\n{chr(10).join(lines)}" if lines else f" (exit code {ran.code})."
