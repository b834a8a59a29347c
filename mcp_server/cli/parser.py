"""What can be typed? The commands with their flags, each with examples."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_server import __version__
from mcp_server.cli.output import CliError
from mcp_server.model.posture import Profile

if TYPE_CHECKING:
    from mcp_server.config.faults import ConfigFault
    from mcp_server.config.load import Configuration
    from mcp_server.settings import Settings

MODULES = {
    "serve": ("serve",),
    "menus": ("menus",),
    "check": ("check",),
    "rules": ("rules",),
    "trust": ("trust", "untrust"),
    "explain": ("explain",),
    "call": ("call",),
    "status": ("status",),
    "messages": ("messages",),
    "posture": ("mode", "control", "profile", "model", "ai-mode", "reasoning", "autonomous"),
    "steer": ("steer",),
    "doctor": ("doctor",),
    "todos": ("todos",),
    "memory": ("memory",),
    "index": ("index",),
    "approvals": ("approvals", "approve", "deny"),
    "pauses": ("pause", "next", "stop"),
    "reports": ("report",),
    "audit": ("audit",),
    "summaries": ("summary",),
    "completion": ("completion",),
}
"""Where each command is, in the order in which `--help` shows them: each a module beside this one."""
EXAMPLES = """
menugate serve                                serve this folder to a host over stdio
menugate serve --http 127.0.0.1:7391          the same over HTTP, with a token
menugate menus --tokens                       what there is, and what it costs a model
menugate explain fs_delete '{"path": "x"}'    may it run, and which rule says so
menugate approvals                            which calls wait for your yes
menugate pause                                let the runs here wait; `menugate next` lets them go on
menugate audit tail                           what happened
"""


def build_parser(typed: Sequence[str] = ()) -> argparse.ArgumentParser:
    """For what is typed, or for everything: a server neither waits for the other commands nor keeps them in memory."""
    top = MixedParser(
        prog="menugate",
        description="An MCP server that shows a model one menu at a time and keeps every call behind one gate.",
        epilog=format_examples(EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"menugate {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=MixedParser)
    meant = [module for module, names in MODULES.items() if typed and typed[0] in names]
    for module in meant or MODULES:
        import_module(f"mcp_server.cli.{module}").add(CommandGroup(commands.add_parser))
    return top


class MixedParser(argparse.ArgumentParser):
    """Takes a command's own words before, between and after its flags.

    The plain parser takes an optional word at once or never: `explain Read --mode swe JSON` would not be understood.
    """

    _mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # the stub's overloads say the same in three parts
        if self._mixing or self._subparsers or self._mutually_exclusive_groups:
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A slip of the pen is told apart from a list of thirty words."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as wrong:
            from mcp_server.model.text import find_nearest_name

            if near := find_nearest_name(str(value), map(str, action.choices or ())):
                raise argparse.ArgumentError(action, f"{wrong.message}; did you mean '{near}'?") from None
            raise

    def error(self, message: str) -> NoReturn:
        super().error(f"{message}\n`{self.prog} --help` shows what can be typed, with examples.")


def format_examples(examples: str) -> str:
    return "examples:\n" + "\n".join(f"  {line}" for line in examples.strip().splitlines())


class CommandGroup:
    """Adds one command: its name, what it is for, its examples and what runs it."""

    def __init__(self, add_parser: Callable[..., argparse.ArgumentParser]) -> None:
        self._add_parser = add_parser

    def add(
        self, name: str, purpose: str, examples: str, run: Callable[[argparse.Namespace], int] | None
    ) -> argparse.ArgumentParser:
        """`run` is None where what stands below the command runs."""
        one = self._add_parser(
            name,
            help=purpose,
            description=purpose[0].upper() + purpose[1:] + ".",
            epilog=format_examples(examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if run is not None:
            one.set_defaults(run=run)
        return one


def add_place(one: argparse.ArgumentParser) -> None:
    """The flags that say which workspace is meant, and under which configuration."""
    one.add_argument("--workspace", metavar="DIR", help="the folder the tools work in (default: this one)")
    one.add_argument("--config", metavar="FILE", help="the operator's menugate.yaml")


def add_posture(one: argparse.ArgumentParser) -> None:
    profiles, names = tuple(map(str, Profile)), "restricted, normal, trusted or unrestricted"
    one.add_argument("--profile", metavar="NAME", choices=profiles, help=f"what may run without asking: {names}")
    one.add_argument(
        "--max-profile", metavar="NAME", choices=profiles, help="the profile that nobody can go beyond here"
    )


def add_json(one: argparse.ArgumentParser, what: str = "JSON on stdout, and nothing else there") -> None:
    one.add_argument("--json", action="store_true", help=what)


def settings_from_arguments(arguments: argparse.Namespace) -> "Settings":
    """Where and under which limits, from the flags above. No endpoint is pinned on the command line."""
    from dataclasses import replace

    from mcp_server.settings import SettingsError, read_settings

    flags = ("workspace", "config", "profile", "max_profile")
    try:
        return replace(read_settings({name: getattr(arguments, name, None) for name in flags}), mode=None)
    except SettingsError as wrong:
        raise CliError(str(wrong)) from None


def load_valid_configuration(
    arguments: argparse.Namespace,
    settings: "Settings",
    unheard: bool = False,
    texts: Mapping[Path, str | None] | None = None,
) -> "Configuration":
    """What holds, or the faults as `menugate check` shows them; `unheard` leaves out the workspace's own word, and
    `texts` stand for files as they were."""
    from mcp_server.config.faults import ConfigFaults
    from mcp_server.config.load import BuildError, load_configuration

    try:
        found = load_configuration(settings, arguments.packs, unheard=unheard, texts=texts)
    except BuildError as wrong:
        raise CliError(str(wrong)) from None
    if isinstance(found, ConfigFaults):
        raise CliError(format_faults(found.faults, settings))
    return found


def make_start_error(arguments: argparse.Namespace, settings: "Settings", why: Exception) -> CliError:
    """Why there is no house; faults in files are said as `menugate check` says them."""
    load_valid_configuration(arguments, settings)
    return CliError(str(why))


def format_faults(faults: "Sequence[ConfigFault]", settings: "Settings") -> str:
    """Every fault on a line of its own, with where it stands; above them, what that means for what runs."""
    from mcp_server.state.servers import load_servers

    one = len(faults) == 1
    count, put = "1 fault" if one else f"{len(faults)} faults", f"until {'it is' if one else 'they are'} put right"
    going = [str(server.pid) for server in load_servers(settings.state)]
    head = f"{count}; nothing runs {put}:"
    if going:
        whose = f"process {going[0]} goes" if len(going) == 1 else f"processes {', '.join(going)} go"
        head = f"{count}; nothing starts {put}, and {whose} on under the last valid rules:"
    return "\n".join([head, *map(str, faults)])
