"""What do help and usage errors look like? An error comes first, the usage after it."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from mcp_server.cli.commands import COMMANDS, GROUPS
from mcp_server.cli.output import PLAIN_WIDTH, colour, complain, get_width, wrap_text
from mcp_server.model.text import escape_for_person

MIN_WIDTH, MAX_WIDTH = 30, 110
"""Columns: narrower help is unreadable, and wider help is tiring to read."""
MIN_COMMENT = 24
"""Columns for a text beside its name; with fewer, it goes below the name."""
INTRODUCTION = """
menugate is an MCP server. It shows a model a few tools at a time, decides call by call what may run, and records every
decision. You use this command at the terminal.
"""
FIRST_SESSION = """
claude mcp add menugate -- menugate serve    connect a host; see docs/hosts.md for others
menugate status                              what is in force, what is running and what needs you
menugate approvals                           the calls that need your approval; then `menugate approve ID`
menugate profile trusted                     allow more; `menugate stop` ends everything
menugate audit tail                          what happened, and why
"""
WORD = re.compile(r"""'[^']*'|(?:[^\s'"]|"[^"]*")+""")
LINE_BREAK = " \\"


def get_help_width() -> int:
    return min(max(get_width(sys.stdout) or PLAIN_WIDTH, MIN_WIDTH), MAX_WIDTH)


def get_actions(command: argparse.ArgumentParser) -> list[argparse.Action]:
    return command._actions  # argparse has no public way to ask


def get_subcommands(command: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    subcommands: dict[str, Any] = {}
    for action in get_actions(command):
        if is_subcommand(action):
            subcommands |= cast(Any, action).choices
    return subcommands


class WordFormatter(argparse.HelpFormatter):
    """Breaks lines between words only, and names an option's values in its help, not in its heading."""

    def __init__(self, prog: str) -> None:
        width = get_help_width()
        super().__init__(prog, max_help_position=min(28, width // 2), width=width)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap_text(" ".join(text.split()), width).split("\n")

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return wrap_text(" ".join(text.split()), width, indent)

    def _metavar_formatter(self, action: argparse.Action, default_metavar: str) -> Callable[[int], tuple[str, ...]]:
        name = action.metavar or (action.option_strings or [default_metavar])[-1].strip("-").replace("-", "_").upper()
        return lambda size: (name,) * size if isinstance(name, str) else name

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.choices is None or action.help in (None, argparse.SUPPRESS) or is_subcommand(action):
            return action.help
        if len(list(action.choices)) == 1:  # a word such as `fix`, which the heading shows already
            return action.help
        return f"{action.help}: {join_names(action.choices)}".replace("%", "%%")


def is_subcommand(action: argparse.Action) -> bool:
    return isinstance(action, argparse._SubParsersAction)  # pyright: ignore[reportPrivateUsage]  # no public way to ask


def join_names(names: Iterable[object], last: str = "or") -> str:
    """`chat, plan or build`."""
    *first, final = map(str, names)
    return f"{', '.join(first)} {last} {final}" if first else final


def render_examples(examples: str, width: int) -> str:
    """Render command and comment in two columns, or below each other if the terminal is too narrow for both."""
    pairs = [(line[:at], line[at:].strip()) for line in examples.strip().splitlines() for at in [find_comment(line)]]
    column = max(len(command) for command, _ in pairs) + 2
    if width - column - 2 >= MIN_COMMENT:
        return "\n".join(render_row(command, comment, column, width) for command, comment in pairs)
    lines: list[str] = []
    for command, comment in pairs:
        lines += [*wrap_command(command, width), *([wrap_text(comment, width, "      ")] if comment else [])]
    return "\n".join(lines)


def find_comment(line: str) -> int:
    """Find the end of the command: two or more spaces outside quotes begin the comment."""
    ends = [word.end() for word in WORD.finditer(line)]
    return next((end for end in ends if line[end : end + 2] == "  "), len(line))


def wrap_command(command: str, width: int) -> list[str]:
    """Wrap into lines that a shell still reads as one command; never break inside quotes."""
    words = WORD.findall(command)
    lines = [f"  {words[0]}"]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) + len(LINE_BREAK) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(f"    {word}")
    return [f"{line}{LINE_BREAK}" for line in lines[:-1]] + lines[-1:]


def render_overview(topics: Iterable[str]) -> str:
    """Render every command on its own line, by purpose; then a first session and where to find more."""
    width = get_help_width()
    column = max(map(len, COMMANDS)) + 2
    parts = [wrap_text(" ".join(INTRODUCTION.split()), width), "usage: menugate COMMAND [options]"]
    for group, entries in GROUPS.items():
        rows = (render_row(name, entry.purpose, column, width) for name, entry in entries.items())
        parts.append("\n".join([render_heading(group), *rows]))
    parts.append(f"{render_heading('A first session')}\n{render_examples(FIRST_SESSION, width)}")
    more = (
        ("menugate help COMMAND", "one command, with examples"),
        ("menugate help TOPIC", f"one subject: {join_names(topics)}"),
        ("docs/", "the whole manual; docs/hosts.md shows how to connect a host, docs/posture.md what may run"),
    )
    rows = [render_row(name, says, 23, width) for name, says in more]
    return "\n\n".join([*parts, "\n".join([render_heading("More help"), *rows])]) + "\n"


def render_heading(text: str) -> str:
    return colour(text, "bold")


def render_row(name: str, text: str, column: int, width: int) -> str:
    """Render a name and its purpose side by side, or below each other if the terminal is too narrow."""
    room = width - column - 2
    if room < MIN_COMMENT:
        return f"  {name}\n{wrap_text(text, width, '      ')}"
    first, *rest = wrap_text(text, room).split("\n")
    return "\n".join([f"  {name:<{column}}{first}".rstrip(), *(" " * (column + 2) + line for line in rest)])


def render_usage(command: argparse.ArgumentParser) -> str:
    """Render one line: `usage: menugate explain [options] TOOL [JSON]`."""
    actions = get_actions(command)
    positionals = [
        render_argument(action) for action in actions if not action.option_strings and action.help != argparse.SUPPRESS
    ]
    options = ["[options]"] if any(action.option_strings and action.dest != "help" for action in actions) else []
    return " ".join(["usage:", command.prog, *options, *positionals])


def render_argument(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest.upper())
    # While options and arguments are read intermixed, argparse hides the real value behind `save_nargs`.
    count = getattr(action, "save_nargs", action.nargs)
    more = " ..." if count in ("*", "+") else ""
    return f"[{name}{more}]" if count in ("?", "*") else f"{name}{more}"


def complain_about_usage(message: str, command: argparse.ArgumentParser) -> None:
    """Print what is wrong, then the usage of the command and where to find more about it."""
    complain(message)
    print(render_usage(command), file=sys.stderr)
    name = command.prog.partition(" ")[2]
    more = f"`menugate help {name}` explains it, with examples." if name else "`menugate help` lists every command."
    print(wrap_text(escape_for_person(more), get_width(sys.stderr)), file=sys.stderr)


def describe_wrong_choice(action: argparse.Action, value: object) -> str:
    """Name the unknown value, the known ones, and the one that was probably meant."""
    from mcp_server.model.text import find_nearest_name, quote_text

    names = list(map(str, action.choices or ()))
    if len(names) == 1:
        return f"{quote_text(str(value))} is not an action; the only one is `{names[0]}`."
    near = find_nearest_name(str(value), names)
    what = f"{'/'.join(action.option_strings)}: " if action.option_strings else ""
    hint = f"; did you mean `{near}`?" if near else "."
    return f"{what}{quote_text(str(value))} is not one of {join_names(names)}{hint}"


def describe_unknown_word(command: argparse.ArgumentParser, word: str) -> str:
    """Describe an unknown option, or a word too many."""
    from mcp_server.model.text import find_nearest_name, quote_text

    if not word.startswith("-"):
        return f"unexpected argument {quote_text(word)}."
    options = [
        name for action in get_actions(command) if action.help != argparse.SUPPRESS for name in action.option_strings
    ]
    option = word.partition("=")[0]
    near = find_nearest_name(option, options)
    return f"`{command.prog}` has no option {quote_text(option)}" + (f"; did you mean `{near}`?" if near else ".")


def describe_unknown_command(word: str, topics: Sequence[str]) -> str:
    from mcp_server.model.text import find_nearest_name, quote_text

    if word.startswith("-"):
        near = find_nearest_name(word, ["--help", "--version"])
        return f"menugate has no option {quote_text(word)}" + (f"; did you mean `{near}`?" if near else ".")
    if word in topics:
        return f"`{word}` is a help topic, not a command; type `menugate help {word}`."
    near = find_nearest_name(word, COMMANDS)
    return f"{quote_text(word)} is not a command" + (f"; did you mean `{near}`?" if near else ".")


def find_unknown_option(command: argparse.ArgumentParser, words: Sequence[str]) -> str | None:
    """Find the first unknown option, so that it is reported before anything that is missing."""
    known = [name for action in get_actions(command) for name in action.option_strings]
    for word in words:
        if word == "--":
            return None
        option = word.partition("=")[0]
        if re.match(r"--?[A-Za-z]", word) and " " not in word:
            is_known = any(name.startswith(option) for name in known) or (word[1] != "-" and word[:2] in known)
            if not is_known:
                return word
    return None


def describe_missing_value(command: argparse.ArgumentParser, message: str) -> str:
    """Say which option has no value, if that is what argparse complains about."""
    match = re.fullmatch(r"argument (?:\S+/)?(-\S+?): expected (?:one|at least one) argument", message)
    if match is None:
        return ""
    metavars = [action.metavar for action in get_actions(command) if match[1] in action.option_strings]
    return f"{match[1]} needs a value{''.join(f': {name}' for name in metavars if isinstance(name, str))}."


REWORDED = (
    (re.compile(r"the following arguments are required: (.+)"), r"\1 is missing."),
    (re.compile(r"ambiguous option: (\S+) could match (.+)"), r"`\1` is short for several options: \2."),
    (re.compile(r"argument (\S+?): ignored explicit argument .*"), r"\1 takes no value."),
    (re.compile(r"argument (\S+?): (.*)"), r"\1: \2"),
)
"""Messages of argparse itself, in plain words; any other message is shown as it is."""


def reword_argparse(message: str) -> str:
    for pattern, words in REWORDED:
        if match := pattern.fullmatch(message):
            return match.expand(words)
    return message
