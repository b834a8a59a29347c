"""`menugate todos`: what are the agents' todos here, and do you accept the claimed ones?"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcp_server.cli.ledger import format_short_row
from mcp_server.cli.output import CliError, print_json, print_table, say
from mcp_server.cli.parser import CommandGroup, add_actions, add_json, add_place, settings_from_arguments
from mcp_server.cli.usage import join_names
from mcp_server.model.sessions import parse_session_id
from mcp_server.model.todos import KIND, SIGNS, Todo, TodoState, accept, reject
from mcp_server.views.posture import NOT_YET, open_state_reader
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.model.documents import Document
    from mcp_server.model.results import Problem
    from mcp_server.settings import Settings
    from mcp_server.state.engine.rows import Row
    from mcp_server.state.reader import Reader

EXAMPLES = """
menugate todos                                 the todos of every session
menugate todos show 3f9c12ab                   one todo: criteria, claims, checks and history
menugate todos accept 3f9c12ab                 it is done
menugate todos reject 3f9c12ab "tests fail"    it is not done, and the agent must continue
"""
LIST = """
menugate todos list --status claimed    todos that need a check or your decision
menugate todos list --json              for a program
"""
SHOW = """
menugate todos show 3f9c12ab           everything about one todo, with its history
menugate todos show 3f9c12ab --json    for a program
"""
ACCEPT = """
menugate todos accept 3f9c12ab                   it is done
menugate todos accept 3f9c12ab "seen in a demo"  and why you think so
"""
REJECT = """
menugate todos reject 3f9c12ab "the help text is missing"    the model sees the reason
"""
MAX_TITLE_CHARS = 80


def add(commands: CommandGroup) -> None:
    actions = add_actions(commands.add("todos", EXAMPLES, None))
    list_action = actions.add("list", LIST, run_list, "list the todos of every session")
    list_action.add_argument("--status", choices=tuple(map(str, TodoState)), help="only todos in this state")
    show_action = actions.add("show", SHOW, run_show, "show one todo in full, with its history")
    accept_action = actions.add("accept", ACCEPT, run_accept, "accept a claimed todo as done")
    reject_action = actions.add("reject", REJECT, run_reject, "reject a claimed todo, and say what is missing")
    for action in (show_action, accept_action, reject_action):
        action.add_argument("id", metavar="ID", help="the id of the todo, or the start of it")
    accept_action.add_argument("note", nargs="?", default="", metavar="WORDS", help="why you accept it")
    reject_action.add_argument("note", metavar="WORDS", help="what is missing")
    for action in (list_action, show_action, accept_action, reject_action):
        add_place(action)
    add_json(list_action)
    add_json(show_action)


def run_list(arguments: argparse.Namespace) -> int:
    with open_state_reader(settings_from_arguments(arguments)) as state:
        todos = list(state.load_records(KIND)) if state else []
    if arguments.status:
        todos = [entry for entry in todos if entry[1].mark == arguments.status]
    if arguments.json:
        print_json([to_json(owner, document) for owner, document in todos])
    elif not todos:
        say("No todos here." if state else NOT_YET)
    else:
        print_table(
            [(document.id, *_format_cells(document), _get_session(owner)) for owner, document in todos], head=HEAD
        )
    return 0


HEAD = ("id", "", "todo", "criteria", "changed", "session")


def _format_cells(document: "Document") -> tuple[str, str, str, str]:
    todo = Todo.from_body(document.body)
    title = " ".join(todo.content.split())
    short = title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1] + "…"
    return SIGNS[todo.state], short, str(len(todo.criteria) or "none"), format_time(document.changed)


def _get_session(owner: str) -> str:
    return parse_session_id(owner.partition(":")[2])


def run_show(arguments: argparse.Namespace) -> int:
    with open_state_reader(settings_from_arguments(arguments)) as state:
        owner, document = find_todo(state, arguments.id)
        rows = find_changes(state, owner, document) if state else []
    if arguments.json:
        print_json(to_json(owner, document) | {"history": [{"seq": row.seq, **row.fields} for row in rows]})
        return 0
    todo = Todo.from_body(document.body)
    say((f"{SIGNS[todo.state]} {document.id}", "bold"), f"  {todo.state}, session {_get_session(owner)}")
    say(todo.content)
    for criterion in todo.criteria:
        say(f"  criterion  {criterion.type} {dict(criterion.params)}")
    for claim in todo.claims:
        say(f"  claimed    {claim.explanation}")
        for piece in claim.evidence:
            say(f"             {piece.type}: {piece.data}")
    for result in todo.results:
        say(f"  checked    {result.type} {result.verdict}: {result.said}")
    if todo.note:
        say(f"  you said   {todo.note}")
    say()
    for row in rows:
        say(*format_short_row(row))
    return 0


def find_changes(state: "Reader", owner: str, document: "Document") -> list["Row"]:
    """Find the ledger rows about this todo, oldest first."""
    from mcp_server.state.engine.rows import LedgerFilter

    row_filter = LedgerFilter(session=_get_session(owner), kinds=("record",))
    return [
        row
        for row in state.read_rows(row_filter)
        if (row.fields.get("record"), row.fields.get("id")) == (KIND, document.id)
    ]


def find_todo(state: "Reader | None", id: str) -> tuple[str, "Document"]:
    """Find the todo with this id, or the only one whose id begins with it, and its owner."""
    todos: Sequence[tuple[str, Document]] = state.load_records(KIND) if state else ()
    exact = [todo for todo in todos if todo[1].id == id]
    matches = exact or [todo for todo in todos if id and todo[1].id.startswith(id)]
    if not matches:
        raise CliError(f"there is no todo `{id[:40]}` here; `menugate todos list` lists them.")
    if len(matches) > 1:
        names = join_names((todo[1].id for todo in matches[:10]), "and")
        raise CliError(f"the ids of several todos begin with `{id[:40]}`: {names}.")
    return matches[0]


def run_accept(arguments: argparse.Namespace) -> int:
    return decide_todo(arguments, partial(accept, note=arguments.note), "accepted")


def run_reject(arguments: argparse.Namespace) -> int:
    if not arguments.note.strip():
        raise CliError("say what is missing, so that the model can act on it.", code=2)
    return decide_todo(arguments, partial(reject, note=arguments.note), "rejected")


def decide_todo(arguments: argparse.Namespace, change: "Callable[[Todo], Todo | Problem]", event: str) -> int:
    settings = settings_from_arguments(arguments)
    with open_state_reader(settings) as state:
        owner, document = find_todo(state, arguments.id)
    from mcp_server.model.results import Problem

    after = change(Todo.from_body(document.body))
    if isinstance(after, Problem):
        raise CliError(f"{after.message} {after.way_out}")
    write_todo(settings, owner, replace(document, body=after.body, mark=str(after.state)), event)
    say(f"{SIGNS[after.state]} {document.id}  {event}.")
    return 0


def write_todo(settings: "Settings", owner: str, document: "Document", event: str) -> None:
    """Write it from this process, beside running servers; the first writer wins."""
    from mcp_server.calls.terminal import change_as_person
    from mcp_server.model.documents import Document, DocumentCause
    from mcp_server.state import documents

    actor: dict[str, Any] = {"principal": settings.person, "session": _get_session(owner), "by": "user"}
    writing = documents.DocumentWrite(owner, document, DocumentCause(event), actor)

    if not isinstance(change_as_person(settings, partial(documents.put_document, write=writing)), Document):
        raise CliError("the todo changed in the meantime; look at it again with `menugate todos show`.")


def to_json(owner: str, document: "Document") -> dict[str, Any]:
    return {
        "id": document.id,
        "session": _get_session(owner),
        "made": format_time(document.made),
        "changed": format_time(document.changed),
        "changes": document.version,
        **document.body,
    }
