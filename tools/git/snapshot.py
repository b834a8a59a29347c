"""Is what gets committed what the user approved? We commit from a copy of the index, which nobody else can change."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256

from anyio import to_thread
from msgspec.structs import replace

from mcp_server.model.results import Code, Refusal
from mcp_server.model.text import to_one_line
from mcp_server.model.tools import Arguments
from tools.git import porcelain
from tools.git.patch import format_change, format_summary, read_change_details
from tools.git.program import GitProgram
from tools.git.repository import find_unfinished_operation
from tools.git.revisions import read_head

MAX_SHOWN_FILES = 2_000
NO_PARENT = "nothing: the first commit"
WITH_SUBMODULES = "--ignore-submodules=dirty"
"""A repository's configuration can hide a submodule from comparisons, although a commit includes it."""
STAGED = ("diff", "--cached", "--no-ext-diff", "--no-textconv", "--find-renames", "--raw", "--numstat", "-z")
WHOLE = ("diff", "--cached", "--raw", "--no-ext-diff", "--no-renames", "-z", "--no-abbrev")


async def build_commit_facts(git: GitProgram, signer_and_hooks: Mapping[str, str]) -> Mapping[str, str]:
    """Build what an approval says about a commit from this index: its content, where it goes, and who makes it."""
    staged = await git.read_result(*STAGED, "--no-abbrev", WITH_SUBMODULES)
    changes = porcelain.parse_changes(staged.out)
    if staged.cut or len(changes) > MAX_SHOWN_FILES:
        message = f"More than {MAX_SHOWN_FILES:,} files are staged, too many for the user to review. Nothing ran."
        raise Refusal.because(Code.TOO_LARGE, message, "Stage fewer, or ask the user to commit them.")
    # A comparison with the empty tree lists the whole index, without files that `add --intent-to-add` only announced.
    empty_tree = (await git.read("hash-object", "-t", "tree", "/dev/null")).decode().strip()
    index = await git.read_result(*WHOLE, WITH_SUBMODULES, empty_tree)
    lines = ["nothing"]
    if changes:
        details = await read_change_details(git, changes)
        lines = [format_summary(changes), *(format_change(change, details.get(change.path, "")) for change in changes)]
    # The raw lines name every blob, so together with the parent commit the digest covers the whole tree.
    digest = sha256(staged.out + b"\0" + index.out).hexdigest()
    return {
        **await read_branch_facts(git),
        **_describe_people(signer_and_hooks),
        "staged": "\n".join(lines),
        "SHA-256 of what is staged": digest,
    }


def _describe_people(facts: Mapping[str, str]) -> Mapping[str, str]:
    hooks = {name: value for name, value in facts.items() if not name.startswith("GIT_")}
    author, committer = (
        to_one_line(f"{facts[f'GIT_{role}_NAME']} <{facts[f'GIT_{role}_EMAIL']}>") for role in ("AUTHOR", "COMMITTER")
    )
    return {"as": author} | ({"committed by": committer} if committer != author else {}) | hooks


async def read_branch_facts(git: GitProgram) -> Mapping[str, str]:
    ref = await git.test("symbolic-ref", "--quiet", "--short", "HEAD")
    branch = to_one_line(ref.out.rstrip(b"\n")) if ref.code == 0 else "none (detached HEAD)"
    operation = await to_thread.run_sync(find_unfinished_operation, git.ctx.files, git.repository)
    merged = await git.test("rev-parse", "--verify", "--quiet", "MERGE_HEAD") if operation == "merge" else None
    unfinished = {f"unfinished {operation}": merged.out.decode().strip() if merged else "yes"} if operation else {}
    return {"branch": branch, "on top of": await read_head(git) or NO_PARENT, **unfinished}


@asynccontextmanager
async def open_index_copy(
    git: GitProgram, approved: Arguments, signer_and_hooks: Mapping[str, str]
) -> AsyncGenerator[GitProgram, None]:
    """Yield a git with a copy of the index, to make one commit with.

    Raises a `Refusal` if the copy is not what the user approved, or if the commit landed on another branch.
    """
    with git.ctx.files.make_scratch_folder(git.repository.folder) as folder:
        git_on_copy = replace(git, index_path=f"{folder}/index")
        tree = (await git.change("write-tree")).out.decode().strip()
        # Merged with the present index (`-m`), so that the copy keeps what git knows of the files on disk.
        path = f"{git.ctx.files.root.rstrip('/')}/{git_on_copy.index_path}"
        await git.change("read-tree", "-m", "-i", f"--index-output={path}", tree)
        ref, parent = await read_head_ref(git), await read_head(git)
        facts = await build_commit_facts(git_on_copy, signer_and_hooks)
        if dict(facts) != dict(approved) or (parent or NO_PARENT) != approved["on top of"]:
            raise _build_changed_refusal()
        yield git_on_copy
        await _undo_misplaced_commit(git, ref, parent, tree)
        if git.run_hooks:
            await _take_over_hook_changes(git, tree)


async def read_head_ref(git: GitProgram) -> str:
    ref = await git.test("symbolic-ref", "--quiet", "HEAD")
    return ref.out.decode("utf-8", "surrogateescape").rstrip("\n") if ref.code == 0 else "HEAD"


async def _undo_misplaced_commit(git: GitProgram, ref: str, parent: str | None, tree: str) -> None:
    """If another branch was checked out after our last look and got the commit, undo it there."""
    if await _find_commit_parent(git, ref, tree) == (parent or ""):
        return
    head = await read_head(git)
    old_head = await _find_commit_parent(git, "HEAD", tree)
    if head and old_head is not None:
        command = ("update-ref", "-m", "menugate: commit undone")
        await git.change(*command, *(("HEAD", old_head, head) if old_head else ("-d", "HEAD", head)))
    raise _build_changed_refusal()


async def _find_commit_parent(git: GitProgram, ref: str, tree: str) -> str | None:
    """Return the parent of the commit at `ref`, empty if it has none; None if that commit is not ours.

    With hooks on, any tree may be ours: the user allowed the hooks to add to it.
    """
    result = await git.test("log", "-1", "--format=%T %P", ref, "--", no_code=128)
    committed_tree, _, parents = result.out.decode().strip().partition(" ")
    return parents.split(" ")[0] if committed_tree == tree or (committed_tree and git.run_hooks) else None


async def _take_over_hook_changes(git: GitProgram, tree: str) -> None:
    """Reset the files that a hook added to the commit in the repository's index, which still has them as before.

    Files that were staged since keep what was staged.
    """
    names = ("--no-renames", "--name-only", "-z")
    changed_by_hooks = (await git.read("diff", "--no-ext-diff", *names, tree, "HEAD")).split(b"\0")[:-1]
    staged_since = (await git.read("diff", "--cached", "--no-ext-diff", *names, tree)).split(b"\0")
    paths = [path.decode("utf-8", "surrogateescape") for path in changed_by_hooks if path not in staged_since]
    if paths:
        await git.change("reset", "--quiet", "--", *paths)


def _build_changed_refusal() -> Refusal:
    message = "What would be committed changed after the user was asked; nothing was committed."
    return Refusal.because(Code.STALE, message, "Check git_status, then call again; the user will be asked again.")
