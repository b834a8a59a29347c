"""What a person types; one file per noun."""

import errno
import io
import os
import sys
from collections.abc import Sequence

from mcp_server.cli.output import CliError, complain
from mcp_server.cli.parser import build_parser
from mcp_server.model.tool_packs import Pack

__all__ = ["main"]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Of what is printed into a file; such a failure names none."""


def main(argv: Sequence[str] | None = None, packs: Sequence[Pack] = ()) -> int:
    """Exit codes: 0 it worked, 1 it did not, 2 the command line was not understood."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    argv = sys.argv[1:] if argv is None else argv
    arguments = build_parser(argv).parse_args(argv)
    arguments.packs = packs
    try:
        code = int(arguments.run(arguments) or 0)
        sys.stdout.flush()
        return code
    except CliError as trouble:
        complain(str(trouble))
        return trouble.code
    except BrokenPipeError:
        # `menugate audit tail | head` closes its end early, and that is fine.
        silence_output()
        return 0
    except OSError as wrong:
        if wrong.filename is None and wrong.errno not in FULL:
            raise
        complain(describe_os_error(wrong))
        return 1
    except KeyboardInterrupt:
        return 130


def describe_os_error(wrong: OSError) -> str:
    """What this machine did not let be read or written, which is the person's to mend and no fault of ours."""
    if wrong.filename is None:
        silence_output()
        return f"what was to be printed cannot be written ({wrong.strerror})."
    way_out = "."
    if isinstance(wrong, PermissionError):
        way_out = "; see to whom it belongs, with `ls -ld`, and run menugate as that person or have it given to you."
    return f"{os.fsdecode(wrong.filename)} cannot be used ({wrong.strerror}){way_out}"


def silence_output() -> None:
    """Nothing more is printed: the interpreter would complain of it once again while it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
