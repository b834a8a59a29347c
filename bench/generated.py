"""Which pages and files are generated from the code? All of them are written here, or compared with those on disk."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from bench.grid import fill_page
from bench.pack_reference import render_pack_reference
from mcp_server.config.load import Configuration, load_configuration
from mcp_server.config.schemas import build_schemas
from mcp_server.model.menus import CARRIERS, META_TOOLS, Listing
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code
from mcp_server.model.sessions import Session
from mcp_server.model.tools import EVERY_STAGE, Confirmation, Tool
from mcp_server.policy.router import render_points_table
from mcp_server.settings import read_settings
from mcp_server.wire.listings import Listings
from mcp_server.wire.revisions import SHOWN

ROOT = Path(__file__).parents[1]
SNAPSHOTS = ROOT / "tests" / "snapshots"
NOTE = "<!-- Generated from the code by `make generate`; edits are lost. -->\n\n"
ROUTER = """# How `menu_enter` finds a mode

A model enters a mode by its number in the menu, or by text. If the text is not exactly a mode's name, title or trigger,
`menu_enter` looks for it in the names, titles, triggers and descriptions. A mode gets the points of its best match:

"""


def load_shipped_configuration() -> Configuration:
    configuration = load_configuration(read_settings({"workspace": str(ROOT)}, {}), bare=True)
    assert isinstance(configuration, Configuration), str(configuration)
    return configuration


def list_files() -> Iterator[tuple[str, str]]:
    configuration = load_shipped_configuration()
    yield "docs/codes.md", codes()
    yield "docs/tools.md", tools(configuration)
    yield "docs/router.md", NOTE + ROUTER + render_points_table()
    yield "ARCHITECTURE.md", fill_page((ROOT / "ARCHITECTURE.md").read_text(), ROOT)
    yield "docs/packs-reference.md", NOTE + render_pack_reference()
    for name, schema in build_schemas().items():
        yield f"menus/{name}", dumped(schema)
    yield from snapshots(configuration)


def codes() -> str:
    lines = [f"| `{code}` | {code.meaning} |" for code in Code]
    return (
        NOTE
        + "# Codes\n\nA call that is refused or fails returns one of these codes.\n\n| code | means |\n| --- | --- |\n"
        + "\n".join(lines)
        + "\n"
    )


def tools(house: Configuration) -> str:
    policy = house.policy
    parts = [
        NOTE + "# Tools\n\nThese tools come with menugate. `profile` is the lowest one at which a tool is listed.\n"
    ]
    parts.append(
        "| tool | modes | profile | effect | asks | hints | stages |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for tool in policy.tools.values():
        place = "listed for most hosts" if tool.name in CARRIERS else "always listed"
        modes = ", ".join(mode.name for mode in policy.menus.find_modes_with(tool.name)) or place
        stages = "every" if tool.stages == EVERY_STAGE else ", ".join(stage for stage in sorted(tool.stages))
        row = (
            f"`{tool.name}`",
            modes,
            str(tool.profile),
            str(tool.effect),
            ASKS[tool.confirmation],
            hints(tool),
            stages,
        )
        parts.append("| " + " | ".join(row) + " |")
    shared = [tool for tool in policy.tools if len(policy.menus.find_modes_with(tool)) > 1]
    if shared:
        rows = [
            f"| `{name}` | {', '.join(mode.name for mode in policy.menus.find_modes_with(name))} |" for name in shared
        ]
        parts += ["\n## Tools in more than one mode\n\n| tool | modes |\n| --- | --- |", *rows]
    return "\n".join(parts) + "\n"


ASKS = {
    Confirmation.NEVER: "no",
    Confirmation.BY_ARGUMENTS: "for some arguments",
    Confirmation.ALWAYS: "before every call",
}


def hints(tool: Tool) -> str:
    said = tool.hints
    named = {
        "reads only": said.read_only,
        "destructive": said.destructive,
        "idempotent": said.idempotent,
        "open world": said.open_world,
    }
    return ", ".join(name for name, given in named.items() if given) or "none"


def snapshots(house: Configuration) -> Iterator[tuple[str, str]]:
    """Render what a model sees, per mode and profile: review a change to it like any other."""
    listings = Listings(house.policy, house.library.hosts, None)
    for mode in (None, *house.policy.menus):
        for profile in Profile:
            session = Session("snapshot", "nobody", mode=mode.name if mode else None)
            names = listings.get_tool_names(Listing.MASKED, session, replace(house.posture, profile=profile))
            shown = [
                listings.get_prepared_tool(SHOWN, name) for name in names if mode is None or name not in META_TOOLS
            ]
            yield f"tests/snapshots/{mode.name if mode else 'root'}.{profile}.json", dumped(shown)
    # The carriers are listed only for clients whose list does not change.
    nowhere = Session("snapshot", "nobody")
    names = listings.get_tool_names(Listing.CARRIED, nowhere, house.posture)
    carried = [listings.get_prepared_tool(SHOWN, name) for name in names]
    yield f"tests/snapshots/carried.{house.posture.profile}.json", dumped(carried)


def dumped(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the generated files, or check that they are up to date.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not up to date")
    check = parser.parse_args().check
    stale: list[str] = []
    generated_names: set[str] = set()
    for name, text in list_files():
        path = ROOT / name
        generated_names.add(path.name)
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    for name in stale:
        print(f"{'not up to date' if check else 'written'}: {name}", file=sys.stderr)
    leftovers = sorted(
        str(path.relative_to(ROOT)) for path in SNAPSHOTS.glob("*.json") if path.name not in generated_names
    )
    for name in leftovers:
        print(f"{'no longer generated' if check else 'removed'}: {name}", file=sys.stderr)
        if not check:
            (ROOT / name).unlink()
    stale += leftovers
    if check and stale:
        print("run `make generate` and commit what it writes", file=sys.stderr)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
