"""Which todos does a session have?"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.documents import Document, DocumentCause, Overtaken, Tally
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.todos import KIND, NEXT, SIGNS, Criterion, Todo, TodoState, start
from tools.todos.criteria import describe_criterion, find_criteria_problem
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
    def from_document(cls, document: Document) -> "StoredTodo":
        return cls(document, Todo.from_body(document.body))

    @property
    def id(self) -> str:
        return self.document.id

    def to_document(self, todo: Todo) -> Document:
        return replace(self.document, body=todo.body, mark=str(todo.state))


def build_unknown_problem(id: str) -> Problem:
    return Problem(Code.UNKNOWN_ID, f"this session has no todo `{id[:40]}`.", "`TodoRead` lists those it has.")


async def find_todo(ctx: Context, id: str) -> StoredTodo | Problem:
    document = await ctx.records.place.get(KIND, id)
    return StoredTodo.from_document(document) if document else build_unknown_problem(id)


async def add_todo(ctx: Context, todo: Todo) -> StoredTodo | Problem:
    drawer = ctx.records.place
    for _ in range(ATTEMPTS):
        new = Document(KIND, drawer.new_id(), todo.body, str(todo.state))
        written = await drawer.put(new, DocumentCause("created", {"criteria": [one.type for one in todo.criteria]}))
        if not isinstance(written, Overtaken):
            return StoredTodo.from_document(written)
    return Problem(Code.TOOL_FAILED, "no free id was found; nothing was kept.", "Call again.")


async def take_step(
    ctx: Context, kept: StoredTodo, change: Callable[[Todo], Todo | Problem], event: str, facts: Mapping[str, Any]
) -> StoredTodo | Problem:
    """Take the step from where the todo stands now. Who comes second is judged by what the first one made of it."""
    for _ in range(ATTEMPTS):
        after = change(kept.todo)
        if isinstance(after, Problem):
            return after
        written = await ctx.records.place.put(kept.to_document(after), DocumentCause(event, facts))
        if not isinstance(written, Overtaken):
            return StoredTodo.from_document(written)
        if written.current is None:
            return build_unknown_problem(kept.id)
        kept = StoredTodo.from_document(written.current)
    return Problem(Code.BUSY, "this todo is changed by too many calls at once; nothing was kept.", "Call again.")


def format_line(kept: StoredTodo) -> str:
    todo = kept.todo
    title = " ".join(todo.content.split())
    title = title if len(title) <= TITLE else title[: TITLE - 1] + "…"
    more = ""
    if todo.state is TodoState.CLAIMED:
        more = "  (its last check did not hold)" if todo.is_checked else "  (waits to be verified)"
        if not todo.criteria:
            more = "  (has no criteria: waits for the user)"
    elif todo.note and todo.state is TodoState.IN_PROGRESS:
        more = "  (sent back by the user)"
    return f"{SIGNS[todo.state]} {kept.id}  {title}{more}"


def format_todo(kept: StoredTodo) -> str:
    """Everything about one todo, in text."""
    todo = kept.todo
    lines = [format_line(kept), todo.content, *(f"- {describe_criterion(one)}" for one in todo.criteria)]
    for claim in todo.claims:
        lines += [f"Claimed: {claim.explanation}", *(f"  {one.type}: {one.data}" for one in claim.evidence)]
    lines += [f"Checked: {one.type} {one.verdict}: {one.said}" for one in todo.results]
    lines += [f"The user said: {todo.note}"] if todo.note else []
    lines += [f"Verified by: {todo.by}"] if todo.by else []
    return "\n".join(lines)


def build_todo_data(kept: StoredTodo) -> dict[str, Any]:
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
    if problem := find_criteria_problem(criteria):
        return problem
    todo = Todo(args["content"], tuple(Criterion(one["type"], dict(one["params"])) for one in criteria))
    kept = await add_todo(ctx, todo)
    if isinstance(kept, Problem):
        return kept
    none = "" if criteria else " It has no criteria, so the user alone can say that it is done."
    return Done(f"{format_line(kept)}\n{NEXT[TodoState.PENDING]}{none}", build_todo_data(kept))


async def read(ctx: Context, args: TodoReadArguments) -> Ending:
    if "id" in args:
        kept = await find_todo(ctx, args["id"])
        return kept if isinstance(kept, Problem) else Done(format_todo(kept), build_todo_data(kept))
    status, offset = args.get("status"), args.get("offset", 0)
    tally = await ctx.records.place.count_by_mark(KIND)
    page = [StoredTodo.from_document(one) for one in await ctx.records.place.list_documents(KIND, status, PAGE, offset)]
    total = sum(one.documents for mark, one in tally.items() if status in (None, mark))
    structured = _build_counts(tally) | {"total": total, "todos": [build_todo_data(kept) for kept in page]}
    if not sum(one.documents for one in tally.values()):
        return Done("There are no todos. `TodoCreate` adds one.", structured)
    note = ""
    if offset + len(page) < total:
        structured["next"] = offset + len(page)
        note = f"\n[{offset + 1:,}-{offset + len(page):,} of {total:,}. Go on with offset={offset + len(page)}.]"
    return Done("\n".join([_format_counts(tally), *map(format_line, page)]) + note, structured)


def _build_counts(tally: Mapping[str, Tally]) -> dict[str, Any]:
    counts = {str(state): tally.get(state, Tally()).documents for state in TodoState}
    return {"counts": counts, "changes": sum(one.changes for one in tally.values())}


def _format_counts(tally: Mapping[str, Tally]) -> str:
    counted = _build_counts(tally)
    said = ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in counted["counts"].items())
    return f"{said}; {counted['changes']:,} changes on record."


async def begin(ctx: Context, args: TodoStartArguments) -> Ending:
    kept = await find_todo(ctx, args["id"])
    if not isinstance(kept, Problem):
        kept = await take_step(ctx, kept, start, "started", {})
    if isinstance(kept, Problem):
        return kept
    return Done(f"{format_line(kept)}\n{NEXT[TodoState.IN_PROGRESS]}", build_todo_data(kept))
