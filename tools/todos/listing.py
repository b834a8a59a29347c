"""What is there to do? `TodoCreate` adds one, `TodoRead` shows them, `TodoStart` begins one."""

from collections.abc import Mapping
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.documents import Tally
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.todos import KIND, NEXT, Criterion, Todo, TodoState, start
from tools.todos.criteria import wrong
from tools.todos.definitions import TodoCreateArguments, TodoReadArguments, TodoStartArguments
from tools.todos.todos import StoredTodo, add, data, found, line, step, whole

PAGE = 100


async def create(ctx: Context, args: TodoCreateArguments) -> Ending:
    criteria = args.get("acceptance_criteria", [])
    if not args["content"].strip():
        return Problem(Code.INVALID_ARGUMENTS, "`content` is empty.", "Say what is to be done.")
    if problem := wrong(criteria):
        return problem
    todo = Todo(args["content"], tuple(Criterion(one["type"], dict(one["params"])) for one in criteria))
    kept = await add(ctx, todo)
    if isinstance(kept, Problem):
        return kept
    none = "" if criteria else " It has no criteria, so the user alone can say that it is done."
    return Done(f"{line(kept)}\n{NEXT[TodoState.PENDING]}{none}", data(kept))


async def read(ctx: Context, args: TodoReadArguments) -> Ending:
    if "id" in args:
        kept = await found(ctx, args["id"])
        return kept if isinstance(kept, Problem) else Done(whole(kept), data(kept))
    status, offset = args.get("status"), args.get("offset", 0)
    tally = await ctx.records.place.tally(KIND)
    page = [StoredTodo.of(one) for one in await ctx.records.place.list(KIND, status, PAGE, offset)]
    total = sum(one.documents for mark, one in tally.items() if status in (None, mark))
    structured = _counted(tally) | {"total": total, "todos": [data(kept) for kept in page]}
    if not sum(one.documents for one in tally.values()):
        return Done("There are no todos. `TodoCreate` adds one.", structured)
    note = ""
    if offset + len(page) < total:
        structured["next"] = offset + len(page)
        note = f"\n[{offset + 1:,}-{offset + len(page):,} of {total:,}. Go on with offset={offset + len(page)}.]"
    return Done("\n".join([_head(tally), *map(line, page)]) + note, structured)


def _counted(tally: Mapping[str, Tally]) -> dict[str, Any]:
    counts = {str(state): tally.get(state, Tally()).documents for state in TodoState}
    return {"counts": counts, "changes": sum(one.changes for one in tally.values())}


def _head(tally: Mapping[str, Tally]) -> str:
    counted = _counted(tally)
    said = ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in counted["counts"].items())
    return f"{said}; {counted['changes']:,} changes on record."


async def begin(ctx: Context, args: TodoStartArguments) -> Ending:
    kept = await found(ctx, args["id"])
    if not isinstance(kept, Problem):
        kept = await step(ctx, kept, start, "started", {})
    if isinstance(kept, Problem):
        return kept
    return Done(f"{line(kept)}\n{NEXT[TodoState.IN_PROGRESS]}", data(kept))
