"""`menugate upstreams test` and `logs`: does a server work, and what did it say?"""

import argparse
import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, note, print_json, print_table, say, say_foreign
from mcp_server.cli.parser import CommandGroup, add_json, add_place, load_valid_configuration, settings_from_arguments
from mcp_server.cli.upstream_approval import build_redactor, count_tool_tokens, find_mount, read_catalogue
from mcp_server.cli.upstream_packages import fetch_missing
from mcp_server.views.text import explain_refusals

if TYPE_CHECKING:
    from mcp_server.model.upstreams import Catalogue

TEST = """
menugate upstreams test github           start or call it, list what it offers, and end it
menugate upstreams test github --json    for a program
"""
LOGS = """
menugate upstreams logs github          the last lines that it wrote to its stderr
menugate upstreams logs github -n 200   more of them
"""
LINES = 40


def add_looks(actions: CommandGroup) -> None:
    test = actions.add("test", TEST, run_test, "start or call a server once, and say how long it takes")
    logs = actions.add("logs", LOGS, run_logs, "show what a server wrote to its stderr")
    for action in (test, logs):
        action.add_argument("name", metavar="NAME", help="the server's name under `mcpServers`")
        add_place(action)
    add_json(test)
    logs.add_argument("-n", type=int, default=LINES, metavar="LINES", help=f"how many lines (default: {LINES})")


def run_test(arguments: argparse.Namespace) -> int:
    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.guards.own_memory import forbid_memory_reading

    settings = settings_from_arguments(arguments)
    with explain_refusals():
        refuse_inside_server(settings)  # first: a program must not start servers for you
    configuration = load_valid_configuration(arguments, settings)
    mount = find_mount(configuration, arguments.name)
    if mount.disabled:
        raise CliError(f"{mount.name} is disabled; `menugate upstreams enable {mount.name}` enables it.")
    forbid_memory_reading()
    mount = fetch_missing(configuration, settings, mount)
    began = time.monotonic()
    with explain_refusals():
        catalogue = asyncio.run(read_catalogue(configuration, settings, mount))
    facts = collect_facts(catalogue, time.monotonic() - began)
    redactor = build_redactor(configuration, settings)
    if arguments.json:
        print_json(redactor.redact_value({"name": mount.name, **facts}))
        return 0
    say((mount.name, "bold"), "  ", ("works", "green"))
    texts = {key: f"{value:,}" if type(value) is int else str(value) for key, value in facts.items()}
    print_table([(f"  {key}", redactor.redact(value)) for key, value in texts.items()])
    note("It was ended again. `menugate upstreams show` says what of it is in force.")
    return 0


def collect_facts(catalogue: "Catalogue", seconds: float) -> dict[str, Any]:
    server = catalogue.server
    return {
        "is": f"{server.get('name', '')} {server.get('version', '')}".strip() or "unknown",
        "speaks": catalogue.protocol or "unknown",
        "seconds": round(seconds, 2),
        "tools": len(catalogue.tools),
        "prompts": len(catalogue.prompts),
        "resources": len(catalogue.resources) + len(catalogue.templates),
        "tokens": sum(map(count_tool_tokens, catalogue.tools)),
    }


def run_logs(arguments: argparse.Namespace) -> int:
    from mcp_server.state.upstream_catalogues import FOLDER

    settings = settings_from_arguments(arguments)
    configuration = load_valid_configuration(arguments, settings)
    mount = find_mount(configuration, arguments.name)
    path = settings.state / FOLDER / f"{mount.slug}.log"
    lines = deque[str](maxlen=max(arguments.n, 1))
    for part in (path.with_suffix(".log.1"), path):
        if part.is_file() and not part.is_symlink():
            lines.extend(part.read_text("utf-8", "replace").splitlines())
    if not lines:
        note(f"{mount.name} has written nothing to its stderr yet.")
        return 0
    redactor = build_redactor(configuration, settings)
    for line in lines:
        say_foreign(redactor.redact(line), "", "")
    return 0
