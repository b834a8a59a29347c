"""`menugate call`: run one tool with the same checks as a client's call."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from msgspec import Struct

from mcp_server.cli.output import CliError, ProgressPrinter, note, print_json, say, show_progress
from mcp_server.cli.parser import (
    CommandGroup,
    add_json,
    add_place,
    add_posture,
    make_start_error,
    settings_from_arguments,
)
from mcp_server.model.text import escape_for_person
from mcp_server.views.text import explain_refusals

if TYPE_CHECKING:
    from mcp_server.app import App
    from mcp_server.calls.live_sessions import LiveSession
    from mcp_server.calls.request import CallRequest
    from mcp_server.model.results import Ending
    from mcp_server.model.sessions import Session
    from mcp_server.settings import Settings

EXAMPLES = """
menugate call fs_list_directory '{"path": "."}'     print the tool's text; exits 1 if it failed or was refused
menugate call Write @new-file.json                  read the arguments from a file
jq -n '{pattern: "TODO"}' | menugate call grep -    read the arguments from stdin
menugate call menu_enter '{"mode": "swe"}' --json   print the whole result, as a client gets it
"""
EXAMPLE = '{"path": "notes.md"}'
MAX_SHOWN_CHARS = 60


def add(commands: CommandGroup) -> None:
    command = commands.add("call", EXAMPLES, run)
    add_call(command)
    command.add_argument("--mode", metavar="MODE", help="the mode to call it in (default: a mode that has the tool)")
    add_place(command)
    add_posture(command)
    add_json(command, "print the whole result, as a client gets it")


def add_call(command: argparse.ArgumentParser) -> None:
    command.add_argument("tool", metavar="TOOL", help="the tool's name")
    command.add_argument(
        "arguments", nargs="?", metavar="JSON", help="its arguments as JSON, from @FILE, or from - for stdin"
    )


def run(arguments: argparse.Namespace) -> int:
    call_arguments = parse_call_arguments(arguments.arguments) or {}
    settings = settings_from_arguments(arguments)
    import asyncio

    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.cli.log import log_to_file
    from mcp_server.guards.own_memory import forbid_memory_reading
    from mcp_server.model.results import Problem, has_failed
    from mcp_server.settings import BuildError

    try:
        with explain_refusals(), log_to_file(settings.state / "call.log") as log:
            refuse_inside_server(settings)
            forbid_memory_reading()
            ending = asyncio.run(call_tool(settings, arguments, call_arguments))
    except BuildError as wrong:
        raise make_start_error(arguments, settings, wrong) from None
    if log.failure_summary:
        note(log.failure_summary)
    if arguments.json:
        from mcp_server.wire.translate import result_from_ending

        print_json(result_from_ending(ending))
    elif isinstance(ending, Problem):
        print(escape_for_person(ending.text), file=sys.stderr)
    else:
        say(ending.text)
        for line in describe_hidden_blocks(ending):
            note(line)
    return 1 if has_failed(ending) else 0


async def call_tool(settings: "Settings", arguments: argparse.Namespace, call_arguments: Mapping[str, Any]) -> "Ending":
    from mcp_server.compose import build_app

    app = build_app(settings, arguments.packs)
    async with app.open_for_use():
        live = app.core.sessions.open(settings.person, passing=True)
        await app.core.sessions.move(live, find_call_mode(app, arguments), "menugate call")
        with show_progress(arguments.tool) as print_progress:
            return await app.pipeline.run(build_call_request(app, live, arguments.tool, call_arguments, print_progress))


def find_call_mode(app: "App", arguments: argparse.Namespace) -> str | None:
    from mcp_server.cli.menus import find_mode_by_words

    menus = app.configuration.policy.menus
    if arguments.mode is not None:
        return find_mode_by_words(arguments.mode, menus).name
    modes = menus.find_modes_with(arguments.tool)
    return modes[0].name if modes else None


def build_call_request(
    app: "App", live: "LiveSession", tool: str, call_arguments: Mapping[str, Any], print_progress: ProgressPrinter
) -> "CallRequest":
    from mcp_server.calls.request import CallRequest
    from mcp_server.wire.caller import COMMAND, observe_surface

    async def ignore_move(_seat: "LiveSession", _before: "Session") -> None:
        """Do nothing: the command line keeps no tool list."""

    async def show_progress(done: float, /, total: float | None = None, message: str | None = None) -> None:
        print_progress(int(done), int(total or 0))

    return CallRequest(
        tool=tool,
        arguments=call_arguments,
        live=live,
        principal=app.settings.person,
        client=CommandLine(),
        progress=show_progress,
        transport=COMMAND,
        surface=observe_surface(COMMAND, terminal=is_at_terminal()),
        moved=ignore_move,
    )


def is_at_terminal() -> bool:
    """Whether a user is present. One stream may be a pipe, so any terminal among the three counts."""
    return any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


class CommandLine(Struct, frozen=True):
    """A client that answers no questions, because the command may run unattended."""

    name: str = "menugate call"
    carried: frozenset[str] = frozenset()

    def can(self, what: str) -> bool:
        return False

    def get_note(self, key: str) -> str:
        return ""

    async def request(self, key: str, method: str, params: Mapping[str, Any], note: str = "") -> NoReturn:
        from mcp_server.model.results import Code, Problem, Refusal

        message = "the command line cannot ask the user a question."
        raise Refusal(Problem(Code.TOOL_FAILED, message, "Call the tool through a host that can."))

    async def request_all(self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]) -> NoReturn:
        await self.request("", "", {})

    async def announce_change(self, what: str, uri: str = "") -> None:
        """Do nothing: the command line keeps no tool list."""

    async def end_elicitation(self, elicitation: str) -> None:
        """Do nothing: the command line opens no addresses."""

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        note(f"{level}: {data if isinstance(data, str) else json.dumps(data, default=str)}")


def describe_hidden_blocks(ending: "Ending") -> list[str]:
    """Describe the parts of the result that a terminal cannot show."""
    from mcp_server.model.results import Done, Picture, Relayed

    if isinstance(ending, Relayed):
        hidden = (block for block in ending.blocks if block.get("type") != "text")
        return [f"[a block of type {block.get('type', 'unknown')}; --json prints it]" for block in hidden]
    return [
        f"[an image, {block.media_type}, {len(block.data):,} bytes; --json prints it]"
        if isinstance(block, Picture)
        else f"[a block of type {block.block.get('type', 'unknown')}; --json prints it]"
        for block in (ending.blocks if isinstance(ending, Done) else ())
    ]


class AmbiguousCall(ValueError):
    """JSON that two programs would read differently."""


def parse_call_arguments(typed_json: str | None) -> dict[str, Any] | None:
    """Read the arguments of a call as typed; None if none were. Exit with 2 unless they are a JSON object."""
    if typed_json is None:
        return None
    text, place = read_text(typed_json)
    try:
        value = json.loads(text, object_pairs_hook=_parse_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as wrong:
        raise CliError(describe_json_fault(text, place, wrong), code=2) from None
    except AmbiguousCall as wrong:
        raise CliError(f"{place}: {wrong}.", code=2) from None
    except RecursionError:
        raise CliError(f"{place}: nested too deeply.", code=2) from None
    except ValueError:
        raise CliError(f"{place}: contains a number that is too long.", code=2) from None
    if not isinstance(value, dict):
        raise CliError(f"{place}: not a JSON object, such as '{EXAMPLE}'.", code=2)
    return cast(dict[str, Any], value)


def read_text(typed_json: str) -> tuple[str, str]:
    """Return the text, and what to call it in a message."""
    if typed_json != "-" and not typed_json.startswith("@"):
        return typed_json, "the arguments"
    try:
        data = sys.stdin.buffer.read() if typed_json == "-" else Path(typed_json[1:]).read_bytes()
    except OSError as wrong:
        raise CliError(f"`{typed_json[1:]}` cannot be read: {wrong.strerror}.", code=2) from None
    place = "stdin" if typed_json == "-" else f"`{typed_json[1:]}`"
    try:
        return data.decode("utf-8-sig"), place
    except UnicodeDecodeError as wrong:
        raise CliError(f"{place} is not UTF-8 text (byte {wrong.start + 1}).", code=2) from None


def describe_json_fault(text: str, place: str, wrong: json.JSONDecodeError) -> str:
    """Show the mistake with its line, and an arrow below the character."""
    lines, at = text.split("\n"), wrong.colno - 1
    line = lines[wrong.lineno - 1] if wrong.lineno <= len(lines) else ""
    start = max(0, at - MAX_SHOWN_CHARS // 2)
    # One sign for each, so that the mark below stands under the right one.
    shown = "".join(sign if sign.isprintable() else " " for sign in line[start : start + MAX_SHOWN_CHARS])
    where = f"{place}: not JSON at line {wrong.lineno}, column {wrong.colno}: {wrong.msg.lower()}"
    return f"{where}\n  {shown}\n  {' ' * (at - start)}^"


def _parse_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise AmbiguousCall(f"the key `{twice[:40]}` appears twice in one object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise AmbiguousCall(f"`{name}` is not JSON")
