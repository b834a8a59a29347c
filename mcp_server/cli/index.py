"""`menugate index`: is the index of this project's files up to date, and what does it find?"""

import argparse
import time
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, print_json, print_table, say, show_progress
from mcp_server.cli.parser import CommandGroup, MixedParser, add_json, add_place, settings_from_arguments

if TYPE_CHECKING:
    from mcp_server.guards.index.index import WorkspaceIndex
    from mcp_server.model.index import Freshness
    from mcp_server.settings import Settings

EXAMPLES = """
menugate index build                        read what changed since the last time, to the end; Ctrl-C keeps what is done
menugate index build --anew                 throw it away and read everything
menugate index find "retry backoff"         what `index_search` would show
menugate index symbols Store.open           what `index_symbols` would show
"""
BUILD = """
menugate index build             before a first run in a large project, so that no call has to wait for it
menugate index build --anew      where you doubt it
menugate index build --json      for a program
"""
FIND = """
menugate index find "parse request"              files that hold both words, the best lines first
menugate index find '"def main"' --limit 5       a phrase, as it stands on a line
"""
SYMBOLS = """
menugate index symbols Store            everything whose name holds it
menugate index symbols Store.open       one method of one class
"""
SLICE = 0.2


def add(commands: CommandGroup) -> None:
    one = commands.add("index", "make and ask the index of this project's words and symbols", EXAMPLES, None)
    deeds = CommandGroup(
        one.add_subparsers(title="what to do", metavar="DEED", required=True, parser_class=MixedParser).add_parser
    )
    build = deeds.add("build", "bring the index up to date, whole", BUILD, run_build)
    build.add_argument("--anew", action="store_true", help="throw away what is known and read everything")
    find = deeds.add("find", "find lines by words", FIND, run_find)
    symbols = deeds.add("symbols", "find definitions by name", SYMBOLS, run_symbols)
    for deed in (find, symbols):
        deed.add_argument("query", metavar="QUERY", help="what to look for")
        deed.add_argument("--limit", type=int, default=20, metavar="N", help="at most so many (default: 20)")
    for deed in (build, find, symbols):
        add_place(deed)
        add_json(deed)


def open_index(settings: "Settings") -> "WorkspaceIndex":
    from mcp_server.compose import prepare_folders
    from mcp_server.guards.index.index import WorkspaceIndex
    from mcp_server.guards.jail import Jail

    prepare_folders(settings)
    return WorkspaceIndex(
        Jail(settings.workspace, private=settings.protected_inside_workspace), settings.index, time.time_ns
    )


def refresh_index(index: "WorkspaceIndex") -> "Freshness":
    """To the end, however long that takes; Ctrl-C leaves what was read by then."""
    mark = index.get_refresh_mark()
    with show_progress("files looked at") as told:
        while not (now := index.refresh(mark, SLICE)).complete:
            told(now.looked)
    return now


def run_build(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    index = open_index(settings)
    if arguments.anew:
        index.discard()
    now = refresh_index(index)
    size = settings.index.stat().st_size
    if arguments.json:
        print_json({"files": now.files, "read": now.read, "left_out": dict(now.left_out), "bytes": size})
        return 0
    rows = [("files", f"{now.files:,} in the index, {now.read:,} read just now"), ("size", f"{size / 1e6:,.1f} MB")]
    print_table([*rows, *(("left out", f"{count:,} {why}") for why, count in sorted(now.left_out.items()))])
    return 0


def run_find(arguments: argparse.Namespace) -> int:
    from mcp_server.model.index import IndexRequest

    index = open_index(settings_from_arguments(arguments))
    found = ask_index(
        lambda: (refresh_index(index), index.search(IndexRequest(arguments.query, limit=arguments.limit)))[1]
    )
    if arguments.json:
        rows = [{"path": hit.path, "line": hit.line, "text": hit.text, "score": hit.score} for hit in found.shown]
        print_json({"total": found.total, "files": found.files, "complete": found.complete, "lines": rows})
        return 0
    for hit in found.shown:
        say((f"{hit.path}:{hit.line}", "cyan"), f": {hit.text}")
    say((f"{found.total:,} lines in {found.files:,} files.", "dim"))
    return 0 if found.total else 1


def run_symbols(arguments: argparse.Namespace) -> int:
    from dataclasses import asdict

    from mcp_server.model.index import IndexRequest

    index = open_index(settings_from_arguments(arguments))
    found = ask_index(
        lambda: (refresh_index(index), index.find_symbols(IndexRequest(arguments.query, limit=arguments.limit)))[1]
    )
    if arguments.json:
        print_json({"total": found.total, "complete": found.complete, "symbols": [asdict(one) for one in found.shown]})
        return 0
    for one in found.shown:
        say((f"{one.path}:{one.line}", "cyan"), f": {one.kind} {one.full_name}")
    say((f"{found.total:,} definitions.", "dim"))
    return 0 if found.total else 1


def ask_index(question: Any) -> Any:
    from mcp_server.model.results import Refusal

    try:
        return question()
    except Refusal as refused:
        raise CliError(f"{refused.problem.message} {refused.problem.way_out}") from None
