"""`menugate messages`: what have tools and models left for you to read?"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from textwrap import indent
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, note, print_json, say, say_foreign, say_prose
from mcp_server.cli.parser import CommandGroup, add_json, add_place, settings_from_arguments
from mcp_server.model.sessions import parse_session_id
from mcp_server.views.posture import NOT_YET, open_state_reader
from mcp_server.views.text import format_one_line, format_time

if TYPE_CHECKING:
    from mcp_server.settings import Settings
    from mcp_server.state.engine.rows import Message

EXAMPLES = """
menugate messages                  new messages; this marks them as read
menugate messages --keep           the same, but leave them unread
menugate messages --all            also those you have read
menugate messages --json --keep    for a program
menugate messages reply 818266c8ee77-6 "Use the second one."    answer the model
"""


def add(commands: CommandGroup) -> None:
    command = commands.add("messages", EXAMPLES, run)
    command.add_argument("action", nargs="?", choices=("reply",), metavar="reply", help="answer a message")
    command.add_argument("id", nargs="?", metavar="ID", help="the message to answer")
    command.add_argument("text", nargs="?", metavar="TEXT", help="your answer")
    command.add_argument("--all", action="store_true", help="include those you have read")
    command.add_argument("--keep", action="store_true", help="leave them unread")
    add_place(command)
    add_json(command)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    if arguments.action is not None:
        return reply(settings, arguments.id, arguments.text)
    with open_state_reader(settings) as state:
        messages = [
            message for message in (state.load_messages() if state else ()) if arguments.all or not message.read
        ]
    # New ones first.
    messages.sort(key=lambda message: message.read)
    if arguments.json:
        print_json([to_json(message) for message in messages])
    elif state is None:
        say(NOT_YET)
    else:
        show(messages, arguments.all, settings.person)
    new_ids = [message.id for message in messages if not message.read]
    if new_ids and not arguments.keep:
        # If the reader closed the pipe, this raises, and they stay unread.
        sys.stdout.flush()
        mark_read(settings, new_ids)
    return 0


def show(messages: Sequence["Message"], with_read: bool, reader: str) -> None:
    if not messages:
        say_prose("No messages." if with_read else "No new messages; --all lists those you have read.")
    for message in messages:
        owner = f"{message.principal}  " if message.principal not in ("", reader) else ""
        sender = parse_session_id(message.session) or "menugate"
        head = f"{format_time(message.at) if message.at else 'at startup'}  {owner}{sender}"
        say((message.id, "bold"), ("  " + head, "dim"), "" if message.read else ("  new", "yellow"))
        # A mark that none of our own lines begins with.
        say_foreign(message.text, "| ", "| ")
        for path in message.attachments:
            say(f"  attached: {format_one_line(path)}")
        if message.reply:
            say(f"  you replied {format_time(message.reply.at)}:")
            say(indent(message.reply.text, "    ", lambda _line: True))
        elif message.asks:
            say_prose(f"The model asks for an answer: `menugate messages reply {message.id} TEXT`", indent="  ")
        say()


def to_json(message: "Message") -> dict[str, Any]:
    return {
        "id": message.id,
        "at": format_time(message.at) if message.at else None,
        "session": parse_session_id(message.session) or None,
        "principal": message.principal or None,
        "text": message.text,
        "attachments": message.attachments,
        "read": message.read,
        "asks": message.asks,
        "reply": {"text": message.reply.text, "at": format_time(message.reply.at)} if message.reply else None,
    }


def reply(settings: "Settings", id: str | None, text: str | None) -> int:
    """Answer a message. If the session that left it is over, the next one of the same principal gets the answer."""
    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.cli.target import write_to_state
    from mcp_server.state.engine.rows import Reply
    from mcp_server.state.messages import reply_to_message
    from mcp_server.state.running_calls import read_running_calls

    if id is None or text is None or not text.strip():
        raise CliError("name the message and your answer: `menugate messages reply ID TEXT`.", 2)
    refuse_inside_server(settings)
    with open_state_reader(settings) as state:
        message = next((one for one in (state.load_messages() if state else ()) if one.id == id), None)
    if message is None or not message.session:
        why = "there is no message" if message is None else "no model is waiting for an answer to"
        raise CliError(f"{why} `{id}`; `menugate messages --all` lists every message.")
    clients, _ = read_running_calls(settings.all_state_folders)
    is_connected = parse_session_id(message.session) in {client.session for client in clients}
    session = message.session if is_connected or message.by_handle else ""
    if write_to_state(settings, partial(reply_to_message, id=id, reply=Reply(text, session=session))) is None:
        raise CliError(f"`{id}` has already been answered; `menugate messages --all` shows how.")
    say_prose("Replied. If a call is waiting for the answer, it gets it now; otherwise the agent's next call does.")
    return 0


def mark_read(settings: "Settings", ids: Sequence[str]) -> None:
    """Mark them as read. A failure to record that is only a note, because they were shown."""
    from mcp_server.calls.terminal import change_as_person
    from mcp_server.model.results import Refusal
    from mcp_server.state.messages import mark_messages_read

    try:
        change_as_person(settings, lambda tx: mark_messages_read(tx, ids))
    except Refusal as refused:
        note(f"They stay unread: {refused.problem.message}")
