"""What does the house cost? The same tools through the whole gate: menu, decision, pipeline and durable ledger."""

import argparse
import sys

from bench import catalogue, house


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m bench.ours", description=__doc__)
    options.add_argument("--count", type=int, required=True, help="how many tools stand in the mode")
    options.add_argument("--menus", required=True, help="the folder with the mode's file")
    chosen, rest = options.parse_known_args()
    return house.serve(catalogue.pack(chosen.count, chosen.menus), ["--mode", catalogue.MODE, *rest])


if __name__ == "__main__":
    sys.exit(main())
