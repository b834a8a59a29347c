"""`menugate secret`: which secrets are stored for servers and web sites? Store them, or remove them."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, note, print_json, print_table, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_actions, add_json, add_place, settings_from_arguments
from mcp_server.model.secrets import (
    MAX_ORIGINS,
    MAX_VALUE_BYTES,
    SecretEntry,
    SecretPlace,
    find_name_fault,
    find_value_fault,
    parse_origin,
)
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.settings import Settings
    from mcp_server.state.secrets import SecretStore

EXAMPLES = """
menugate secret set GITHUB_TOKEN       asks for the value, without showing it
menugate secret                        names, where each may be used, and its last use; never values
menugate secret remove GITHUB_TOKEN    delete it
"""
SET = """
menugate secret set GITHUB_TOKEN                          asks for the value, without showing it
menugate secret set GITHUB_TOKEN < token.txt              reads the value from a file or another program
menugate secret set SHOP --for https://shop.example.org   may be typed into this web site
menugate secret set DB_PASSWORD --here                    only for servers of this folder
"""
LIST = """
menugate secret list           what is stored for this account
menugate secret list --json    for a program
"""
REMOVE = """
menugate secret remove GITHUB_TOKEN         delete it
menugate secret remove DB_PASSWORD --here   delete the one for this folder
"""
PLACES = {SecretPlace.KEYRING: "system keyring", SecretPlace.FILE: "private file"}
HERE = "only for this folder; it comes before one for all folders"


def add(commands: CommandGroup) -> None:
    actions = add_actions(commands.add("secret", EXAMPLES, None))
    set_action = actions.add("set", SET, run_set, "store a secret, or replace it")
    list_action = actions.add("list", LIST, run_list, "list the stored secrets, without values")
    remove_action = actions.add("remove", REMOVE, run_remove, "delete a secret")
    for action in (set_action, remove_action):
        action.add_argument("name", metavar="NAME", help="the NAME in ${secret:NAME}")
        action.add_argument("--here", action="store_true", help=HERE)
    set_action.add_argument(
        "--for",
        dest="origins",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="a web site that it may be typed into, such as https://example.org; repeat for more",
    )
    for action in (set_action, list_action, remove_action):
        add_place(action)
    add_json(list_action)


def run_set(arguments: argparse.Namespace) -> int:
    if fault := find_name_fault(arguments.name):
        raise CliError(fault, code=2)
    origins = parse_origins(arguments.origins)
    settings = settings_from_arguments(arguments)
    store = open_store_to_change(settings)
    value = read_value(arguments.name)
    if fault := find_value_fault(value):
        raise CliError(f"{fault} Nothing was stored.")
    entry = store.put(arguments.name, value, str(settings.workspace) if arguments.here else "", origins)
    say(f"Stored {entry.name} for {describe_scope(entry)}.")
    if entry.place is SecretPlace.FILE:
        note(
            f"It is in a file that only this account can read, in {store.folder}: the system keyring cannot be used, "
            f"because {store.keyring_fault}."
        )
    if settings.keys_last:
        note(f"It lasts {settings.keys_last}.")
    return 0


def parse_origins(texts: Sequence[str]) -> tuple[str, ...]:
    try:
        origins = tuple(dict.fromkeys(map(parse_origin, texts)))
    except ValueError as wrong:
        raise CliError(f"--for: {wrong}", code=2) from None
    if len(origins) > MAX_ORIGINS:
        raise CliError(f"a secret may be for at most {MAX_ORIGINS} web sites.", code=2)
    return origins


def open_store_to_change(settings: "Settings") -> "SecretStore":
    """Open the store for you, and refuse a program that a server started."""
    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.config.secrets import open_secret_store
    from mcp_server.guards.own_memory import forbid_memory_reading
    from mcp_server.model.results import Refusal
    from mcp_server.state.account import NO_KEY_FOLDER

    refuse_inside_server(settings)
    store = open_secret_store(settings)
    if store is None:
        raise Refusal(NO_KEY_FOLDER)
    forbid_memory_reading()
    return store


def read_value(name: str) -> str:
    """Ask for the value without showing it; from a pipe or file, read it."""
    if sys.stdin is None or sys.stdin.closed:
        raise CliError("there is no input to read the value from.")
    if sys.stdin.isatty():
        return ask_for_value(name)
    data = sys.stdin.buffer.read(MAX_VALUE_BYTES + 3)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise CliError("the value is not UTF-8 text. Nothing was stored.") from None
    return text.removesuffix("\n").removesuffix("\r")


def ask_for_value(name: str) -> str:
    import getpass
    import warnings

    with warnings.catch_warnings():
        # It would go on with a visible value.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(f"Value of {name} (not shown): ")
        except getpass.GetPassWarning:
            raise CliError("this terminal would show the value; pipe it in instead. Nothing was stored.") from None
        except EOFError:
            raise CliError("no value was typed. Nothing was stored.") from None


def run_list(arguments: argparse.Namespace) -> int:
    from mcp_server.config.secrets import open_secret_store

    store = open_secret_store(settings_from_arguments(arguments))
    entries, faults = store.list_entries() if store else ([], [])
    if arguments.json:
        print_json([to_json(entry) for entry in entries])
    elif not entries:
        say_prose("No secrets are stored; `menugate secret set NAME` stores one.")
    else:
        head = ("name", "for", "web sites", "kept in", "changed", "last used")
        print_table([format_table_row(entry) for entry in entries], head=head)
    for fault in faults:
        note(fault)
    return 1 if faults else 0


def format_table_row(entry: SecretEntry) -> tuple[str, ...]:
    used = f"{format_time(entry.used)} by {entry.used_by}" if entry.used else "never"
    sites = ", ".join(entry.origins) or "none"
    return entry.name, describe_scope(entry), sites, PLACES[entry.place], format_time(entry.changed), used


def describe_scope(entry: SecretEntry) -> str:
    return entry.workspace or "all folders"


def to_json(entry: SecretEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "workspace": entry.workspace or None,
        "origins": list(entry.origins),
        "place": entry.place,
        "created": format_time(entry.created),
        "changed": format_time(entry.changed),
        "used": format_time(entry.used) if entry.used else None,
        "used_by": entry.used_by or None,
    }


def run_remove(arguments: argparse.Namespace) -> int:
    if fault := find_name_fault(arguments.name):
        raise CliError(fault, code=2)
    settings = settings_from_arguments(arguments)
    store = open_store_to_change(settings)
    workspace = str(settings.workspace) if arguments.here else ""
    if not store.remove(arguments.name, workspace):
        raise CliError(describe_unknown(store, arguments.name, workspace))
    say(f"Removed {arguments.name}. Servers that are running keep the value until they restart.")
    return 0


def describe_unknown(store: "SecretStore", name: str, workspace: str) -> str:
    from mcp_server.model.text import find_nearest_name

    entries, _ = store.list_entries()
    if elsewhere := next((entry for entry in entries if entry.name == name), None):
        here = "for this folder" if workspace else "for all folders"
        hint = "leave out `--here`" if workspace else f"add `--here` in {elsewhere.workspace}"
        return f"there is no secret {name} {here}, but one for {describe_scope(elsewhere)}; {hint}."
    near = find_nearest_name(name, [entry.name for entry in entries])
    return f"there is no secret {name}; " + (f"did you mean `{near}`?" if near else "see `menugate secret list`.")


@dataclass
class SecretValues:
    """The secrets there are, and those that are about to be stored."""

    store: "SecretStore"
    workspace: str
    new: Mapping[str, str]

    def is_free(self, name: str, value: str) -> bool:
        from mcp_server.model.results import Refusal

        if name in self.new:
            return self.new[name] == value
        if all(entry.name != name for entry in self.store.list_entries()[0]):
            return True
        try:
            return self.store.find_value(name, self.workspace) == value
        except Refusal:
            return False


def find_secret_fault(name: str, value: str) -> str:
    return find_name_fault(name) or find_value_fault(value)
