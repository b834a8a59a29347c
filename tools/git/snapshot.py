"""Is what is committed what was shown? It comes from an index of the call's own, into which nobody else stages."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256

from anyio import to_thread

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_one_line
from mcp_server.model.tools import Arguments
from tools.git import porcelain
from tools.git.contents import read_change_details
from tools.git.patch import format_change, format_summary
from tools.git.program import GitProgram
from tools.git.repository import find_unfinished_operation
from tools.git.revisions import read_head

MOST_SHOWN = 2_000
FIRST = "nothing: the first commit"
ALL = "--ignore-submodules=dirty"
"""A repository's configuration can leave a submodule out of a comparison, and it is committed all the same."""
STAGED = ("diff", "--cached", "--no-ext-diff", "--no-textconv", "--find-renames", "--raw", "--numstat", "-z")
WHOLE = ("diff", "--cached", "--raw", "--no-ext-diff", "--no-renames", "-z", "--no-abbrev")


async def build_commit_facts(git: GitProgram, who: Mapping[str, str]) -> Mapping[str, str]:
    """What a commit from this index would be, where, and by whom; `who` also says which hooks have a part in it."""
    listed = await git.read_result(*STAGED, "--no-abbrev", ALL)
    changes = porcelain.parse_changes(listed.out)
    if listed.cut or len(changes) > MOST_SHOWN:
        message = f"More than {MOST_SHOWN:,} files are staged, which nobody can look at at once. Nothing ran."
        raise Refusal(Problem(Code.TOO_LARGE, message, "Have the user commit them, or stage fewer."))
    # Compared with nothing at all, the index is listed whole. What is only meant to be added later is not in it.
    nothing = (await git.read("hash-object", "-t", "tree", "/dev/null")).decode().strip()
    index = await git.read_result(*WHOLE, ALL, nothing)
    more_of = await read_change_details(git, changes)
    lines = [format_change(change, more_of.get(change.path, "")) for change in changes]
    said = [format_summary(changes), *lines] if changes else ["nothing"]
    # The raw lines name every blob, and with the commit below them that is the whole tree.
    digest = sha256(listed.out + b"\0" + index.out).hexdigest()
    return {
        **await read_branch_facts(git),
        **_describe_people(who),
        "staged": "\n".join(said),
        "SHA-256 of what is staged": digest,
    }


def _describe_people(who: Mapping[str, str]) -> Mapping[str, str]:
    hooks = {name: value for name, value in who.items() if not name.startswith("GIT_")}
    author, committer = (
        to_one_line(f"{who[f'GIT_{whose}_NAME']} <{who[f'GIT_{whose}_EMAIL']}>") for whose in ("AUTHOR", "COMMITTER")
    )
    return {"as": author} | ({"committed by": committer} if committer != author else {}) | hooks


async def read_branch_facts(git: GitProgram) -> Mapping[str, str]:
    named = await git.test("symbolic-ref", "--quiet", "--short", "HEAD")
    on = to_one_line(named.out.rstrip(b"\n")) if named.code == 0 else "none (detached HEAD)"
    begun = await to_thread.run_sync(find_unfinished_operation, git.ctx.files, git.repository)
    merged = await git.test("rev-parse", "--verify", "--quiet", "MERGE_HEAD") if begun == "merge" else None
    unfinished = {f"unfinished {begun}": merged.out.decode().strip() if merged else "yes"} if begun else {}
    return {"branch": on, "on top of": await read_head(git) or FIRST, **unfinished}


@asynccontextmanager
async def open_index_copy(
    git: GitProgram, shown: Arguments, who: Mapping[str, str]
) -> AsyncGenerator[GitProgram, None]:
    """The same git with a copy of the index that is as it was shown, for one commit; `Refusal` where it is not, or
    where the commit went elsewhere."""
    with git.ctx.files.make_scratch_folder(git.repository.folder) as folder:
        apart = replace(git, index=f"{folder}/index")
        tree = (await git.change("write-tree")).out.decode().strip()
        # Over the index there is, so that what git knows of the files on disk is not found out anew.
        place = f"{git.ctx.files.root.rstrip('/')}/{apart.index}"
        await git.change("read-tree", "-m", "-i", f"--index-output={place}", tree)
        ref, before = await _read_head_ref(git), await read_head(git)
        if dict(await build_commit_facts(apart, who)) != dict(shown) or (before or FIRST) != shown["on top of"]:
            raise _build_changed_refusal()
        yield apart
        await _undo_misplaced_commit(git, ref, before, tree)
        if git.run_hooks:
            await _take_over_hook_changes(git, tree)


async def _read_head_ref(git: GitProgram) -> str:
    named = await git.test("symbolic-ref", "--quiet", "HEAD")
    return named.out.decode("utf-8", "surrogateescape").rstrip("\n") if named.code == 0 else "HEAD"


async def _undo_misplaced_commit(git: GitProgram, ref: str, before: str | None, tree: str) -> None:
    """Another branch may have been checked out after the last look, and got the commit: there it is taken back."""
    if await _find_commit_parent(git, ref, tree) == (before or ""):
        return
    there = await read_head(git)
    onto = await _find_commit_parent(git, "HEAD", tree)
    if there and onto is not None:
        words = ("update-ref", "-m", "menugate: commit taken back")
        await git.change(*words, *(("HEAD", onto, there) if onto else ("-d", "HEAD", there)))
    raise _build_changed_refusal()


async def _find_commit_parent(git: GitProgram, ref: str, tree: str) -> str | None:
    """The commit below the newest one, where that one is what was to be committed. What a hook adds, the person let
    it add."""
    ran = await git.test("log", "-1", "--format=%T %P", ref, "--", no=128)
    held, _, below = ran.out.decode().strip().partition(" ")
    return below.split(" ")[0] if held == tree or (held and git.run_hooks) else None


async def _take_over_hook_changes(git: GitProgram, tree: str) -> None:
    """What a hook staged went into the commit, and is no more than that in the repository's own index either."""
    names = ("--no-renames", "--name-only", "-z")
    added = (await git.read("diff", "--no-ext-diff", *names, tree, "HEAD")).split(b"\0")[:-1]
    since = (await git.read("diff", "--cached", "--no-ext-diff", *names, tree)).split(b"\0")
    paths = [path.decode("utf-8", "surrogateescape") for path in added if path not in since]
    if paths:
        await git.change("reset", "--quiet", "--", *paths)


def _build_changed_refusal() -> Refusal:
    message = "What would be committed changed after the user was asked; nothing was committed."
    return Refusal(
        Problem(Code.STALE, message, "Look with git_status, then make the call again: the user is asked anew.")
    )
