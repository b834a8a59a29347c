"""`menugate help`: what does a command do, or what does a topic mean?"""

import argparse
from collections.abc import Sequence

from mcp_server.cli.commands import COMMANDS
from mcp_server.cli.output import CliError
from mcp_server.cli.parser import CommandGroup, build_parser
from mcp_server.cli.topics import TOPICS
from mcp_server.cli.usage import get_help_width, get_subcommands, join_names, render_heading, render_overview, wrap_text

EXAMPLES = """
menugate help                  all commands, one per line
menugate help profiles         one topic
menugate help explain          one command
menugate help audit export     one of its actions
"""


def add(commands: CommandGroup) -> None:
    command = commands.add("help", EXAMPLES, run)
    command.add_argument("words", nargs="*", metavar="TOPIC", help=f"a command, or {join_names(TOPICS)}")


def run(arguments: argparse.Namespace) -> int:
    words: Sequence[str] = arguments.words
    if not words:
        print(render_overview(TOPICS), end="")
        return 0
    # Some words are both, such as `rules`; the command comes first.
    topic = render_topic(words[0]) if words[0] in TOPICS and len(words) == 1 else ""
    command = find_command(words).format_help() if words[0] in COMMANDS or not topic else ""
    print("\n".join(filter(None, (command, topic))), end="")
    return 0


def render_topic(name: str) -> str:
    """Wrap the text; indented lines stay as they are if they fit."""
    topic, width = TOPICS[name], get_help_width()
    parts = [
        wrap_text(part if part.startswith(" ") else " ".join(part.split()), width)
        for part in topic.text.strip("\n").split("\n\n")
    ]
    parts.append(f"More: {topic.page}")
    return "\n\n".join([render_heading(name), *parts]) + "\n"


def find_command(words: Sequence[str]) -> argparse.ArgumentParser:
    """Find the parser of `audit`, or of `audit tail`."""
    if words[0] not in COMMANDS:
        raise CliError(describe_unknown(words[0], "is neither a command nor a topic", [*COMMANDS, *TOPICS]), 2)
    command = get_subcommands(build_parser(words))[words[0]]
    for word in words[1:]:
        subcommands = get_subcommands(command)
        if word not in subcommands:
            raise CliError(describe_unknown(word, f"is not an action of `{command.prog}`", subcommands), 2)
        command = subcommands[word]
    return command


def describe_unknown(word: str, what: str, names: "Sequence[str] | dict[str, argparse.ArgumentParser]") -> str:
    from mcp_server.model.text import find_nearest_name, quote_text

    near = find_nearest_name(word, names)
    return f"{quote_text(word)} {what}" + (f"; did you mean `{near}`?" if near else ".")
