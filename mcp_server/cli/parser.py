"""How is a command line read? Only the module of the command that was typed is imported.

Help and error messages import what they need (`usage`, `topics`) only when they are shown.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.cli.commands import COMMANDS
from mcp_server.cli.output import CliError
from mcp_server.model.posture import Profile
from mcp_server.settings import SettingsError, read_place, read_settings

if TYPE_CHECKING:
    from mcp_server.config.faults import ConfigFault
    from mcp_server.config.load import Configuration
    from mcp_server.settings import Settings


LISTING = frozenset(("rules", "todos", "upstreams", "memory", "secret"))
"""Commands that list if you name no action."""


def build_parser(typed: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of the command typed first, or of all commands: a server must not keep the others in memory."""
    top = TopParser(prog="menugate")
    top.add_argument("--version", action=ShowVersion, nargs=0, help="show the version, and where it is installed")
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=MixedParser)
    wanted = dict.fromkeys(entry.module for name, entry in COMMANDS.items() if not typed or name == typed[0])
    for module in wanted:
        import_module(f"mcp_server.cli.{module}").add(CommandGroup(commands.add_parser, typed[0] if typed else None))
    return top


class ShowVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from mcp_server.cli.version import show_version

        show_version()
        parser.exit()


class MixedParser(argparse.ArgumentParser):
    """Accepts a command's arguments before, between and after its options, and explains mistakes in plain words.

    argparse fills optional arguments at once or never, so it would not understand `explain Read --mode swe JSON`.
    """

    _mixing = False
    _typed: Sequence[str] = ()

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, add_help=False, **settings)
        self._positionals.title = "arguments"
        self.add_argument("-h", "--help", action="help", help="show this help")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # the stub's overloads say the same in three parts
        if self._mixing or self._subparsers:
            return super().parse_known_args(args, namespace)
        self._mixing, self._typed = True, tuple(args or ())
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from mcp_server.cli.usage import describe_wrong_choice

            raise argparse.ArgumentError(None, describe_wrong_choice(action, value))

    def format_help(self) -> str:
        """Show the purpose, the usage, arguments and options, and examples."""
        from mcp_server.cli.usage import (
            WordFormatter,
            get_help_width,
            render_examples,
            render_heading,
            render_usage,
            wrap_text,
        )

        width = get_help_width()
        formatter = WordFormatter(self.prog)
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        examples = render_examples(self.epilog or "", width)
        usage = wrap_text(f"    {render_usage(self)}", width).removeprefix("    ")
        parts = [wrap_text(self.description or "", width), usage, formatter.format_help().strip("\n")]
        return "\n\n".join([*parts, f"{render_heading('examples:')}\n{examples}"]) + "\n"

    def error(self, message: str) -> NoReturn:
        from mcp_server.cli.usage import (
            complain_about_usage,
            describe_missing_value,
            describe_unknown_word,
            find_unknown_option,
            get_subcommands,
            join_names,
            reword_argparse,
        )

        name = message.partition("are required: ")[2].partition(", ")[0]
        if unknown := find_unknown_option(self, self._typed) if name else None:
            message = describe_unknown_word(self, unknown)
        elif name and (below := get_subcommands(self)):
            message = f"say what `{self.prog}` should do: {join_names(below)}."
        complain_about_usage(describe_missing_value(self, message) or reword_argparse(message), self)
        sys.exit(2)


