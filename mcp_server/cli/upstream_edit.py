"""`menugate upstreams add`, `disable`, `enable` and `remove`: which servers does your menugate.yaml name?"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, ask_at_terminal, note, say, say_foreign, say_prose
from mcp_server.cli.parser import CommandGroup, add_place, settings_from_arguments
from mcp_server.model.text import find_nearest_name, format_list
from mcp_server.views.text import explain_refusals

if TYPE_CHECKING:
    from mcp_server.config.faults import ConfigFaults
    from mcp_server.config.load import Configuration
    from mcp_server.config.operator_file import OperatorFile
    from mcp_server.config.upstream_import import ServerFile
    from mcp_server.settings import Settings
    from mcp_server.state.secrets import SecretStore

ADD = """
menugate upstreams add time -- uvx mcp-server-time@2026.10.19   a server that menugate starts
menugate upstreams add issues --url http://127.0.0.1:8808/mcp   one that is already running
menugate upstreams add git --env HOME=/srv -- git-mcp           with a variable
menugate upstreams add time --sandbox -- uvx mcp-server-time    in the narrowest sandbox in which it starts
menugate upstreams add --from ~/.claude.json                    what is in a host's file
menugate upstreams add --from .mcp.json github time             add these two of it
"""
DISABLE = """
menugate upstreams disable github   keep its entry, and never start or connect it
"""
ENABLE = """
menugate upstreams enable github   use it again
"""
REMOVE = """
menugate upstreams remove github   take its entry out of menugate.yaml, and withdraw your approval
"""
WORD = "add"
NOTHING = "Nothing was written."


def add_edits(actions: CommandGroup) -> None:
    add = actions.add("add", ADD, run_add, "add a server to your menugate.yaml; starts nothing without --sandbox")
    add.add_argument("name", nargs="?", metavar="NAME", help="what you call it")
    add.add_argument("program", nargs="*", metavar="COMMAND", help="after `--`: the program to start, with arguments")
    add.add_argument("--url", metavar="URL", help="the address of a server that is already running")
    add.add_argument("--from", dest="file", metavar="FILE", help="a host's file; NAMEs are those to add from it")
    add.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a variable; repeat for more")
    add.add_argument("--header", action="append", default=[], metavar="NAME=VALUE", help="a header; repeat for more")
    add.add_argument("--sandbox", action="store_true", help="start it in a sandbox, and write down what works")
    add.add_argument("--network", action="append", default=[], metavar="HOST", help="a host that it reaches from there")
    add.add_argument("--here", action="store_true", help="for this workspace only; so is what is in its own files")
    add.add_argument("--replace", action="store_true", help="in place of a server of that name")
    add.add_argument("--yes", action="store_true", help="do not ask before adding servers from a file")
    add_place(add)
    for name, examples, run, what in (
        ("disable", DISABLE, run_disable, "keep a server's entry, and never start or connect it"),
        ("enable", ENABLE, run_enable, "use a disabled server again"),
        ("remove", REMOVE, run_remove, "take a server out of your menugate.yaml"),
    ):
        action = actions.add(name, examples, run, what)
        action.add_argument("name", metavar="NAME", help="the server's name under `mcpServers`")
        add_place(action)


@dataclass
class OperatorEdit:
    """The operator's file, read to be changed."""

    arguments: argparse.Namespace
    settings: "Settings"
    file: "OperatorFile"
    text: str

    @classmethod
    def open(cls, arguments: argparse.Namespace) -> "OperatorEdit":
        from mcp_server.calls.terminal import refuse_inside_server
        from mcp_server.config.operator_file import UnusableFile, read_operator_file
        from mcp_server.guards.own_memory import forbid_memory_reading
        from mcp_server.settings import OPERATORS_FILE

        settings = settings_from_arguments(arguments)
        with explain_refusals():
            refuse_inside_server(settings)
        forbid_memory_reading()
        try:
            file = read_operator_file(settings.config or settings.operators / OPERATORS_FILE)
        except UnusableFile as why:
            raise CliError(f"{why}. {NOTHING}") from None
        return cls(arguments, settings, file, file.text)

    @property
    def workspace(self) -> str:
        return str(self.settings.workspace)

    def find_section(self, name: str) -> str | None:
        from mcp_server.config.upstream_edit import find_workspace_section

        return find_workspace_section(self.text, name, self.workspace)

    def find_entry(self, name: str) -> Any:
        from mcp_server.config.upstream_edit import read_entry

        return read_entry(self.text, name, self.find_section(name))

    def load(self, text: str) -> "Configuration | ConfigFaults":
        """Load the configuration as servers will."""
        from msgspec.structs import replace

        from mcp_server.config.load import load_configuration

        settings = replace(self.settings, config=self.file.path)
        return load_configuration(settings, getattr(self.arguments, "packs", ()), texts={self.file.path: text})

    def check(self, text: str, names: "list[str]") -> "Configuration":
        """Load the configuration, and raise if these servers would have a fault."""
        from mcp_server.config.faults import ConfigFaults

        trial = self.load(text)
        if isinstance(trial, ConfigFaults):
            faults = [str(one) for one in trial.faults]
        else:
            upstreams = trial.library.config.upstreams
            faults = [str(one) for one in upstreams.faults if one.server in names] if upstreams else []
        if faults or isinstance(trial, ConfigFaults):
            raise CliError("\n".join([f"{NOTHING} The file would have a fault:", *faults]))
        return trial

    def write(self, text: str) -> None:
        from mcp_server.config.operator_file import UnusableFile, replace_operator_file

        try:
            replace_operator_file(self.file, text)
        except UnusableFile as why:
            raise CliError(f"{why}. {NOTHING}") from None


