"""What does menugate cost? The same tools through the whole gate: menu, decision, pipeline and durable ledger."""

import argparse
import sys

from bench import catalogue, server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.ours", description=__doc__)
    parser.add_argument("--count", type=int, required=True, help="how many tools the mode has")
    parser.add_argument("--menus", required=True, help="the folder with the mode's file")
    arguments, rest = parser.parse_known_args()
    return server.serve(catalogue.build_pack(arguments.count, arguments.menus), ["--mode", catalogue.MODE, *rest])


if __name__ == "__main__":
    sys.exit(main())
