"""`menugate memory`: what is remembered about this project? Add entries, or forget them."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, print_json, print_table, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_actions, add_json, add_place, settings_from_arguments
from mcp_server.model.memory import LONGEST, MemoryEntry, Tier
from mcp_server.model.text import format_count
from mcp_server.views.posture import open_state_reader
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.settings import Settings
    from mcp_server.state.engine.transaction import Transaction

EXAMPLES = """
menugate memory                              what successful runs recorded, and what you added
menugate memory show 3f9a01bc                one entry in full, with the run it came from
menugate memory add --tier decision "SQLite, because one file is easy to move"
menugate memory forget 3f9a01bc              delete an entry for good
"""
LIST = """
menugate memory list                    everything, newest last
menugate memory list --tier decision    only decisions
menugate memory list --json             for a program
"""
SHOW = """
menugate memory show 3f9a01bc           everything about one entry
menugate memory show 3f9a01bc --json    for a program
"""
ADD = """
menugate memory add "Tests run with make test"                        a fact
menugate memory add --tier decision "No ORM: queries stay readable"   a decision
"""
FORGET = """
menugate memory forget 3f9a01bc             one entry, by the id in `menugate memory list`
menugate memory forget 3f9a01bc 77aa01ff    two entries
menugate memory forget --all                everything remembered here
"""
TIERS = tuple(map(str, Tier))


def add(commands: CommandGroup) -> None:
    actions = add_actions(commands.add("memory", EXAMPLES, None))
    list_action = actions.add("list", LIST, run_list, "list what is remembered")
    list_action.add_argument("--tier", choices=TIERS, help="only entries of this kind")
    show_action = actions.add("show", SHOW, run_show, "show one entry in full")
    show_action.add_argument("id", metavar="ID", help="the id of the entry")
    add_action = actions.add("add", ADD, run_add, "add an entry of your own")
    add_action.add_argument("text", metavar="TEXT", help=f"what to remember, up to {LONGEST:,} characters")
    add_action.add_argument(
        "--tier", choices=("fact", "decision"), default="fact", help="the kind of entry (default: fact)"
    )
    forget_action = actions.add("forget", FORGET, run_forget, "delete entries for good")
    forget_action.add_argument("ids", metavar="ID", nargs="*", help="the ids of the entries")
    forget_action.add_argument("--all", action="store_true", help="forget everything")
    for action in (list_action, show_action, add_action, forget_action):
        add_place(action)
    add_json(list_action)
    add_json(show_action)


def load_entries(settings: "Settings") -> Sequence[MemoryEntry]:
    """Load the entries of every principal: the owner of the machine may see everything on it."""
    with open_state_reader(settings) as state:
        return state.load_memories() if state else ()


def run_list(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    entries = [entry for entry in load_entries(settings) if arguments.tier in (None, str(entry.tier))]
    if arguments.json:
        print_json([to_json(entry) for entry in entries])
    elif not entries:
        say_prose("Nothing is remembered yet. A successful run adds entries, and so does `menugate memory add`.")
    else:
        print_table(
            [format_table_row(entry, settings.person) for entry in entries], head=("id", "tier", "when", "what")
        )
    return 0


def format_table_row(entry: MemoryEntry, reader: str) -> tuple[str, str, str, str]:
    owner = f"[{entry.principal}] " if entry.principal != reader else ""
    text = entry.text if len(entry.text) <= 100 else f"{entry.text[:99]}…"
    return entry.id, str(entry.tier), format_time(entry.at), f"{owner}{text}"


def to_json(entry: MemoryEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "tier": entry.tier,
        "at": format_time(entry.at),
        "text": entry.text,
        "by": entry.by,
        "principal": entry.principal,
        "session": entry.session or None,
        "run": entry.run or None,
    }


def run_show(arguments: argparse.Namespace) -> int:
    entry = find_entry(load_entries(settings_from_arguments(arguments)), arguments.id)
    if arguments.json:
        print_json(to_json(entry))
        return 0
    say((f"{entry.tier} {entry.id}", "bold"), f"  {format_time(entry.at)}")
    source = "you" if entry.by == "person" else f"run {entry.run} of session {entry.session}"
    print_table([("  from", source), ("  principal", entry.principal)])
    say(f"\n{entry.text}")
    return 0


def find_entry(entries: Sequence[MemoryEntry], id: str) -> MemoryEntry:
    match = next((entry for entry in entries if entry.id == id), None)
    if match is None:
        raise CliError(f"no entry has the id `{id}`; `menugate memory list` shows the ids.")
    return match


def run_add(arguments: argparse.Namespace) -> int:
    from functools import partial

    from mcp_server.calls.documents import new_id
    from mcp_server.calls.memory import shorten_to_line
    from mcp_server.calls.secrets import load_secret_values
    from mcp_server.calls.terminal import change_as_person
    from mcp_server.config.folders import prepare_folders
    from mcp_server.guards.redaction import Redactor
    from mcp_server.state.memory import NewMemory, remember_entries

    settings = settings_from_arguments(arguments)
    text = " ".join(Redactor(load_secret_values(settings)).redact(arguments.text).split())
    if not text:
        raise CliError("the text is empty; write what to remember, in quotes.", code=2)
    if text != shorten_to_line(text, LONGEST):
        raise CliError(
            f"an entry may have at most {LONGEST:,} characters, and this one has {len(text):,}; shorten it.", code=2
        )
    prepare_folders(settings)
    new_memory = NewMemory(settings.person, [(Tier(arguments.tier), text)], "person")
    (entry,) = change_as_person(settings, partial(remember_entries, memory=new_memory, new_id=new_id))
    say(f"Remembered as {entry.tier} {entry.id}.")
    return 0


def run_forget(arguments: argparse.Namespace) -> int:
    from mcp_server.calls.terminal import change_as_person
    from mcp_server.state.memory import forget_entry

    settings = settings_from_arguments(arguments)
    if bool(arguments.ids) == arguments.all:
        raise CliError("name the entries to forget, or add --all.", code=2)
    entries = load_entries(settings)
    chosen_entries = (
        list(entries) if arguments.all else [find_entry(entries, id) for id in dict.fromkeys(arguments.ids)]
    )

    def forget(tx: "Transaction") -> None:
        for entry in chosen_entries:
            forget_entry(tx, entry)

    if chosen_entries:
        change_as_person(settings, forget)
    say(f"Forgot {format_count(len(chosen_entries), 'entry', 'entries')}.")
    return 0
