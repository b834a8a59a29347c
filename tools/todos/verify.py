"""Is it done? `TodoClaim` says so; `TodoVerify` checks, by criteria. Without any, the user decides."""

from collections.abc import Sequence
from functools import partial

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.todos import CriterionVerdict, Evidence, Result, Todo, TodoState, claim, judge
from tools.todos.criteria import check_criterion
from tools.todos.definitions import RUNS, TodoClaimArguments, TodoVerifyArguments
from tools.todos.todos import StoredTodo, build_todo_data, find_todo, format_line, take_step


async def claim_todo(ctx: Context, args: TodoClaimArguments) -> Ending:
    evidence = [Evidence(piece["type"], piece["data"]) for piece in args.get("evidence", ())]
    stored = await find_todo(ctx, args["id"])
    if not isinstance(stored, Problem):
        change = partial(claim, explanation=args["explanation"], evidence=evidence)
        stored = await take_step(ctx, stored, change, "claimed", {"evidence": [piece.type for piece in evidence]})
    if isinstance(stored, Problem):
        return stored
    if args.get("auto_verify") and stored.todo.criteria:
        return await _verify_claim(ctx, stored)
    return Done(f"{format_line(stored)}\n{_describe_next_step(stored)}", build_todo_data(stored))


def _describe_next_step(stored: StoredTodo) -> str:
    if stored.todo.criteria:
        return "A claim is not enough: `TodoVerify` checks its criteria."
    return f"A claim is not enough: without criteria, the user must accept it (`menugate todos accept {stored.id}`)."


async def verify(ctx: Context, args: TodoVerifyArguments) -> Ending:
    stored = await find_todo(ctx, args["id"])
    return stored if isinstance(stored, Problem) else await _verify_claim(ctx, stored)


async def _verify_claim(ctx: Context, stored: StoredTodo) -> Ending:
    if isinstance(problem := judge(stored.todo, ()), Problem):
        return problem
    if not stored.todo.criteria:
        return Done(f"{format_line(stored)}\n{_describe_next_step(stored)}", build_todo_data(stored))
    results: list[Result] = []
    for number, criterion in enumerate(stored.todo.criteria):
        await ctx.progress(number, len(stored.todo.criteria), criterion.type)
        results.append(await check_criterion(ctx, criterion))
    updated = await _store_results(ctx, stored, results)
    if isinstance(updated, Problem):
        return updated
    lines = [format_line(updated), *(f"- {result.type} {result.verdict}: {result.said}" for result in results)]
    text = "\n".join([*lines, _describe_outcome(updated, results)])
    shows_output = any(result.type in RUNS and result.verdict is CriterionVerdict.FAILED for result in results)
    return Done(text, build_todo_data(updated), outside="the commands of the criteria" if shows_output else None)


async def _store_results(ctx: Context, stored: StoredTodo, results: Sequence[Result]) -> StoredTodo | Problem:
    checked = stored.todo

    def change(todo: Todo) -> Todo | Problem:
        # A claim made while the criteria ran was not checked.
        return judge(todo, results) if todo.claims == checked.claims else OVERTAKEN

    passed = all(result.verdict is CriterionVerdict.PASSED for result in results)
    facts = {"criteria": [f"{result.type} {result.code or result.verdict}" for result in results]}
    return await take_step(ctx, stored, change, "verified" if passed else "not verified", facts)


OVERTAKEN = Problem(
    Code.BUSY, "this todo was claimed again while its criteria were checked; nothing was stored.", "Verify it again."
)


def _describe_outcome(stored: StoredTodo, results: Sequence[Result]) -> str:
    if stored.todo.state is TodoState.VERIFIED:
        return "Verified."
    if any(result.verdict is CriterionVerdict.FAILED for result in results):
        return "Not verified; it stays claimed. Fix what failed, and claim it again with new evidence."
    return "Not verified; it stays claimed, because some criteria could not be checked."
