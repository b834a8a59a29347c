"""What a person types; one file per noun."""

import io
import os
import sys
from collections.abc import Sequence

from mcp_server.cli.command import parser
from mcp_server.cli.paper import Trouble, complain
from mcp_server.model.pack import Pack

__all__ = ["main"]


def main(argv: Sequence[str] | None = None, packs: Sequence[Pack] = ()) -> int:
    """Exit codes: 0 it worked, 1 it did not, 2 the command line was not understood."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    arguments = parser().parse_args(argv)
    arguments.packs = packs
    try:
        code = int(arguments.run(arguments) or 0)
        sys.stdout.flush()
        return code
    except Trouble as trouble:
        complain(str(trouble))
        return trouble.code
    except BrokenPipeError:
        # `menugate audit tail | head` closes its end early, and that is fine.
        # The interpreter would complain about it once more while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
