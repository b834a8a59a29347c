"""How does the suite get a server to look at? `menugate serve` with the fixtures, on the arguments given."""

import sys

from bench import house
from tests.conformance.fixtures import FIXTURES, MODE

if __name__ == "__main__":
    sys.exit(house.serve(FIXTURES, ["--mode", MODE, *sys.argv[1:]]))
