"""Is it done? `TodoClaim` says so, `TodoVerify` looks. Whoever claims does not verify: criteria do, or the person."""

from collections.abc import Sequence
from functools import partial

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.todos import CriterionVerdict, Evidence, Result, Todo, TodoState, claim, judge
from tools.todos.criteria import check_criterion
from tools.todos.definitions import RUNS, TodoClaimArguments, TodoVerifyArguments
from tools.todos.todos import StoredTodo, build_todo_data, find_todo, format_line, take_step


async def claim_todo(ctx: Context, args: TodoClaimArguments) -> Ending:
    evidence = [Evidence(one["type"], one["data"]) for one in args.get("evidence", ())]
    kept = await find_todo(ctx, args["id"])
    if not isinstance(kept, Problem):
        change = partial(claim, explanation=args["explanation"], evidence=evidence)
        kept = await take_step(ctx, kept, change, "claimed", {"evidence": [one.type for one in evidence]})
    if isinstance(kept, Problem):
        return kept
    if args.get("auto_verify") and kept.todo.criteria:
        return await verify_claim(ctx, kept)
    return Done(f"{format_line(kept)}\n{_describe_waiting(kept)}", build_todo_data(kept))


def _describe_waiting(kept: StoredTodo) -> str:
    if kept.todo.criteria:
        return "Claimed is not done: `TodoVerify` checks its criteria."
    return f"Claimed is not done: it has no criteria, so it waits for the user (`menugate todos accept {kept.id}`)."


async def verify(ctx: Context, args: TodoVerifyArguments) -> Ending:
    kept = await find_todo(ctx, args["id"])
    return kept if isinstance(kept, Problem) else await verify_claim(ctx, kept)


async def verify_claim(ctx: Context, kept: StoredTodo) -> Ending:
    if isinstance(problem := judge(kept.todo, ()), Problem):
        return problem
    if not kept.todo.criteria:
        return Done(f"{format_line(kept)}\n{_describe_waiting(kept)}", build_todo_data(kept))
    results: list[Result] = []
    for number, criterion in enumerate(kept.todo.criteria):
        await ctx.progress(number, len(kept.todo.criteria), criterion.type)
        results.append(await check_criterion(ctx, criterion))
    settled = await _settle_claim(ctx, kept, results)
    if isinstance(settled, Problem):
        return settled
    lines = [format_line(settled), *(f"- {one.type} {one.verdict}: {one.said}" for one in results)]
    text = "\n".join([*lines, _describe_outcome(settled, results)])
    printed = any(one.type in RUNS and one.verdict is CriterionVerdict.FAILED for one in results)
    return Done(text, build_todo_data(settled), outside="what the criteria ran" if printed else None)


async def _settle_claim(ctx: Context, kept: StoredTodo, results: Sequence[Result]) -> StoredTodo | Problem:
    """What was checked is the claim that was there before the checks, and no later one."""
    looked_at = kept.todo

    def change(todo: Todo) -> Todo | Problem:
        return judge(todo, results) if todo.claims == looked_at.claims else OVERTAKEN

    passed = all(one.verdict is CriterionVerdict.PASSED for one in results)
    facts = {"criteria": [f"{one.type} {one.code or one.verdict}" for one in results]}
    return await take_step(ctx, kept, change, "verified" if passed else "not verified", facts)


OVERTAKEN = Problem(
    Code.BUSY, "this todo was claimed anew while its criteria were checked; nothing was kept.", "Verify it again."
)


def _describe_outcome(kept: StoredTodo, results: Sequence[Result]) -> str:
    if kept.todo.state is TodoState.VERIFIED:
        return "Verified."
    if any(one.verdict is CriterionVerdict.FAILED for one in results):
        return "Not verified; it stays claimed. Mend what failed, and claim it again with new evidence."
    return "Not verified; it stays claimed, because not all of it could be checked."
