"""Which todos does a session have?"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.documents import Document, DocumentCause, Overtaken, Tally
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.todos import KIND, NEXT, SIGNS, Criterion, Todo, TodoState, start
from tools.todos.criteria import said_of, wrong
from tools.todos.definitions import TodoCreateArguments, TodoReadArguments, TodoStartArguments

# Where are a session's todos kept, and how is one taken a step further without two steps at once?

ATTEMPTS = 5
TITLE = 100


@dataclass(frozen=True, slots=True)
class StoredTodo:
    """A todo with where it is kept."""

    document: Document
    todo: Todo

    @classmethod
    def of(cls, document: Document) -> "StoredTodo":
        return cls(document, Todo.of(document.body))

    @property
    def id(self) -> str:
        return self.document.id

    def becoming(self, todo: Todo) -> Document:
        return replace(self.document, body=todo.body, mark=str(todo.state))


def unknown(id: str) -> Problem:
    return Problem(Code.UNKNOWN_ID, f"this session has no todo `{id[:40]}`.", "`TodoRead` lists those it has.")


async def found(ctx: Context, id: str) -> StoredTodo | Problem:
    document = await ctx.records.place.get(KIND, id)
    return StoredTodo.of(document) if document else unknown(id)


async def add(ctx: Context, todo: Todo) -> StoredTodo | Problem:
    drawer = ctx.records.place
    for _ in range(ATTEMPTS):
        new = Document(KIND, drawer.new_id(), todo.body, str(todo.state))
        written = await drawer.put(new, DocumentCause("created", {"criteria": [one.type for one in todo.criteria]}))
        if not isinstance(written, Overtaken):
            return StoredTodo.of(written)
    return Problem(Code.TOOL_FAILED, "no free id was found; nothing was kept.", "Call again.")


async def step(
    ctx: Context, kept: StoredTodo, change: Callable[[Todo], Todo | Problem], event: str, facts: Mapping[str, Any]
) -> StoredTodo | Problem:
    """Take the step from where the todo stands now. Who comes second is judged by what the first one made of it."""
    for _ in range(ATTEMPTS):
        after = change(kept.todo)
        if isinstance(after, Problem):
            return after
        written = await ctx.records.place.put(kept.becoming(after), DocumentCause(event, facts))
        if not isinstance(written, Overtaken):
            return StoredTodo.of(written)
        if written.current is None:
            return unknown(kept.id)
        kept = StoredTodo.of(written.current)
    return Problem(Code.BUSY, "this todo is changed by too many calls at once; nothing was kept.", "Call again.")


def line(kept: StoredTodo) -> str:
    todo = kept.todo
    title = " ".join(todo.content.split())
    title = title if len(title) <= TITLE else title[: TITLE - 1] + "…"
    more = ""
    if todo.state is TodoState.CLAIMED:
        more = "  (its last check did not hold)" if todo.checked else "  (waits to be verified)"
        if not todo.criteria:
            more = "  (has no criteria: waits for the user)"
    elif todo.note and todo.state is TodoState.IN_PROGRESS:
        more = "  (sent back by the user)"
    return f"{SIGNS[todo.state]} {kept.id}  {title}{more}"


def whole(kept: StoredTodo) -> str:
    """Everything about one todo, in text."""
    todo = kept.todo
    lines = [line(kept), todo.content, *(f"- {said_of(one)}" for one in todo.criteria)]
    for claim in todo.claims:
        lines += [f"Claimed: {claim.explanation}", *(f"  {one.type}: {one.data}" for one in claim.evidence)]
    lines += [f"Checked: {one.type} {one.verdict}: {one.said}" for one in todo.results]
    lines += [f"The user said: {todo.note}"] if todo.note else []
    lines += [f"Verified by: {todo.by}"] if todo.by else []
    return "\n".join(lines)


def data(kept: StoredTodo) -> dict[str, Any]:
    """One todo for programs."""
    todo = kept.todo
    about: dict[str, Any] = {
        "id": kept.id,
        "status": str(todo.state),
        "content": todo.content,
        "acceptance_criteria": [{"type": one.type, "params": dict(one.params)} for one in todo.criteria],
        "changes": kept.document.version,
    }
    if todo.results:
        about["results"] = [
            {"type": one.type, "verdict": str(one.verdict), "said": one.said}
            | ({"code": one.code, "layer": one.layer} if one.code else {})
            for one in todo.results
        ]
    return about | ({"note": todo.note} if todo.note else {}) | ({"verified_by": todo.by} if todo.by else {})


# What is there to do? `TodoCreate` adds one, `TodoRead` shows them, `TodoStart` begins one.

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
