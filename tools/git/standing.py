"""What would be committed, or come with a branch, just now? Asked by the same shut-in git as everything else."""

from collections.abc import Mapping
from hashlib import sha256

from anyio import to_thread

from mcp_server.model.ending import Code, Problem, Refusal
from mcp_server.model.ports.context import Context
from mcp_server.model.tool import Arguments
from tools.git import plain, records
from tools.git.patches import summary, told
from tools.git.program import Git, opened
from tools.git.repository import operation
from tools.git.revisions import branch, head, tip
from tools.git.staging import STAGED

MOST_SHOWN = 2_000


async def of_commit(ctx: Context, args: Arguments) -> Mapping[str, str]:
    git = await opened(ctx, args.get("repo_path", ""))
    # A repository's configuration can leave a submodule out of a comparison, and it is committed all the same.
    listed = await git.asked(*STAGED, "--ignore-submodules=dirty")
    index = await git.asked("ls-files", "--stage", "-z")
    changes = records.changes(listed.out)
    if listed.cut or len(changes) > MOST_SHOWN:
        message = f"More than {MOST_SHOWN:,} files are staged, which nobody can look at at once. Nothing ran."
        raise Refusal(Problem(Code.TOO_LARGE, message, "Have the user commit them, or stage fewer."))
    said = [summary(changes), *map(told, changes)] if changes else ["nothing"]
    # The raw lines name every blob, and with the commit below them that is the whole tree.
    digest = sha256(listed.out + b"\0" + index.out).hexdigest()
    return {**await _place(git), "staged": "\n".join(said), "SHA-256 of what is staged": digest}


async def of_checkout(ctx: Context, args: Arguments) -> Mapping[str, str]:
    if not args.get("obeyed_files"):
        return {}
    git = await opened(ctx, args.get("repo_path", ""))
    there = await tip(git, await branch(git, args["branch_name"]))
    return {**await _place(git), "its commit": there or "there is none"}


async def _place(git: Git) -> Mapping[str, str]:
    named = await git.test("symbolic-ref", "--quiet", "--short", "HEAD")
    on = plain.inline(named.out.rstrip(b"\n")) if named.code == 0 else "none (detached HEAD)"
    begun = await to_thread.run_sync(operation, git.ctx.files, git.repository)
    merged = await git.test("rev-parse", "--verify", "--quiet", "MERGE_HEAD") if begun == "merge" else None
    unfinished = {f"unfinished {begun}": merged.out.decode().strip() if merged else "yes"} if begun else {}
    return {"branch": on, "on top of": await head(git) or "nothing: the first commit", **unfinished}
