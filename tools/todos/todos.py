"""Which todos does a session have, and is one done? A claim says so; its criteria, or the user, decide."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.context import Context
from mcp_server.model.documents import Document, DocumentCause, Overtaken, Tally
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.todos import (
    KIND,
    NEXT,
    SIGNS,
    Criterion,
    CriterionVerdict,
    Evidence,
    Result,
    Todo,
    TodoState,
    claim,
    judge,
    start,
)
from tools.todos.criteria import check_criterion, describe_criterion, find_criteria_problem
from tools.todos.definitions import (
    RUNS,
    TodoClaimArguments,
    TodoCreateArguments,
    TodoReadArguments,
    TodoStartArguments,
    TodoVerifyArguments,
)

MAX_ATTEMPTS = 5
TITLE_CHARS = 100
PAGE = 100


class StoredTodo(Struct, frozen=True):
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


def _build_unknown_problem(id: str) -> Problem:
    return Problem(Code.UNKNOWN_ID, f"this session has no todo `{id[:40]}`.", "`TodoRead` lists its todos.")


async def find_todo(ctx: Context, id: str) -> StoredTodo | Problem:
    document = await ctx.records.place.get(KIND, id)
    return StoredTodo.from_document(document) if document else _build_unknown_problem(id)


async def _add_todo(ctx: Context, todo: Todo) -> StoredTodo | Problem:
    documents = ctx.records.place
    cause = DocumentCause("created", {"criteria": [criterion.type for criterion in todo.criteria]})
    for _ in range(MAX_ATTEMPTS):
        written = await documents.put(Document(KIND, documents.new_id(), todo.body, str(todo.state)), cause)
        if not isinstance(written, Overtaken):
            return StoredTodo.from_document(written)
    return Problem(Code.TOOL_FAILED, "no free id was found; nothing was stored.", "Call again.")


async def take_step(
    ctx: Context, stored: StoredTodo, change: Callable[[Todo], Todo | Problem], event: str, facts: Mapping[str, Any]
) -> StoredTodo | Problem:
    """Apply a change and store it; if another call changed the todo first, apply it to what that call stored."""
    for _ in range(MAX_ATTEMPTS):
        todo = change(stored.todo)
        if isinstance(todo, Problem):
            return todo
        written = await ctx.records.place.put(stored.to_document(todo), DocumentCause(event, facts))
        if not isinstance(written, Overtaken):
            return StoredTodo.from_document(written)
        if written.current is None:
            return _build_unknown_problem(stored.id)
        stored = StoredTodo.from_document(written.current)
    return Problem(Code.BUSY, "too many calls change this todo at once; nothing was stored.", "Call again.")


def format_line(stored: StoredTodo) -> str:
    todo = stored.todo
    title = " ".join(todo.content.split())
    title = title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1] + "…"
    note = ""
    if todo.state is TodoState.CLAIMED:
        note = "  (its last check failed)" if todo.is_checked else "  (not verified yet)"
        if not todo.criteria:
            note = "  (no criteria: waits for the user)"
    elif todo.note and todo.state is TodoState.IN_PROGRESS:
        note = "  (sent back by the user)"
    return f"{SIGNS[todo.state]} {stored.id}  {title}{note}"


def _format_todo(stored: StoredTodo) -> str:
    todo = stored.todo
    lines = [format_line(stored), todo.content, *(f"- {describe_criterion(criterion)}" for criterion in todo.criteria)]
    for each in todo.claims:
        lines += [f"Claimed: {each.explanation}", *(f"  {piece.type}: {piece.data}" for piece in each.evidence)]
    lines += [f"Checked: {result.type} {result.verdict}: {result.said}" for result in todo.results]
    lines += [f"The user said: {todo.note}"] if todo.note else []
    lines += [f"Verified by: {todo.by}"] if todo.by else []
    return "\n".join(lines)


def build_todo_data(stored: StoredTodo) -> dict[str, Any]:
    """Build what the structured result says of a todo."""
    todo = stored.todo
    data: dict[str, Any] = {
        "id": stored.id,
        "status": str(todo.state),
        "content": todo.content,
        "acceptance_criteria": [
            {"type": criterion.type, "params": dict(criterion.params)} for criterion in todo.criteria
        ],
        "changes": stored.document.version,
    }
    if todo.results:
        data["results"] = [
            {"type": result.type, "verdict": str(result.verdict), "said": result.said}
            | ({"code": result.code, "layer": result.layer} if result.code else {})
            for result in todo.results
        ]
    return data | ({"note": todo.note} if todo.note else {}) | ({"verified_by": todo.by} if todo.by else {})


async def create(ctx: Context, args: TodoCreateArguments) -> Ending:
    criteria = args.get("acceptance_criteria", [])
    if not args["content"].strip():
        return Problem(Code.INVALID_ARGUMENTS, "`content` is empty.", "Say what to do.")
    if problem := find_criteria_problem(criteria):
        return problem
    todo = Todo(args["content"], tuple(Criterion(each["type"], dict(each["params"])) for each in criteria))
    stored = await _add_todo(ctx, todo)
    if isinstance(stored, Problem):
        return stored
    note = "" if criteria else " It has no criteria, so only the user can accept it."
    return Done(f"{format_line(stored)}\n{NEXT[TodoState.PENDING]}{note}", build_todo_data(stored))


async def read(ctx: Context, args: TodoReadArguments) -> Ending:
    if "id" in args:
        stored = await find_todo(ctx, args["id"])
        return stored if isinstance(stored, Problem) else Done(_format_todo(stored), build_todo_data(stored))
    status, offset = args.get("status"), args.get("offset", 0)
    tally = await ctx.records.place.count_by_mark(KIND)
    documents = await ctx.records.place.list_documents(KIND, status, PAGE, offset)
    page = [StoredTodo.from_document(document) for document in documents]
    total = sum(count.documents for mark, count in tally.items() if status in (None, mark))
    data = _build_counts(tally) | {"total": total, "todos": [build_todo_data(stored) for stored in page]}
    if not any(count.documents for count in tally.values()):
        return Done("There are no todos. `TodoCreate` adds one.", data)
    note = ""
    if offset + len(page) < total:
        end = data["next"] = offset + len(page)
        note = f"\n[{offset + 1:,}-{end:,} of {total:,}. Continue with offset={end}.]"
    return Done("\n".join([_format_counts(data), *map(format_line, page)]) + note, data)


def _build_counts(tally: Mapping[str, Tally]) -> dict[str, Any]:
    counts = {str(state): tally.get(state, Tally()).documents for state in TodoState}
    return {"counts": counts, "changes": sum(count.changes for count in tally.values())}


def _format_counts(data: Mapping[str, Any]) -> str:
    states = ", ".join(f"{count:,} {state.replace('_', ' ')}" for state, count in data["counts"].items())
    return f"{states}; {data['changes']:,} changes on record."


async def begin(ctx: Context, args: TodoStartArguments) -> Ending:
    stored = await find_todo(ctx, args["id"])
    if not isinstance(stored, Problem):
        stored = await take_step(ctx, stored, start, "started", {})
    if isinstance(stored, Problem):
        return stored
    return Done(f"{format_line(stored)}\n{NEXT[TodoState.IN_PROGRESS]}", build_todo_data(stored))


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
