"""What would be committed, or come with a branch, just now? Asked by the same shut-in git as everything else."""

from collections.abc import Mapping

from mcp_server.model.context import Context
from mcp_server.model.results import Problem, Refusal
from mcp_server.model.tools import Arguments
from tools.git.hooks import describe_hooks, find_hooks
from tools.git.program import opened
from tools.git.requirements import NO_MESSAGE, signer, unready
from tools.git.revisions import branch, tip
from tools.git.snapshot import facts, place


async def of_commit(ctx: Context, args: Arguments) -> Mapping[str, str]:
    git = await opened(ctx, args.get("repo_path", ""))
    # Nobody is asked about a commit that could not be made.
    problem = await unready(git) if args["message"].strip() else NO_MESSAGE
    who = problem or await signer(git)
    if isinstance(who, Problem):
        raise Refusal(who)
    runs = await describe_hooks(git, await find_hooks(git), bool(args.get("run_hooks")))
    return await facts(git, {**who, **runs})


async def of_checkout(ctx: Context, args: Arguments) -> Mapping[str, str]:
    if not args.get("obeyed_files"):
        return {}
    git = await opened(ctx, args.get("repo_path", ""))
    there = await tip(git, await branch(git, args["branch_name"]))
    return {**await place(git), "its commit": there or "there is none"}
