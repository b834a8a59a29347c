"""What does the question say of a command that is not known?"""

from collections.abc import Sequence

from mcp_server.model.text import quote_text
from tools.shell.known_commands import BUILDS, READS
from tools.shell.program_arguments import may_become_option, show_argument
from tools.shell.starters import STARTERS

SUBCOMMANDS = frozenset("git npm pnpm yarn pip pip3 cargo go dotnet bundle composer".split())  # noqa: SIM905


def _fits_find(words: Sequence[str]) -> bool:
    return STARTERS["find"](words) is not None


def describe_unknown(words: Sequence[str]) -> str:
    """Name what is not known: a word, if the rest of the command is known without it, or the command."""
    name, rest = words[0], words[1:]
    known = [table[name] for table in (READS, BUILDS, {"find": _fits_find}) if name in table]
    # The value of an option would take the option's place: leave out options first.
    for at in sorted(range(len(rest)), key=lambda at: rest[at][:1] != "-"):
        if any(fits((*rest[:at], *rest[at + 1 :])) for fits in known):
            shown = quote_text(show_argument(rest[at]))
            if may_become_option(rest[at]) or rest[at] != show_argument(rest[at]):
                return f"{shown} could become an option of {quote_text(name)}"
            return f"{quote_text(_get_start(words[: at + 1]))} with {shown} is not known to only read, build or test"
    return f"{quote_text(_get_start(words) if known else name)} is not known to only read, build or test"


def _get_start(words: Sequence[str]) -> str:
    """Return the program, with its subcommand or module if it has one."""
    if words[1:2] == ("-m",):
        return " ".join(words[:3])
    return " ".join(words[:2]) if words[0] in SUBCOMMANDS and words[1:2] and words[1][:1] != "-" else words[0]
