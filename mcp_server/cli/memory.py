"""`menugate memory`: what is remembered about this project, and what should be forgotten?"""

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_server.cli.output import CliError, print_json, print_table, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_actions, add_json, add_place, settings_from_arguments
from mcp_server.model.memory import LONGEST, MemoryEntry, Tier
from mcp_server.model.text import format_count
from mcp_server.views.posture import open_state_reader
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.settings import Settings
    from mcp_server.state.engine.transaction import Transaction

T = TypeVar("T")
EXAMPLES = """
menugate memory list                         what successful runs left behind, and what you added
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
    shown = actions.add("list", LIST, run_list, "list what is remembered")
    shown.add_argument("--tier", choices=TIERS, help="only entries of this kind")
    show = actions.add("show", SHOW, run_show, "show one entry in full")
    show.add_argument("id", metavar="ID", help="the id of the entry")
    new = actions.add("add", ADD, run_add, "add an entry of your own")
    new.add_argument("text", metavar="TEXT", help=f"what to remember, up to {LONGEST:,} characters")
    new.add_argument("--tier", choices=("fact", "decision"), default="fact", help="what it is (default: fact)")
    gone = actions.add("forget", FORGET, run_forget, "delete entries for good")
    gone.add_argument("ids", metavar="ID", nargs="*", help="the ids of the entries")
    gone.add_argument("--all", action="store_true", help="everything remembered here")
    for action in (shown, show, new, gone):
        add_place(action)
    add_json(shown)
    add_json(show)


def load_entries(settings: "Settings") -> Sequence[MemoryEntry]:
    """Of every principal: the owner of the machine may see what is on it."""
    with open_state_reader(settings) as state:
        return state.load_memories() if state else ()


def run_list(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    found = [one for one in load_entries(settings) if arguments.tier in (None, str(one.tier))]
    if arguments.json:
        print_json([to_json(one) for one in found])
    elif not found:
        say_prose("Nothing is remembered yet. A successful run adds entries, and so does `menugate memory add`.")
    else:
        print_table([format_table_row(one, settings.person) for one in found], head=("id", "tier", "when", "what"))
    return 0


def format_table_row(one: MemoryEntry, reader: str) -> tuple[str, str, str, str]:
    whose = f"[{one.principal}] " if one.principal != reader else ""
    text = one.text if len(one.text) <= 100 else f"{one.text[:99]}…"
    return one.id, str(one.tier), format_time(one.at), f"{whose}{text}"


def to_json(one: MemoryEntry) -> dict[str, Any]:
    return {
        "id": one.id,
        "tier": one.tier,
        "at": format_time(one.at),
        "text": one.text,
        "by": one.by,
        "principal": one.principal,
        "session": one.session or None,
        "run": one.run or None,
    }


def run_show(arguments: argparse.Namespace) -> int:
    one = find_entry(load_entries(settings_from_arguments(arguments)), arguments.id)
    if arguments.json:
        print_json(to_json(one))
        return 0
    say((f"{one.tier} {one.id}", "bold"), f"  {format_time(one.at)}")
    source = "you" if one.by == "person" else f"run {one.run} of session {one.session}"
    print_table([("  from", source), ("  principal", one.principal)])
    say(f"\n{one.text}")
    return 0


def find_entry(every: Sequence[MemoryEntry], id: str) -> MemoryEntry:
    found = next((one for one in every if one.id == id), None)
    if found is None:
        raise CliError(f"nothing is remembered under `{id}`; `menugate memory list` shows the ids.")
    return found


def run_add(arguments: argparse.Namespace) -> int:
    from functools import partial

    from mcp_server.calls.documents import new_id
    from mcp_server.calls.memory import shorten_to_line
    from mcp_server.config.folders import prepare_folders
    from mcp_server.guards.redaction import Redactor
    from mcp_server.state.memory import NewMemory, remember_entries

    settings = settings_from_arguments(arguments)
    text = " ".join(Redactor(settings.secret_values).redact(arguments.text).split())
    if not text:
        raise CliError("the text is empty; write what to remember, in quotes.", code=2)
    if text != shorten_to_line(text, LONGEST):
        raise CliError(f"an entry may have {LONGEST:,} characters, and this one has {len(text):,}; shorten it.", code=2)
    prepare_folders(settings)
    learned = NewMemory(settings.person, [(Tier(arguments.tier), text)], "person")
    (one,) = change_memory(settings, partial(remember_entries, memory=learned, new_id=new_id))
    say(f"Remembered as {one.tier} {one.id}.")
    return 0


def run_forget(arguments: argparse.Namespace) -> int:
    from mcp_server.state.memory import forget_entry

    settings = settings_from_arguments(arguments)
    if bool(arguments.ids) == arguments.all:
        raise CliError("name the entries to forget, or add --all.", code=2)
    every = load_entries(settings)
    wanted = list(every) if arguments.all else [find_entry(every, id) for id in dict.fromkeys(arguments.ids)]

    def forget(tx: "Transaction") -> None:
        for one in wanted:
            forget_entry(tx, one)

    if wanted:
        change_memory(settings, forget)
    say(f"Forgot {format_count(len(wanted), 'entry', 'entries')}.")
    return 0


def change_memory(settings: "Settings", change: "Callable[[Transaction], T]") -> T:
    """Run the change and return its result once it is on disk."""
    from mcp_server.calls.terminal import change_as_person
    from mcp_server.model.results import Refusal

    try:
        return change_as_person(settings, change)
    except Refusal as refused:
        raise CliError(f"{refused.problem.message} {refused.problem.way_out}") from None
