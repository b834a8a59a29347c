"""How is git run, so that a repository's configuration can neither run a program nor redirect git elsewhere?

The rule for editing: git is started here and nowhere else. An argument comes from a caller only as a resolved commit, a
checked branch name, a checked path behind `--`, or a value glued to its own option.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.context import Context
from mcp_server.model.files import Files
from mcp_server.model.processes import Command, CommandResult, Processes
from mcp_server.model.results import Code, Refusal
from mcp_server.model.text import escape_for_model, to_one_line
from tools.git.permissions import CONFIG_FILES, MAX_CONFIG_BYTES, may_be_shared, to_umask
from tools.git.repository import Repository, find_repository

# No option of git turns off a filter, so without a sandbox we look for sections that define or include one. This is a
# plain text search: what only looks like a section counts, too.
FILTER_SECTION = re.compile(rb"\[\s*(filter|include|includeif)\b", re.IGNORECASE)
MAX_SUBMODULE_DEPTH = 8


def _raise_if_filtered(files: Files, repository: Repository) -> None:
    """Raise a `Refusal` if the repository could make git run a program on the content of files."""
    for path in _list_configuration_paths(files, repository):
        if section := FILTER_SECTION.search(_read_configuration(files, path)):
            raise Refusal.because(
                Code.UNSAFE_REPOSITORY,
                f"`{to_one_line(path)}` has a section `{to_one_line(section[1])}`, which lets the repository make "
                "git run programs, and this machine has no sandbox to contain them.",
                "Ask the user to install bubblewrap, or to remove that section from the file.",
            )


def _list_configuration_paths(files: Files, repository: Repository) -> Iterator[str]:
    for folder in dict.fromkeys((repository.folder, repository.common)):
        yield from (f"{folder}/{name}" for name in CONFIG_FILES)
    yield from _list_submodule_configurations(files, f"{repository.common}/modules", MAX_SUBMODULE_DEPTH)


def _list_submodule_configurations(files: Files, folder: str, depth: int) -> Iterator[str]:
    with suppress(Refusal):
        for entry in files.list_folder(folder) if depth else ():
            if entry.kind == "directory":
                yield from (f"{entry.path}/{name}" for name in CONFIG_FILES)
                # A submodule named `a/b` is a folder in a folder; only the inner one has a HEAD.
                is_git_folder = _exists(files, f"{entry.path}/HEAD")
                yield from _list_submodule_configurations(
                    files, f"{entry.path}/modules" if is_git_folder else entry.path, depth - 1
                )


def _exists(files: Files, path: str) -> bool:
    with suppress(Refusal):
        return bool(files.get_info(path))
    return False


def _read_configuration(files: Files, path: str) -> bytes:
    try:
        return files.read(path, MAX_CONFIG_BYTES).data
    except Refusal as refusal:
        if refusal.problem.code is Code.NOT_FOUND:
            return b""
        raise


MAX_OUTPUT_BYTES = 8 << 20
TIMEOUT_SECONDS = 50.0
MAX_COMPLAINT_BYTES = 1200
SETGID_REFUSED = b"Operation not permitted"
WRITE_REFUSED = (b"Read-only file system", b"Permission denied", b"Device or resource busy")

CONTAINING_SANDBOXES = ("bubblewrap", "seatbelt")
"""A program that git runs cannot write in these, even where git itself may."""
SANDBOX_OFF = "none"
"""The sandbox's name if the user chose to have none."""
CHECKOUT = ("read-tree", "-m", "-u")
"""Writes the files in which two commits differ. They are the next two arguments."""
HOOKS_OFF = "core.hooksPath=/dev/null"
PINNED = (
    # Settings that start a program.
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
    # Settings that reach further: other machines, other repositories, more than the call is about.
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "diff.submodule=short",
    "status.submoduleSummary=false",
    "core.protectNTFS=true",
    "core.protectHFS=true",
    # Settings that change the format of the output.
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
    # Sandboxes hide the user's home, and some refuse even to look there, so git gets none anywhere.
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
    # A partial clone would fetch missing objects with a program that the repository chooses.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}


class GitProgram(Struct, frozen=True):
    """Runs git for one call, on one repository."""

    ctx: Context
    repository: Repository
    binary: str
    run_hooks: bool = False
    writable_files: tuple[str, ...] = ()
    """Protected files of the worktree that this call may change; the user approved them."""
    index_path: str = ""
    """Used instead of the repository's index; relative to the workspace."""
    ignore_file: str = ""
    """The user's own `core.excludesFile`."""

    @property
    def git_folder(self) -> str:
        """The full path of the folder where git keeps the head and index of this worktree."""
        return f"{self.ctx.files.root.rstrip('/')}/{self.repository.folder}"

    @property
    def source(self) -> str:
        """Name where the text comes from, since anyone may have written these files and commits."""
        return f"the git repository in {self.repository.name}"

    async def read(self, *arguments: str, magic: bool = False, stdin: bytes | None = None) -> bytes:
        """Run git so that it cannot write anywhere, and return its output."""
        return (await self.read_result(*arguments, magic=magic, stdin=stdin)).out

    async def read_result(self, *arguments: str, magic: bool = False, stdin: bytes | None = None) -> CommandResult:
        """Like `read`, but say also whether the output was cut."""
        return _require_success(
            await self._run_read_only(replace(self._build_command(arguments, magic), stdin=stdin)), arguments[0]
        )

    async def test(self, *arguments: str, no_code: int = 1) -> CommandResult:
        """Ask git a yes-or-no question. Exit code `no_code` means no; any other failure raises a `Refusal`."""
        result = await self._run_read_only(self._build_command(arguments))
        return result if result.code == no_code and not result.timed_out else _require_success(result, arguments[0])

    async def _run_read_only(self, command: Command) -> CommandResult:
        try:
            return await self.ctx.processes.run(replace(command, read_only=True, no_more=True))
        except Refusal as refusal:
            if refusal.problem.code is not Code.NOT_GRANTED:
                raise
        # There is no sandbox. If nothing but git itself would run, it is a program like any other, and `run` decides
        # whether this profile may start one.
        await self._raise_if_unsafe()
        return await self.ctx.processes.run(replace(command, no_more=True, argv=_skip_submodule_contents(command.argv)))

    async def change(
        self, *arguments: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        """Run a git that may write in its own folder, and in the worktree as far as the grant goes."""
        if self.ctx.processes.sandbox not in (*CONTAINING_SANDBOXES, SANDBOX_OFF):
            await self._raise_if_unsafe()
        git_folders = tuple(dict.fromkeys((self.repository.common, self.repository.folder)))
        command = replace(
            self._build_command(arguments),
            writable=git_folders + self.writable_files,
            stdin=stdin,
            env=self._build_environment() | dict(env or {}),
        )
        # A checkout writes the user's files, which get the user's own permissions.
        if arguments[: len(CHECKOUT)] != CHECKOUT and (umask := await self._read_umask()):
            command = replace(command, argv=("/bin/sh", "-c", f'umask {umask} && exec "$@"', "sh", *command.argv))
        return _require_success(await self.ctx.processes.run(command), arguments[0], self.ctx.processes)

    async def _read_umask(self) -> str:
        if not await to_thread.run_sync(may_be_shared, self.ctx.files, self.repository):
            return ""
        setting = await self.test("config", "--get", "core.sharedRepository")
        return "" if setting.code else to_umask(setting.out.decode("utf-8", "replace").strip().lower())

    async def _raise_if_unsafe(self) -> None:
        await to_thread.run_sync(_raise_if_filtered, self.ctx.files, self.repository)

    def _build_environment(self) -> dict[str, str]:
        index = {"GIT_INDEX_FILE": f"{self.ctx.files.root.rstrip('/')}/{self.index_path}"} if self.index_path else {}
        # Hooks expect a home to keep their own files in.
        return {name: value for name, value in ENVIRONMENT.items() if not (self.run_hooks and name == "HOME")} | index

    def _build_command(self, arguments: Sequence[str], magic: bool = False) -> Command:
        root, top = self.ctx.files.root.rstrip("/"), self.repository.top
        pinned = PINNED if self.run_hooks else (*PINNED, HOOKS_OFF)
        pinned = (*pinned, f"core.excludesFile={self.ignore_file}") if self.ignore_file else pinned
        return Command(
            argv=(
                self.binary,
                "--no-pager",
                *(() if magic else ("--literal-pathspecs",)),
                f"--git-dir={self.git_folder}",
                f"--work-tree={root if top == '.' else f'{root}/{top}'}",
                *(word for setting in pinned for word in ("-c", setting)),
                *arguments,
            ),
            folder=top,
            env=self._build_environment(),
            lent=(self.ignore_file,) if self.ignore_file else (),
            seconds=TIMEOUT_SECONDS,
            sees_secrets=True,
            most_output=MAX_OUTPUT_BYTES,
        )


async def open_repository(ctx: Context, repo_path: str, run_hooks: bool = False) -> GitProgram:
    """Find the repository of this folder and the git to run on it."""
    repository = await to_thread.run_sync(find_repository, ctx.files, repo_path)
    binary = ctx.processes.find_program("git")
    if binary is None:
        raise Refusal.because(Code.NOT_FOUND, "`git` is not on this machine's PATH.", "Ask the user to install git.")
    return GitProgram(ctx, repository, binary, run_hooks)


async def add_person_ignores(git: GitProgram) -> GitProgram:
    """Ignore what the user's own git ignores, unless the repository names another file for that."""
    path = await git.ctx.person.find_ignore_file(git.git_folder)
    if not path or (await git.test("config", "--get", "core.excludesFile")).code == 0:
        return git
    return replace(git, ignore_file=path)


def _skip_submodule_contents(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Keep git out of submodules: each is a repository with its own configuration."""
    for verb in ("status", "diff"):
        if verb in argv:
            position = argv.index(verb) + 1
            return (*argv[:position], "--ignore-submodules=dirty", *argv[position:])
    return argv


def _require_success(result: CommandResult, verb: str, processes: Processes | None = None) -> CommandResult:
    """Return the result, or raise a `Refusal` with what git complained about. `processes` is for a git that writes."""
    if result.timed_out:
        message = f"git {verb} did not finish within {TIMEOUT_SECONDS:g} s and was stopped."
        raise Refusal.because(Code.TIMEOUT, message, "Try a smaller request.")
    way_out = _describe_unwritable_folder(result, processes) if processes else ""
    if way_out and result.code == 0:
        # Git skips a file that it cannot write, and still exits with 0.
        message = f"git {verb} could not write every file{_format_complaint(result)}"
        raise Refusal.because(Code.TOOL_FAILED, message, way_out)
    # Killed because its output reached the limit; what came before is good.
    if result.code == 0 or (result.cut and result.code >= 128):
        return result
    way_out = way_out or _describe_sharing_failure(result, processes)
    raise Refusal.because(Code.TOOL_FAILED, f"git {verb} failed{_format_complaint(result)}", way_out)


def _describe_sharing_failure(result: CommandResult, processes: Processes | None) -> str:
    if processes is None or SETGID_REFUSED not in result.err or os.geteuid() != 0:
        return ""
    return (
        "In a shared repository (`core.sharedRepository`), git sets the setgid bit on folders, which the sandbox does "
        "not allow root. Ask the user to run menugate as themselves and not as root, to set the bit beforehand (`find "
        ".git -type d -exec chmod g+s {} +`), or to stop sharing (`git config core.sharedRepository false`)."
    )


def _describe_unwritable_folder(result: CommandResult, processes: Processes) -> str:
    """Explain a write that the sandbox refused, because menugate itself lies there."""
    if not any(complaint in result.err for complaint in WRITE_REFUSED) or not processes.fixed:
        return ""
    names = ", ".join(f"`{path}`" for path in processes.fixed)
    return (
        f"menugate itself runs from {names}, which git may change only with the profile `unrestricted`. Tell the user "
        "that this does not apply if menugate is installed outside the workspace."
    )


def _format_complaint(result: CommandResult) -> str:
    """Format what git complained about as the end of a sentence."""
    complaint = escape_for_model(result.err[-MAX_COMPLAINT_BYTES:]).strip()
    lines = [line for line in complaint.split("\n") if line.strip() and not line.startswith("hint:")]
    return f":\n{chr(10).join(lines)}" if lines else f" (exit code {result.code})."
