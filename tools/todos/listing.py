"""What is there to do? `TodoCreate` adds one, `TodoRead` shows them, `TodoStart` begins one."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mcp_server.model.ending import Code, Done, Ending, Problem
from mcp_server.model.ports.context import Context
from mcp_server.model.ports.records import Tally
from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, schema_of
from mcp_server.model.tool import ACTING, REVIEWING, WARMUP, Arguments, Demand, Effect, Hints, Tool
from mcp_server.model.work.todo import KIND, NEXT, Criterion, State, Todo, start
from tools.todos.criteria import RUNS, CriterionArgument, wrong
from tools.todos.keeping import Kept, add, data, found, line, step, whole

PAGE = 100
MOST_CRITERIA = 20
Id = Annotated[str, "The todo's id", Is(shortest=1, longest=64)]


class CreateArguments(TypedDict):
    content: Annotated[str, "What is to be done", Is(shortest=1, longest=4000)]
    acceptance_criteria: NotRequired[
        Annotated[list[CriterionArgument], "What has to be true before it is done", Is(most_items=MOST_CRITERIA)]
    ]


async def create(ctx: Context, args: CreateArguments) -> Ending:
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
    return Done(f"{line(kept)}\n{NEXT[State.PENDING]}{none}", data(kept))


def demand_creating(args: Arguments) -> Demand:
    """Criteria that run something need what running it will need at the least; the gate asks again when they run."""
    runs = any(one["type"] in RUNS for one in args.get("acceptance_criteria", ()))
    return Demand(Effect.SESSION, Profile.NORMAL if runs else Profile.RESTRICTED)


TODO_CREATE = Tool(
    name="TodoCreate",
    title="Add a todo",
    description=(
        "Add a todo with the criteria that will show that it is done. A todo goes from pending to in_progress "
        "(TodoStart), claimed (TodoClaim) and verified (TodoVerify): claimed is not done. Criteria: "
        "command_exit_zero{command, seconds?}, file_exists{path}, file_contains{path, text or pattern}, "
        "test_passes{test, seconds?}. They are checked by TodoVerify, with the permissions of then. Example: "
        '{"content": "Fix the parser", "acceptance_criteria": '
        '[{"type": "test_passes", "params": {"test": "tests/test_parser.py::test_empty"}}]}'
    ),
    arguments=schema_of(CreateArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    hints=Hints(read_only=False, destructive=False, idempotent=False, open_world=False),
    stages=WARMUP | ACTING,
    run=create,
    demand=demand_creating,
)


class ReadArguments(TypedDict):
    id: NotRequired[Annotated[str, "One todo, with its claims and checks", Is(shortest=1, longest=64)]]
    status: NotRequired[Annotated[Literal["pending", "in_progress", "claimed", "verified"], "Only these"]]
    offset: NotRequired[Annotated[int, "Skip so many", Is(default=0, at_least=0)]]


async def read(ctx: Context, args: ReadArguments) -> Ending:
    if "id" in args:
        kept = await found(ctx, args["id"])
        return kept if isinstance(kept, Problem) else Done(whole(kept), data(kept))
    status, offset = args.get("status"), args.get("offset", 0)
    tally = await ctx.records.session.tally(KIND)
    page = [Kept.of(one) for one in await ctx.records.session.list(KIND, status, PAGE, offset)]
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
    counts = {str(state): tally.get(state, Tally()).documents for state in State}
    return {"counts": counts, "changes": sum(one.changes for one in tally.values())}


def _head(tally: Mapping[str, Tally]) -> str:
    counted = _counted(tally)
    said = ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in counted["counts"].items())
    return f"{said}; {counted['changes']:,} changes on record."


TODO_READ = Tool(
    name="TodoRead",
    title="Show the todos",
    description=(
        "Show the todos of this session with how far each is: [ ] pending, [*] in progress, [?] claimed, [x] verified, "
        "100 at a time; with `id` one of them whole, with its claims and checks."
    ),
    arguments=schema_of(ReadArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    hints=Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
    stages=WARMUP | ACTING | REVIEWING,
    run=read,
)


class StartArguments(TypedDict):
    id: Id


async def begin(ctx: Context, args: StartArguments) -> Ending:
    kept = await found(ctx, args["id"])
    if not isinstance(kept, Problem):
        kept = await step(ctx, kept, start, "started", {})
    if isinstance(kept, Problem):
        return kept
    return Done(f"{line(kept)}\n{NEXT[State.IN_PROGRESS]}", data(kept))


TODO_START = Tool(
    name="TodoStart",
    title="Begin a todo",
    description="Begin a pending todo: it is in progress from then on.",
    arguments=schema_of(StartArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.SESSION,
    hints=Hints(read_only=False, destructive=False, idempotent=True, open_world=False),
    stages=ACTING,
    run=begin,
)