def run_add(arguments: argparse.Namespace) -> int:
    from mcp_server.cli.upstream_sandbox import find_sandbox

    if arguments.file is not None:
        return run_add_from(arguments)
    if arguments.name is None or bool(arguments.program) == bool(arguments.url):
        raise CliError("write a NAME, and either `-- COMMAND…` or `--url URL`; or `--from FILE`.", code=2)
    entry: dict[str, Any] = {"url": arguments.url} if arguments.url else {"command": arguments.program[0]}
    if len(arguments.program) > 1:
        entry["args"] = arguments.program[1:]
    for key, pairs in (("env", arguments.env), ("headers", arguments.header)):
        if pairs:
            entry[key] = dict(split_pair(pair) for pair in pairs)
    edit = OperatorEdit.open(arguments)
    workspace = edit.workspace if arguments.here else None
    if arguments.sandbox or arguments.network:
        if arguments.url:
            raise CliError("`--sandbox` and `--network` go with `-- COMMAND…` only.", code=2)
        entry["sandbox"] = find_sandbox(edit, arguments.name, entry, workspace, arguments.network)
    write_servers(edit, {arguments.name: entry}, workspace)
    return 0


def split_pair(pair: str) -> tuple[str, str]:
    name, separator, value = pair.partition("=")
    if not separator or not name:
        raise CliError(f"`{name or pair}` has no value; write NAME=VALUE.", code=2)
    return name, value


def run_add_from(arguments: argparse.Namespace) -> int:
    from mcp_server.config.operator_file import UnusableFile
    from mcp_server.config.upstream_import import convert_entry, read_server_file

    if arguments.url or arguments.env or arguments.header or arguments.sandbox or arguments.network:
        raise CliError("`--from FILE` goes with names only; the file says the rest.", code=2)
    path = Path(arguments.file).expanduser()
    try:
        file = read_server_file(path)
    except UnusableFile as why:
        raise CliError(f"{why}. {NOTHING}") from None
    names = [arguments.name, *arguments.program] if arguments.name else []
    if not names:
        show_server_file(file)
        return 0
    edit = OperatorEdit.open(arguments)
    entries: dict[str, Any] = {}
    for name in dict.fromkeys(names):
        entries[name], left_out = convert_entry(find_proposed(file, name))
        for sentence in left_out:
            note(f"{name}: {sentence}")
    confirm_servers(file, list(entries), arguments.yes)
    inside = path.resolve().is_relative_to(edit.settings.workspace)
    write_servers(edit, entries, edit.workspace if arguments.here or inside else None)
    return 0


def find_proposed(file: "ServerFile", name: str) -> Mapping[str, Any]:
    if name in file.faults:
        raise CliError(f"{file.path}: the server {name} cannot be added: {file.faults[name]}. {NOTHING}")
    if (entry := file.entries.get(name)) is not None:
        return entry
    near = find_nearest_name(name, file.entries)
    hint = f" Did you mean `{near}`?" if near else f" It has {format_list(file.entries, 'and') or 'none'}."
    raise CliError(f"{file.path} has no server {name}.{hint} {NOTHING}")


def show_server_file(file: "ServerFile") -> None:
    for name in file.entries:
        show_entry(file, name)
    for name, fault in file.faults.items():
        say_foreign(f"{name}  cannot be added: {fault}", "", "  ")
    if file.entries:
        say_prose(f"\nTo add some of them: menugate upstreams add --from {file.path} NAME…")


def show_entry(file: "ServerFile", name: str) -> None:
    from mcp_server.config.upstream_import import describe_entry

    say_foreign(name, "", "  ")
    for what, text in describe_entry(file.entries[name]):
        say_foreign(f"{what}  {text}", "  ", "    ")


def confirm_servers(file: "ServerFile", names: list[str], sure: bool) -> None:
    """Show what would be started or called, and take your yes to it."""
    for name in names:
        show_entry(file, name)
    if sure:
        return
    if not sys.stdin.isatty():
        raise CliError(f"{NOTHING} Answer at a terminal, or add `--yes` once you have read what it starts.")
    if ask_at_terminal(f"Type `{WORD}` to add {format_list(names, 'and')}: ") != WORD:
        raise CliError(f"you did not type `{WORD}`. {NOTHING}")


