"""How does a command run and end? Its exit code, and the sentence about an error."""

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp_server.cli.output import CliError, complain
from mcp_server.cli.parser import build_parser
from mcp_server.model.results import Refusal
from mcp_server.settings import BuildError
from mcp_server.views.text import ViewError

if TYPE_CHECKING:
    from mcp_server.model.tool_packs import Pack

__all__ = ["main"]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of writing to stdout; unlike others, they name no file."""

SYMLINK_LOOP = "Symlink loop from "
"""How the message of `Path.resolve` begins; Python 3.13 and later raise an OSError with the file's name instead."""


def main(argv: Sequence[str] | None = None, packs: "Sequence[Pack]" = ()) -> int:
    """Exit codes: 0 it worked, 1 it did not, 2 the command line is wrong."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    argv = sys.argv[1:] if argv is None else argv
    if not argv:
        # On stderr: a host that starts `menugate` without `serve` must not take the overview for messages.
        print(build_parser(["help"]).format_help(), end="", file=sys.stderr)
        return 2
    arguments = build_parser(argv).parse_args(argv)
    arguments.packs = packs
    try:
        code = int(arguments.run(arguments) or 0)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return end_with_error(error, arguments)


def end_with_error(error: Exception, arguments: argparse.Namespace) -> int:
    """Complain in a sentence about what you can fix, and return the exit code. Any other error is our bug."""
    match error:
        case CliError(code=2):
            from mcp_server.cli.usage import complain_about_usage

            complain_about_usage(str(error), arguments.command)
            return 2
        case ViewError() | BuildError():
            complain(str(error))
        case Refusal():
            complain(f"{error.problem.message} {error.problem.way_out}".rstrip())
        case RuntimeError() if str(error).startswith(SYMLINK_LOOP):
            complain(f"{str(error).removeprefix(SYMLINK_LOOP)} is a link that leads back to itself; remove it.")
        case BrokenPipeError():
            # `menugate audit tail | head` closes its end early, which is no error.
            silence_output()
            return 0
        case OSError() if error.filename is not None or error.errno in FULL:
            complain(describe_os_error(error))
        case _:
            raise error
    return 1


def describe_os_error(wrong: OSError) -> str:
    """Say which file this machine does not let us read or write; only you can change that."""
    if wrong.filename is None:
        silence_output()
        return f"the output cannot be written ({wrong.strerror})."
    way_out = "."
    if isinstance(wrong, PermissionError):
        way_out = "; `ls -ld` shows who owns it. Run menugate as that user, or take ownership of it."
    return f"{os.fsdecode(wrong.filename)} cannot be used ({wrong.strerror}){way_out}"


def silence_output() -> None:
    """Discard further output, or the interpreter would complain again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
