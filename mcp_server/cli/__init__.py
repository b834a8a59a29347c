"""What a person types; one file per noun."""

import sys
from collections.abc import Sequence

from mcp_server.cli.command import parser
from mcp_server.cli.paper import Trouble, complain
from mcp_server.model.pack import Pack

__all__ = ["main"]


def main(argv: Sequence[str] | None = None, packs: Sequence[Pack] = ()) -> int:
    """Exit codes: 0 it worked, 1 it did not, 2 the command line was not understood."""
    arguments = parser().parse_args(argv)
    arguments.packs = packs
    try:
        return int(arguments.run(arguments) or 0)
    except Trouble as trouble:
        complain(str(trouble))
        return 1
    except BrokenPipeError:
        # `menugate audit tail | head` closes its end early, and that is fine.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
