"""How is the house served with one pack more? The one place where the bench and the suite's fixtures meet it."""

import importlib
from collections.abc import Sequence

from mcp_server.model.pack import Pack


def serve(pack: Pack, arguments: Sequence[str]) -> int:
    """`menugate serve ARGUMENTS`, through the same door a person uses, with `pack` beside the catalogue."""
    return int(importlib.import_module("mcp_server.cli").main(["serve", *arguments], packs=(pack,)))
