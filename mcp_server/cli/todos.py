"""`menugate todos`: what do agents have to do here, and does the person take what they claim?"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_server.cli.ledger import format_short_row
from mcp_server.cli.output import CliError, format_time, print_json, print_table, say
from mcp_server.cli.parser import CommandGroup, MixedParser, add_json, add_place, settings_from_arguments
from mcp_server.model.sessions import parse_session_id
from mcp_server.model.todos import KIND, SIGNS, Todo, TodoState, accept, reject
from mcp_server.views.posture import NOT_YET, open_state_reader

if TYPE_CHECKING:
    from mcp_server.model.documents import Document
    from mcp_server.model.results import Problem
    from mcp_server.settings import Settings
    from mcp_server.state.engine.rows import Row
    from mcp_server.state.reader import Reader

EXAMPLES = """
menugate todos list                            what there is to do here, in every session
menugate todos show 3f9c12ab                   one of them: criteria, claims, checks, and what happened to it
menugate todos accept 3f9c12ab                 you have seen that it is done: it is verified
menugate todos reject 3f9c12ab "tests fail"    it is not done: it goes on, and comes back with new evidence
"""
LIST = """
menugate todos list --status claimed    what waits for a check, or for you
menugate todos list --json              for a program
"""
SHOW = """
menugate todos show 3f9c12ab           everything about one todo, with every change to it
menugate todos show 3f9c12ab --json    for a program
"""
ACCEPT = """
menugate todos accept 3f9c12ab                   it is done
menugate todos accept 3f9c12ab "seen in a demo"  and why you say so
"""
REJECT = """
menugate todos reject 3f9c12ab "the help text is missing"    the words are what the model reads
"""
TITLE = 80


def add(commands: CommandGroup) -> None:
    one = commands.add("todos", "see what agents have to do, and take or send back what they claim", EXAMPLES, None)
    below = CommandGroup(
        one.add_subparsers(title="what to do", metavar="DEED", required=True, parser_class=MixedParser).add_parser
    )
    every = below.add("list", "show the todos of every session", LIST, run_list)
    every.add_argument("--status", choices=tuple(map(str, TodoState)), help="only these")
    show = below.add("show", "show one todo whole, with every change to it", SHOW, run_show)
    taken = below.add("accept", "say that a claimed todo is done", ACCEPT, run_accept)
    sent = below.add("reject", "say that a claimed todo is not done", REJECT, run_reject)
    for deed in (show, taken, sent):
        deed.add_argument("id", metavar="ID", help="the todo's id, or its beginning where no other begins so")
    taken.add_argument("note", nargs="?", default="", metavar="WORDS", help="what you want to say about it")
    sent.add_argument("note", metavar="WORDS", help="what is missing")
    for deed in (every, show, taken, sent):
        add_place(deed)
    add_json(every)
    add_json(show)


def run_list(arguments: argparse.Namespace) -> int:
    with open_state_reader(settings_from_arguments(arguments)) as state:
        found = list(state.load_records(KIND)) if state else []
    if arguments.status:
        found = [one for one in found if one[1].mark == arguments.status]
    if arguments.json:
        print_json([to_json(owner, document) for owner, document in found])
    elif not found:
        say("There are no todos here." if state else NOT_YET)
    else:
        print_table(
            [(document.id, *_format_cells(document), _get_session(owner)) for owner, document in found], head=HEAD
        )
    return 0


HEAD = ("id", "", "todo", "criteria", "changed", "session")


def _format_cells(document: "Document") -> tuple[str, str, str, str]:
    todo = Todo.from_body(document.body)
    title = " ".join(todo.content.split())
    short = title if len(title) <= TITLE else title[: TITLE - 1] + "…"
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
    """The rows of the ledger about this todo, oldest first."""
    from mcp_server.state.engine.rows import LedgerFilter

    wanted = LedgerFilter(session=_get_session(owner), kinds=("record",))
    return [
        row
        for row in state.read_rows(wanted)
        if (row.fields.get("record"), row.fields.get("id")) == (KIND, document.id)
    ]


def find_todo(state: "Reader | None", id: str) -> tuple[str, "Document"]:
    """The todo that is meant, with whose it is."""
    every: Sequence[tuple[str, Document]] = state.load_records(KIND) if state else ()
    found = [one for one in every if one[1].id == id] or [one for one in every if id and one[1].id.startswith(id)]
    if not found:
        raise CliError(f"there is no todo `{id[:40]}` here; `menugate todos list` shows those there are.")
    if len(found) > 1:
        raise CliError(f"several todos begin with `{id[:40]}`: {', '.join(one[1].id for one in found[:10])}.")
    return found[0]


def run_accept(arguments: argparse.Namespace) -> int:
    return decide_todo(arguments, partial(accept, note=arguments.note), "accepted")


def run_reject(arguments: argparse.Namespace) -> int:
    if not arguments.note.strip():
        raise CliError("say what is missing, for the model to read.", code=2)
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
    """From a process of its own, beside any number of running servers: whoever was first has changed it."""
    import asyncio

    from mcp_server.model.documents import Document, DocumentCause
    from mcp_server.model.results import Refusal
    from mcp_server.person import open_store_for_person
    from mcp_server.state import documents

    actor: dict[str, Any] = {"principal": settings.person, "session": _get_session(owner), "by": "user"}
    writing = documents.DocumentWrite(owner, document, DocumentCause(event), actor)

    async def put_document() -> object:
        async with open_store_for_person(settings) as store:
            return await store.write(partial(documents.put_document, writing=writing))

    try:
        if not isinstance(asyncio.run(put_document()), Document):
            raise CliError("it was changed at the same moment; look at it again.")
    except Refusal as refused:
        raise CliError(f"{refused.problem.message} {refused.problem.way_out}") from None


def to_json(owner: str, document: "Document") -> dict[str, Any]:
    return {
        "id": document.id,
        "session": _get_session(owner),
        "made": format_time(document.made),
        "changed": format_time(document.changed),
        "changes": document.version,
        **document.body,
    }