class TopParser(MixedParser):
    """`menugate` itself: its help is the overview of all commands, which imports none of them."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # likewise
        first = args[0] if args else ""
        if not first or (first not in COMMANDS and first not in self._option_string_actions):
            from mcp_server.cli.topics import TOPICS
            from mcp_server.cli.usage import describe_unknown_command

            self.error(describe_unknown_command(first, tuple(TOPICS)) if first else "say what to do.")
        parsed, more = self.parse_known_args(_add_default_action(args), namespace)
        if more:
            from mcp_server.cli.usage import describe_unknown_word

            command: argparse.ArgumentParser = getattr(parsed, "command", self)
            command.error(describe_unknown_word(command, more[0]))
        return parsed

    def format_help(self) -> str:
        from mcp_server.cli.topics import TOPICS
        from mcp_server.cli.usage import render_overview

        return render_overview(TOPICS)


def _add_default_action(args: Sequence[str]) -> Sequence[str]:
    """Read `menugate rules --json` as `menugate rules list --json`."""
    first, rest = args[0], args[1:]
    has_action = bool(rest) and (not rest[0].startswith("-") or rest[0] in ("-h", "--help"))
    return [first, "list", *rest] if first in LISTING and not has_action else args


class CommandGroup(Struct, frozen=True):
    """Adds commands: for each its name, purpose and examples, and the function that runs it."""

    add_parser: Callable[..., argparse.ArgumentParser]
    only: str | None = None
    """The one command that was typed; None for all commands."""

    def add(
        self, name: str, examples: str, run: Callable[[argparse.Namespace], int] | None, purpose: str = ""
    ) -> argparse.ArgumentParser:
        """`purpose`: for subcommands; the others have theirs in the table. `run` is None if the command only has
        subcommands."""
        purpose = purpose or COMMANDS[name].purpose
        one = self.add_parser(
            name,
            help=purpose,
            description=f"{purpose[0].upper()}{purpose[1:]}.",
            epilog=examples,
        )
        one.set_defaults(command=one)
        if run is not None:
            one.set_defaults(run=run)
        return one


def add_actions(one: argparse.ArgumentParser) -> CommandGroup:
    """The commands below a command, such as `audit tail`."""
    lists = one.prog.rpartition(" ")[2] in LISTING
    title, metavar = ("actions (`list` if you name none)", "[ACTION]") if lists else ("actions", "ACTION")
    below = one.add_subparsers(title=title, metavar=metavar, required=True, parser_class=MixedParser)
    return CommandGroup(below.add_parser)


def add_place(one: argparse.ArgumentParser) -> None:
    """Add the options for the workspace and the configuration."""
    one.add_argument("--workspace", metavar="DIR", help="the folder that tools work in (default: this one)")
    one.add_argument("--config", metavar="FILE", help="the operator's menugate.yaml (default: the one in ~/.config)")


def add_posture(one: argparse.ArgumentParser) -> None:
    profiles = tuple(map(str, Profile))
    one.add_argument("--profile", metavar="NAME", choices=profiles, help="what may run without asking you")
    one.add_argument("--max-profile", metavar="NAME", choices=profiles, help="the highest profile allowed here")


def add_json(one: argparse.ArgumentParser, what: str = "print JSON on stdout, and nothing else") -> None:
    one.add_argument("--json", action="store_true", help=what)


def settings_from_arguments(arguments: argparse.Namespace, place_only: bool = False) -> "Settings":
    """Read the settings with the options above. `--mode` is not passed on: here it applies to one call only."""
    flags = {name: getattr(arguments, name, None) for name in ("workspace", "config", "profile", "max_profile")}
    try:
        return read_place(flags) if place_only else replace(read_settings(flags), mode=None)
    except SettingsError as wrong:
        raise CliError(str(wrong)) from None


def load_valid_configuration(
    arguments: argparse.Namespace,
    settings: "Settings",
    unheard: bool = False,
    texts: Mapping[Path, str | None] | None = None,
) -> "Configuration":
    """Load the configuration in force; raise its faults as `menugate check` shows them. `unheard` leaves out the
    workspace's own file, and `texts` replaces files on disk with their earlier content."""
    from mcp_server.config.faults import ConfigFaults
    from mcp_server.config.load import load_configuration
    from mcp_server.model.tools import LazyFunction
    from mcp_server.settings import BuildError

    # As a server does, so that a tool that no client could list is set aside here too.
    listable = LazyFunction("mcp_server.wire.translate:find_wire_fault")
    try:
        found = load_configuration(settings, arguments.packs, unheard=unheard, texts=texts, find_wire_fault=listable)
    except BuildError as wrong:
        raise CliError(str(wrong)) from None
    if isinstance(found, ConfigFaults):
        raise CliError(format_faults(found.faults, settings))
    return found


def make_start_error(arguments: argparse.Namespace, settings: "Settings", why: Exception) -> CliError:
    """Say why nothing could start, with faults in files as `menugate check` shows them."""
    load_valid_configuration(arguments, settings)
    return CliError(str(why))


def format_faults(faults: "Sequence[ConfigFault]", settings: "Settings") -> str:
    """List the faults, one per line with its place, below a line about what they stop."""
    from mcp_server.model.text import format_count
    from mcp_server.state.servers import load_servers

    count, them = format_count(len(faults), "fault"), "it" if len(faults) == 1 else "them"
    running = [str(server.pid) for server in load_servers(settings.state)]
    head = f"{count}; nothing runs until you fix {them}:"
    if running:
        whose = f"process {running[0]} keeps" if len(running) == 1 else f"processes {', '.join(running)} keep"
        head = f"{count}; nothing starts until you fix {them}, and {whose} using the last valid rules:"
    return "\n".join([head, *map(str, faults)])
