"""`menugate completion`: which words may come next? The shell asks whenever you press Tab.

The shell scripts only pass on what is typed so far. The possible next words are read from the commands themselves, so
there is nothing to keep in sync.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcp_server.cli.commands import COMMANDS
from mcp_server.cli.output import CliError, say
from mcp_server.cli.parser import CommandGroup, build_parser, load_valid_configuration, settings_from_arguments
from mcp_server.cli.topics import TOPICS
from mcp_server.cli.usage import get_actions, get_subcommands, join_names

EXAMPLES = """
source <(menugate completion bash)                                        in ~/.bashrc
source <(menugate completion zsh)                                         in ~/.zshrc, after compinit
menugate completion fish > ~/.config/fish/completions/menugate.fish       once
"""
SCRIPTS = {
    "bash": """\
_menugate() {
    local IFS=$'\\n'
    COMPREPLY=($(menugate completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _menugate menugate""",
    "zsh": """\
#compdef menugate
_menugate() {
    local -a found
    found=("${(@f)$(menugate completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
compdef _menugate menugate""",
    "fish": """\
function __menugate
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l found (menugate completion --words $typed[2..-1] "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c menugate -f -a '(__menugate)'""",
}


def add(commands: CommandGroup) -> None:
    command = commands.add("completion", EXAMPLES, run)
    command.add_argument("shell", nargs="?", metavar="SHELL", choices=tuple(SCRIPTS), help="your shell")
    command.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    if arguments.words is None:
        if arguments.shell is None:
            raise CliError(f"name your shell: {join_names(SCRIPTS)}.", code=2)
        print(SCRIPTS[arguments.shell])
        return 0
    for word in find_completions(arguments.words, arguments):
        say(word)
    return 0


@dataclass(slots=True)
class TypedLine:
    """What the typed words lead to: a command, how many of its own words were given, and an option that needs a
    value."""

    command: argparse.ArgumentParser
    taken: int = 0
    waiting: argparse.Action | None = None

    def take(self, word: str) -> None:
        if self.waiting is not None:
            self.waiting = None
        elif word.startswith("-") and word != "-":
            option = next((action for action in get_actions(self.command) if word in action.option_strings), None)
            self.waiting = option if option is not None and option.nargs != 0 else None
        elif (subcommands := get_subcommands(self.command)) and word in subcommands:
            self.command, self.taken = subcommands[word], 0
        else:
            self.taken += 1

    def get_expected_action(self) -> argparse.Action | None:
        """Return the argument that the next word is for: an option's value, or the command's next own word."""
        if self.waiting is not None:
            return self.waiting
        positionals = [action for action in get_actions(self.command) if not action.option_strings]
        return positionals[self.taken] if self.taken < len(positionals) else None


def find_completions(words: Sequence[str], arguments: argparse.Namespace) -> list[str]:
    """Return the completions of the last word; none for a file, which the shell completes itself."""
    line = TypedLine(build_parser())
    *words_before, current = words or [""]
    for word in words_before:
        line.take(word)
    if line.waiting is None and current.startswith("-"):
        completions = [
            name
            for action in get_actions(line.command)
            if action.help != argparse.SUPPRESS
            for name in action.option_strings
        ]
    else:
        completions = list(find_values(line.get_expected_action(), arguments))
    return [word for word in completions if word.startswith(current)]


def find_values(expected: argparse.Action | None, arguments: argparse.Namespace) -> Iterator[str]:
    if expected is None:
        return
    if expected.metavar == "COMMAND":
        yield from COMMANDS
    elif expected.choices is not None:
        yield from (str(choice) for choice in expected.choices)
    elif expected.metavar == "TOPIC":
        yield from (*COMMANDS, *TOPICS)
    elif expected.metavar in ("TOOL", "MODE"):
        try:
            policy = load_valid_configuration(arguments, settings_from_arguments(arguments)).policy
        except CliError:
            # Pressing Tab is the wrong moment to report faults in a file.
            return
        yield from policy.tools if expected.metavar == "TOOL" else (mode.name for mode in policy.menus)
