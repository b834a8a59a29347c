"""`menugate messages`: what did tools and models leave for the person to read?"""

import argparse
import sys
from collections.abc import Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import format_one_line, format_time, note, print_json, say
from mcp_server.cli.parser import CommandGroup, add_json, add_place, settings_from_arguments
from mcp_server.views.posture import NOT_YET, open_state_reader

if TYPE_CHECKING:
    from mcp_server.settings import Settings
    from mcp_server.state.engine.rows import Message

EXAMPLES = """
menugate messages                           what was left for you since you last looked; then it counts as read
menugate messages --keep                    the same, and it stays unread
menugate messages --all                     what you have read before as well
menugate messages --json --keep             for a program
"""


def add(commands: CommandGroup) -> None:
    one = commands.add("messages", "show what tools and models left for you to read", EXAMPLES, run)
    one.add_argument("--all", action="store_true", help="those you have read as well")
    one.add_argument("--keep", action="store_true", help="leave them unread")
    add_place(one)
    add_json(one)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    with open_state_reader(settings) as state:
        found = [one for one in (state.load_messages() if state else ()) if arguments.all or not one.read]
    # Those that are new come first.
    found.sort(key=lambda one: one.read)
    if arguments.json:
        print_json([to_json(one) for one in found])
    elif state is None:
        say(NOT_YET)
    else:
        show(found, arguments.all, settings.person)
    new = [one.id for one in found if not one.read]
    if new and not arguments.keep:
        # Who closed the pipe has not read them.
        sys.stdout.flush()
        mark_read(settings, new)
    return 0


def show(found: Sequence["Message"], every: bool, reader: str) -> None:
    if not found:
        say("There are no messages." if every else "There is nothing new; --all shows what you have read.")
    for one in found:
        whose = f"{one.principal}  " if one.principal not in ("", reader) else ""
        head = f"{format_time(one.at) if one.at else 'at a start'}  {whose}{one.session or 'menugate'}"
        say((head, "dim"), "" if one.read else ("  new", "yellow"))
        # Whatever somebody else wrote stands behind a mark that no line of menugate's own begins with.
        say(indent(one.text, "| ", lambda _line: True))
        for path in one.attachments:
            say(f"  attached: {format_one_line(path)}")
        say()


def to_json(one: "Message") -> dict[str, Any]:
    return {
        "id": one.id,
        "at": format_time(one.at) if one.at else None,
        "session": one.session or None,
        "principal": one.principal or None,
        "text": one.text,
        "attachments": one.attachments,
        "read": one.read,
    }


def mark_read(settings: "Settings", ids: Sequence[str]) -> None:
    """From here on they count as read. Where that cannot be written they were still shown."""
    import asyncio

    from mcp_server.model.results import Refusal
    from mcp_server.person import open_store_for_person

    async def mark_read() -> None:
        async with open_store_for_person(settings) as store:
            await store.mark_messages_read(ids)

    try:
        asyncio.run(mark_read())
    except Refusal as refused:
        note(f"They stay unread: {refused.problem.message}")
