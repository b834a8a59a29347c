"""`menugate serve`: be the MCP server of a folder."""

import argparse
import gc
import sys

from mcp_server.cli.command import Commands, add_place, add_posture
from mcp_server.cli.paper import Trouble

EXAMPLES = """
menugate serve                                    over stdio, for a host that starts it in the project's folder
menugate serve --workspace ~/code/app --mode swe  one mode alone, its tools always listed
menugate serve --http 127.0.0.1:7391              over HTTP; prints the address, the token and a line for a host
menugate serve --profile restricted               read, and nothing else
"""


def add(commands: Commands) -> None:
    one = commands.add("serve", "serve a folder to MCP hosts, over stdio or HTTP", EXAMPLES, run)
    add_place(one)
    one.add_argument("--http", metavar="HOST:PORT", help="serve over HTTP instead of stdio (port 0 takes a free one)")
    one.add_argument("--mode", metavar="MODE", help="pin every session to one mode")
    one.add_argument(
        "--listing",
        metavar="NAME",
        choices=("auto", "masked", "carried", "stable", "flat"),
        help="what tools/list shows: auto, masked, carried, stable or flat (default: auto, by client)",
    )
    add_posture(one)
    one.add_argument("--no-auth", action="store_true", help="ask for no token (loopback only)")
    one.add_argument("--menus", metavar="DIRS", help="further folders with mode files, separated as in PATH")
    one.add_argument("--allowed-hosts", metavar="NAMES", help="further Host headers to answer to, behind a proxy")
    one.add_argument("--allowed-origins", metavar="URLS", help="web pages that may call this server")


def run(arguments: argparse.Namespace) -> int:
    # What is imported from here on lives as long as the process; looking for garbage among it is time lost.
    gc.disable()
    from mcp_server.compose import Unbuildable, serve
    from mcp_server.settings import Unusable, read

    try:
        return serve(read(vars(arguments)), arguments.packs, say=lambda text: print(text, file=sys.stderr))
    except (Unusable, Unbuildable) as wrong:
        raise Trouble(str(wrong)) from None
