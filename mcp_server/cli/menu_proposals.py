"""`menugate menus propose`: which modes would suit the tools of your servers, and do you want some of them written?"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.cli.output import CliError, note, print_json, print_table, say, say_prose
from mcp_server.cli.parser import load_valid_configuration, settings_from_arguments
from mcp_server.model.text import find_nearest_name

if TYPE_CHECKING:
    from mcp_server.cli.menus import MenuCosts
    from mcp_server.config.load import Configuration
    from mcp_server.policy.menu_proposals import ProposedMode
    from mcp_server.settings import Settings

PROPOSE = "propose"
NOTHING = (
    "There is nothing to propose: no server has approved tools that are in no mode of yours. `menugate upstreams list` "
    "shows the servers."
)
FOLDER = "menus"


class ProposalView(Struct, frozen=True):
    proposals: "Sequence[ProposedMode]"
    replaced: Sequence[str]
    """The modes that menugate made up for these servers, and that go."""
    before: "MenuCosts"
    after: "MenuCosts"


def run_propose(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    configuration = load_valid_configuration(arguments, settings)
    view = build_proposals(configuration, settings)
    if arguments.names:
        write_modes(arguments, settings, choose(view, arguments.names))
        return 0
    if arguments.json:
        print_json(to_json(view))
    elif view.proposals:
        show_proposals(view)
    else:
        say_prose(NOTHING)
    return 0


def build_proposals(configuration: "Configuration", settings: "Settings") -> ProposalView:
    """Draft modes for the tools of servers that are in no mode of yours, and price the menus without and with them."""
    from mcp_server.cli.menus import measure_costs
    from mcp_server.config.load import Configuration, apply_configuration
    from mcp_server.model.menus import Menus
    from mcp_server.policy.menu_proposals import propose_modes
    from mcp_server.policy.tool_search import find_server

    own = configuration.library.menus
    every, in_force = configuration.policy.tools, configuration.policy.menus
    placed = {tool for mode in in_force if mode.name in own.by_name for tool in mode.tools}
    tools = [one for one in every.values() if one.written and one.name not in placed]
    taken = [word for mode in own for word in (mode.name, mode.title, *mode.triggers)]
    proposals = propose_modes(tools, taken)
    before = measure_costs(configuration)
    menus = Menus((*own, *(one.mode for one in proposals)))
    text = configuration.said.get(settings.config) if settings.config else None
    trial = apply_configuration(
        replace(configuration, library=replace(configuration.library, menus=menus)), settings, text
    )
    after = measure_costs(trial) if isinstance(trial, Configuration) else before
    servers = {find_server(tool) for one in proposals for tool in one.tools}
    made_up = [mode for mode in in_force if mode.name not in own.by_name]
    replaced = [mode.name for mode in made_up if servers & {find_server(every[one]) for one in mode.tools}]
    return ProposalView(proposals, replaced, before, after)


def show_proposals(view: ProposalView) -> None:
    from mcp_server.policy.menu_proposals import MAX_TOOLS

    rows = [
        (one.mode.name, f"{len(one.tools)}", f"{view.after.modes.get(one.mode.name, 0):,}", one.mode.when)
        for one in view.proposals
    ]
    print_table(rows, ("mode", "tools", "tokens", "when"), right=(1, 2))
    if now := [(f"  {name}", f"{view.before.modes[name]:,}") for name in view.replaced]:
        say("\nnow, a mode for each server:")
        print_table(now, ("  mode", "tokens"), right=(1,))
    largest = max((view.after.modes.get(one.mode.name, 0) for one in view.proposals), default=0)
    largest_now = max((view.before.modes[name] for name in view.replaced), default=0)
    if view.replaced:
        say_prose(f"\nThe largest of them costs a model {largest_now:,} tokens now, and {largest:,} with the proposal.")
    root, root_after = min(view.before.root.values()), min(view.after.root.values())
    say_prose(f"A model that is in no mode reads {root:,} tokens now, and {root_after:,} with the proposal.")
    say_prose(f"A mode should have at most {MAX_TOOLS} tools. Nothing was written. To write some of these modes:")
    say(f"  menugate menus {PROPOSE} {view.proposals[0].mode.name} …")


def to_json(view: ProposalView) -> dict[str, object]:
    return {
        "proposed": [
            {
                "mode": one.mode.name,
                "title": one.mode.title,
                "when": one.mode.when,
                "tools": list(one.mode.tools),
                "tokens": view.after.modes.get(one.mode.name, 0),
            }
            for one in view.proposals
        ],
        "now": {name: view.before.modes[name] for name in view.replaced},
        "root": {"now": min(view.before.root.values()), "proposed": min(view.after.root.values())},
    }


def choose(view: ProposalView, names: Sequence[str]) -> "list[ProposedMode]":
    by_name = {one.mode.name: one for one in view.proposals}
    for name in names:
        if name not in by_name:
            near = find_nearest_name(name, by_name)
            hint = f"; did you mean `{near}`?" if near else f"; `menugate menus {PROPOSE}` shows those there are."
            raise CliError(f"no mode {name} is proposed{hint} Nothing was written.")
    return [by_name[name] for name in dict.fromkeys(names)]


def write_modes(arguments: argparse.Namespace, settings: "Settings", chosen: "Sequence[ProposedMode]") -> None:
    """Write the files, with a folder for them if your menugate.yaml names none; take them back if they have a fault."""
    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.config.operator_file import UnusableFile, read_operator_file, replace_operator_file
    from mcp_server.policy.menu_proposals import render_mode
    from mcp_server.settings import OPERATORS_FILE
    from mcp_server.views.text import explain_refusals

    with explain_refusals():
        refuse_inside_server(settings)
    written: list[Path] = []
    try:
        file = read_operator_file(settings.config or settings.operators / OPERATORS_FILE)
        text, folder = find_menus_folder(file.path, file.text)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for one in chosen:
            path = folder / f"{one.mode.name}.yaml"
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as stream:
                written.append(path)
                stream.write(render_mode(one.mode))
        check_modes(arguments, replace(settings, config=file.path), text)
        if text != file.text:
            replace_operator_file(file, text)
    except (OSError, UnusableFile, CliError) as wrong:
        for path in written:
            path.unlink(missing_ok=True)
        raise CliError(f"{str(wrong).rstrip('.')}. Nothing was written.") from None
    for path in written:
        say(f"Wrote {path}.")
    if text != file.text:
        note("Servers that are running do not know this folder yet, and use the new modes after a restart.")


def find_menus_folder(path: Path, text: str) -> tuple[str, Path]:
    """Return your folder for modes; if there is none yet, with the text that names one."""
    from mcp_server.config.operator_edit import UneditableLayout
    from mcp_server.config.upstream_edit import add_menus_folder, list_menus_folders

    try:
        if folders := list_menus_folders(text):
            return text, path.parent / folders[0]
        return add_menus_folder(text, FOLDER), path.parent / FOLDER
    except UneditableLayout:
        raise CliError(f"write `menus: [{FOLDER}]` into {path} first, so that there is a place for modes") from None


def check_modes(arguments: argparse.Namespace, settings: "Settings", text: str) -> None:
    from mcp_server.config.faults import ConfigFaults
    from mcp_server.config.load import load_configuration

    assert settings.config is not None
    trial = load_configuration(settings, arguments.packs, texts={settings.config: text})
    if isinstance(trial, ConfigFaults):
        raise CliError("\n".join(["the modes would have a fault:", *map(str, trial.faults)]))
