"""How is menugate served with one more pack? For the benchmarks, and for the fixtures of the test suite."""

from collections.abc import Sequence

from mcp_server.cli.main import main
from mcp_server.model.tool_packs import Pack


def serve(pack: Pack, arguments: Sequence[str]) -> int:
    """`menugate serve ARGUMENTS`, as a person would type it, with one more pack."""
    return main(["serve", *arguments], packs=(pack,))
