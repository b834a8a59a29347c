"""What would a commit or a checkout do now? The facts that its approval shows."""

from collections.abc import Mapping

from mcp_server.model.context import Context
from mcp_server.model.results import Problem, Refusal
from mcp_server.model.tools import Arguments
from tools.git.hooks import describe_hooks, find_hooks
from tools.git.program import open_repository
from tools.git.requirements import NO_MESSAGE, find_commit_problem, read_signer
from tools.git.revisions import check_branch_name, find_branch_tip
from tools.git.snapshot import build_commit_facts, read_branch_facts


async def read_commit_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    git = await open_repository(ctx, args.get("repo_path", ""))
    # Don't ask about a commit that would fail.
    problem = await find_commit_problem(git) if args["message"].strip() else NO_MESSAGE
    signer = problem or await read_signer(git)
    if isinstance(signer, Problem):
        raise Refusal(signer)
    hooks = await describe_hooks(git, await find_hooks(git), bool(args.get("run_hooks")))
    return await build_commit_facts(git, {**signer, **hooks})


async def read_checkout_facts(ctx: Context, args: Arguments) -> Mapping[str, str]:
    if not args.get("obeyed_files"):
        return {}
    git = await open_repository(ctx, args.get("repo_path", ""))
    tip = await find_branch_tip(git, await check_branch_name(git, args["branch_name"]))
    return {**await read_branch_facts(git), "its commit": tip or "none"}
