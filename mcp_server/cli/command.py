"""What can be typed? The commands with their flags, each with examples."""

import argparse
from collections.abc import Callable
from importlib import import_module

from mcp_server import __version__

NOUNS = ("serve", "menus", "check", "explain", "call", "status", "messages", "audit", "completion")
"""In the order in which `--help` shows them. Each is a module beside this one with `add(commands)`."""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="menugate",
        description="An MCP server that shows a model one menu at a time and keeps every call behind one gate.",
        epilog="examples:\n"
        "  menugate serve                               serve this folder to a host over stdio\n"
        "  menugate serve --http 127.0.0.1:7391         the same over HTTP, with a token\n"
        "  menugate menus --tokens                      what there is, and what it costs a model\n"
        '  menugate explain fs_delete \'{"path": "x"}\'   may it run, and which rule says so\n'
        "  menugate audit tail                          what happened",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"menugate {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for noun in NOUNS:
        import_module(f"mcp_server.cli.{noun}").add(Commands(commands.add_parser))
    return top


class Commands:
    """Adds one command: its name, what it is for, its examples and what runs it."""

    def __init__(self, add_parser: Callable[..., argparse.ArgumentParser]) -> None:
        self._add_parser = add_parser

    def add(
        self, name: str, purpose: str, examples: str, run: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        one = self._add_parser(
            name,
            help=purpose,
            description=purpose[0].upper() + purpose[1:] + ".",
            epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.strip().splitlines()),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        one.set_defaults(run=run)
        return one


def add_place(one: argparse.ArgumentParser) -> None:
    """The flags that say which workspace is meant, and under which configuration."""
    one.add_argument("--workspace", metavar="DIR", help="the folder the tools work in (default: this one)")
    one.add_argument("--config", metavar="FILE", help="the operator's menugate.yaml")


def add_posture(one: argparse.ArgumentParser) -> None:
    profiles = "restricted, normal, trusted or unrestricted"
    one.add_argument("--profile", metavar="NAME", help=f"what may run without asking: {profiles}")
    one.add_argument("--max-profile", metavar="NAME", help="the profile that nobody can go beyond here")
