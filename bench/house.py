"""How is the house served with one pack more? The one place where the bench and the suite's fixtures meet it."""

from collections.abc import Sequence

from mcp_server.cli.main import main
from mcp_server.model.tool_packs import Pack


def serve(pack: Pack, arguments: Sequence[str]) -> int:
    """`menugate serve ARGUMENTS`, through the same door a person uses, with `pack` beside the catalogue."""
    return main(["serve", *arguments], packs=(pack,))
