"""How does the suite get a server to look at? `menugate serve` with the fixtures, on the arguments given."""

import sys

from bench import server
from tests.conformance.fixtures import FIXTURES, MODE

if __name__ == "__main__":
    sys.exit(server.serve(FIXTURES, ["--mode", MODE, *sys.argv[1:]]))