def write_servers(edit: OperatorEdit, entries: Mapping[str, Mapping[str, Any]], workspace: str | None) -> None:
    """Check the entries, fetch their packages, put their passwords and tokens into the store, and write them."""
    from mcp_server.cli.secrets import SecretValues, find_secret_fault, open_store_to_change
    from mcp_server.cli.upstream_packages import fetch_packages
    from mcp_server.config.upstream_import import take_out_secrets

    trial = edit.check(draft_text(edit, entries, workspace), list(entries))
    fetch_packages(trial, edit.settings, entries)
    store: SecretStore | None = None
    values: dict[str, str] = {}
    kept: dict[str, Mapping[str, Any]] = {}
    for name, entry in entries.items():
        kept[name], secrets = take_out_secrets(name, entry, is_any)
        if secrets:
            store = store or open_store_to_change(edit.settings)
            known = SecretValues(store, edit.workspace, values)
            kept[name], secrets = take_out_secrets(name, entry, known.is_free)
            values |= secrets
    text = draft_text(edit, kept, workspace)
    for name, value in values.items():
        assert store is not None
        if fault := find_secret_fault(name, value):
            raise CliError(f"{fault} {NOTHING}")
        store.put(name, value, workspace or "")
    edit.write(text)
    for name in entries:
        say(f"Added {name} to {edit.file.path}{' for this workspace' if workspace else ''}.")
    if values:
        note(f"Stored {format_list(values, 'and')} as secrets; the file has only their names.")
    say_prose(f"Nothing was started. Read and approve what it offers: menugate upstreams approve {next(iter(entries))}")


def is_any(_name: str, _value: str) -> bool:
    return True


def draft_text(edit: OperatorEdit, entries: Mapping[str, Mapping[str, Any]], workspace: str | None) -> str:
    from mcp_server.config.operator_edit import UneditableLayout
    from mcp_server.config.upstream_edit import add_server, format_server, remove_server

    text = edit.text
    for name, entry in entries.items():
        try:
            if edit.find_entry(name) is not None:
                if not edit.arguments.replace:
                    raise CliError(f"there is already a server {name}; add `--replace`, or choose another name.")
                text = remove_server(text, name, edit.find_section(name))
            text = add_server(text, name, entry, workspace)
        except UneditableLayout:
            lines = format_server(name, {key: one for key, one in entry.items() if key not in ("env", "headers")})
            raise CliError(
                f"menugate finds no safe place for the server in {edit.file.path}. Write it there yourself:\n{lines}"
            ) from None
    return text


def run_disable(arguments: argparse.Namespace) -> int:
    return change_disabled(arguments, True)


def run_enable(arguments: argparse.Namespace) -> int:
    return change_disabled(arguments, False)


def change_disabled(arguments: argparse.Namespace, disabled: bool) -> int:
    from mcp_server.config.operator_edit import UneditableLayout
    from mcp_server.config.upstream_edit import set_disabled

    edit = open_known(arguments)
    try:
        text = set_disabled(edit.text, arguments.name, disabled, edit.find_section(arguments.name))
    except UneditableLayout:
        word = "true" if disabled else "false"
        raise CliError(f"write `disabled: {word}` under `{arguments.name}` in {edit.file.path} yourself.") from None
    if not disabled:
        edit.check(text, [arguments.name])
    edit.write(text)
    say(f"{arguments.name} is {'disabled' if disabled else 'enabled'}.")
    return 0


def run_remove(arguments: argparse.Namespace) -> int:
    from mcp_server.cli.upstream_packages import remove_packages
    from mcp_server.config.operator_edit import UneditableLayout
    from mcp_server.config.upstream_edit import remove_server
    from mcp_server.state.upstream_pins import UpstreamPins

    edit = open_known(arguments)
    try:
        text = remove_server(edit.text, arguments.name, edit.find_section(arguments.name))
    except UneditableLayout:
        raise CliError(f"take `{arguments.name}` out of {edit.file.path} yourself; nothing was written.") from None
    # A mode or a rule may still name it.
    edit.check(text, [arguments.name])
    before = edit.load(edit.text)
    edit.write(text)
    remove_packages(before, [arguments.name])
    withdrawn = UpstreamPins(edit.settings.secrets, edit.settings.workspace).remove_approval(arguments.name)
    also = " Your approval for this workspace is withdrawn." if withdrawn else ""
    say(f"Removed {arguments.name} from {edit.file.path}.{also}")
    note("Its secrets are still stored; `menugate secret list` shows them.")
    return 0


def open_known(arguments: argparse.Namespace) -> OperatorEdit:
    """Open the file, and raise if the server is not in it."""
    from mcp_server.config.operator_edit import UneditableLayout
    from mcp_server.config.upstream_edit import list_servers

    edit = OperatorEdit.open(arguments)
    try:
        names = list_servers(edit.text, edit.workspace)
    except UneditableLayout:
        raise CliError(f"{edit.file.path} has a fault; `menugate check` shows it. {NOTHING}") from None
    if arguments.name not in names:
        near = find_nearest_name(arguments.name, names)
        hint = f"; did you mean `{near}`?" if near else f" in {edit.file.path}."
        raise CliError(f"there is no server {arguments.name}{hint}")
    return edit
