"""`menugate index`: bring the index of this project up to date, and search it."""

import argparse
import time
from typing import TYPE_CHECKING

from mcp_server.cli.ledger import parse_whole_number
from mcp_server.cli.output import print_json, print_table, say, show_progress
from mcp_server.cli.parser import CommandGroup, add_actions, add_json, add_place, settings_from_arguments
from mcp_server.model.text import format_count

if TYPE_CHECKING:
    from mcp_server.guards.index.index import WorkspaceIndex
    from mcp_server.model.index import Freshness
    from mcp_server.settings import Settings

EXAMPLES = """
menugate index build                   index what changed since last time; Ctrl-C keeps the work done so far
menugate index build --anew            delete it and read everything again
menugate index find "retry backoff"    what `index_search` would find
menugate index symbols Store.open      what `index_symbols` would find
"""
BUILD = """
menugate index build           before the first run in a large project, so that no call has to wait
menugate index build --anew    build it from scratch, if you do not trust it
menugate index build --json    for a program
"""
FIND = """
menugate index find "parse request"         files that contain both words, best lines first
menugate index find '"def main"' --limit 5  an exact phrase
"""
SYMBOLS = """
menugate index symbols Store         every definition whose name contains this
menugate index symbols Store.open    one method of one class
"""
SLICE = 0.2


def add(commands: CommandGroup) -> None:
    actions = add_actions(commands.add("index", EXAMPLES, None))
    build_action = actions.add("build", BUILD, run_build, "bring the index up to date")
    build_action.add_argument("--anew", action="store_true", help="delete the index first and read everything")
    find_action = actions.add("find", FIND, run_find, "find lines by their words")
    symbols_action = actions.add("symbols", SYMBOLS, run_symbols, "find definitions by name")
    for action in (find_action, symbols_action):
        action.add_argument("query", metavar="QUERY", help="what to look for")
        action.add_argument(
            "--limit", type=parse_whole_number, default=20, metavar="N", help="the most results to show (default: 20)"
        )
    for action in (build_action, find_action, symbols_action):
        add_place(action)
        add_json(action)


def open_index(settings: "Settings") -> "WorkspaceIndex":
    from mcp_server.config.folders import prepare_folders
    from mcp_server.guards.index.index import WorkspaceIndex
    from mcp_server.guards.jail import Jail

    prepare_folders(settings)
    return WorkspaceIndex(
        Jail(settings.workspace, private=settings.protected_inside_workspace), settings.index, time.time_ns
    )


def refresh_index(index: "WorkspaceIndex") -> "Freshness":
    """Read everything that changed, however long it takes; Ctrl-C keeps what was read so far."""
    mark = index.get_refresh_mark()
    with show_progress("files checked") as print_progress:
        while not (freshness := index.refresh(mark, SLICE)).complete:
            print_progress(freshness.looked)
    return freshness


def run_build(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    index = open_index(settings)
    if arguments.anew:
        index.discard()
    freshness = refresh_index(index)
    size = settings.index.stat().st_size
    if arguments.json:
        print_json(
            {"files": freshness.files, "read": freshness.read, "left_out": dict(freshness.left_out), "bytes": size}
        )
        return 0
    rows = [
        ("files", f"{freshness.files:,} in the index, {freshness.read:,} read now"),
        ("size", f"{size / 1e6:,.1f} MB"),
    ]
    print_table([*rows, *(("left out", f"{count:,} {why}") for why, count in sorted(freshness.left_out.items()))])
    return 0


def run_find(arguments: argparse.Namespace) -> int:
    from mcp_server.model.index import IndexRequest

    index = open_index(settings_from_arguments(arguments))
    refresh_index(index)
    hits = index.search(IndexRequest(arguments.query, limit=arguments.limit))
    if arguments.json:
        rows = [{"path": hit.path, "line": hit.line, "text": hit.text, "score": hit.score} for hit in hits.shown]
        print_json({"total": hits.total, "files": hits.files, "complete": hits.complete, "lines": rows})
        return 0
    for hit in hits.shown:
        say((f"{hit.path}:{hit.line}", "cyan"), f": {hit.text}")
    say((f"{format_count(hits.total, 'line')} in {format_count(hits.files, 'file')}.", "dim"))
    return 0 if hits.total else 1


def run_symbols(arguments: argparse.Namespace) -> int:
    from mcp_server.model.index import IndexRequest
    from mcp_server.model.parts import asdict

    index = open_index(settings_from_arguments(arguments))
    refresh_index(index)
    symbols = index.find_symbols(IndexRequest(arguments.query, limit=arguments.limit))
    if arguments.json:
        print_json(
            {
                "total": symbols.total,
                "complete": symbols.complete,
                "symbols": [asdict(symbol) for symbol in symbols.shown],
            }
        )
        return 0
    for symbol in symbols.shown:
        say((f"{symbol.path}:{symbol.line}", "cyan"), f": {symbol.kind} {symbol.full_name}")
    say((f"{format_count(symbols.total, 'definition')}.", "dim"))
    return 0 if symbols.total else 1
