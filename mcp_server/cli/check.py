"""`menugate check`: are the files on disk valid? It shows every mistake at once, each with its place."""

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import print_json, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_json, add_place, add_posture, format_faults, settings_from_arguments
from mcp_server.cli.usage import join_names
from mcp_server.model.text import format_count
from mcp_server.views.status import describe_configuration

if TYPE_CHECKING:
    from mcp_server.config.faults import ConfigFault
    from mcp_server.config.load import Configuration
    from mcp_server.config.upstreams import UpstreamFault
    from mcp_server.settings import Settings

EXAMPLES = """
menugate check                             the built-in menus, your modes and your menugate.yaml
menugate check --config ./menugate.yaml    check a configuration before you use it
menugate check --json                      the mistakes, for a program; exits 1 if there are any, not for warnings
"""


def add(commands: CommandGroup) -> None:
    command = commands.add("check", EXAMPLES, run)
    add_place(command)
    add_posture(command)
    add_json(command)


def run(arguments: argparse.Namespace) -> int:
    from mcp_server.config.load import Configuration

    settings = settings_from_arguments(arguments)
    configuration = check_configuration(settings, arguments)
    if not isinstance(configuration, Configuration):
        if arguments.json:
            print_json({"ok": False, "config": settings.config, "faults": [to_json(fault) for fault in configuration]})
        else:
            say(format_faults(configuration, settings))
        return 1
    policy, upstreams = configuration.policy, configuration.library.config.upstreams
    faults, warnings = (upstreams.faults, upstreams.warnings) if upstreams else ((), ())
    counts = {"modes": len(policy.menus.modes), "tools": len(policy.tools), "rules": len(policy.rules.every)}
    not_trusted = [] if configuration.trusted else [*configuration.own.widening_rules, *configuration.own.prompts]
    if arguments.json:
        told = {"faults": upstream_faults_to_json(faults), "warnings": upstream_faults_to_json(warnings)}
        print_json({"ok": not faults, "config": settings.config, **told, **counts, "set_aside": len(not_trusted)})
        return 1 if faults else 0
    show_upstream_faults(faults, warnings)
    valid = "Everything else is valid" if faults else "All valid"
    say_prose(f"{valid}: {describe_configuration(**counts)}; configuration {settings.config or 'none'}.")
    if not_trusted:
        more = format_count(len(not_trusted), "allow rule or prompt", "allow rules and prompts")
        say_prose(f"Not in force until you trust this folder: {more}; see `menugate trust --show`.")
    return 1 if faults else 0


def show_upstream_faults(faults: "Sequence[UpstreamFault]", warnings: "Sequence[UpstreamFault]") -> None:
    """Show what is wrong with servers under `mcpServers`; a wrong one harms no other."""
    if faults:
        count, them = format_count(len(faults), "fault"), "it" if len(faults) == 1 else "them"
        names = join_names(dict.fromkeys(one.server for one in faults), "and")
        say("\n".join([f"{count}; until you fix {them}, menugate runs without {names}:", *map(str, faults)]))
    if warnings:
        say("\n".join([f"{format_count(len(warnings), 'warning')}:", *map(str, warnings)]))


def upstream_faults_to_json(faults: "Sequence[UpstreamFault]") -> list[dict[str, Any]]:
    return [to_json(one.fault) | {"server": one.server} for one in faults]


def check_configuration(settings: "Settings", arguments: argparse.Namespace) -> "Configuration | list[ConfigFault]":
    """Load the configuration, or return everything wrong with it, including what only a host would notice."""
    from mcp_server.config.faults import ConfigFault, ConfigFaults
    from mcp_server.config.load import load_configuration
    from mcp_server.config.prompt_checks import find_prompt_faults
    from mcp_server.settings import BuildError

    try:
        configuration = load_configuration(settings, arguments.packs)
    except BuildError as wrong:
        return [ConfigFault("packs", 0, "", str(wrong))]
    if isinstance(configuration, ConfigFaults):
        return list(configuration)
    return [*find_prompt_faults(configuration.words), *find_host_faults(configuration)] or configuration


def find_host_faults(configuration: "Configuration") -> Iterator["ConfigFault"]:
    """Find what a host would cut off or refuse once menus and tools are combined."""
    from mcp_server.config.faults import ConfigFault
    from mcp_server.config.menu_coverage import LONGEST_DESCRIPTION, find_tool_source
    from mcp_server.config.prompts import PromptError
    from mcp_server.wire.instructions import MAX_BYTES, format_endpoint_instructions
    from mcp_server.wire.revisions import SHOWN
    from mcp_server.wire.translate import describe_tool, prepare_tool

    menus = configuration.policy.menus
    for pinned in (None, *(mode.name for mode in menus)):
        try:
            text = format_endpoint_instructions(configuration, pinned)
        except PromptError:
            # Already reported with the other prompts.
            return
        if text.endswith("…") and len(text.encode()) > MAX_BYTES - 10:
            where = f"the endpoint of mode `{pinned}`" if pinned else "ROOT"
            message = (
                f"the instructions for {where} are longer than {MAX_BYTES} bytes; "
                "shorten `title` and `when` of the modes"
            )
            yield ConfigFault("menus", 0, "", message)
    for tool in configuration.policy.tools.values():
        size = len(describe_tool(tool, menus).encode())
        if size > LONGEST_DESCRIPTION:
            message = (
                f"its description has {size} bytes, including the modes it names; the limit is {LONGEST_DESCRIPTION}. "
                "Shorten the `when` of those modes"
            )
            yield ConfigFault("menus", 0, tool.name, message)
        try:
            prepare_tool(tool, menus, SHOWN)
        except ValueError as wrong:
            place = find_tool_source(tool)
            first = str(wrong).partition("\n")[0]
            yield ConfigFault(place.file, place.line, tool.name, f"the protocol cannot represent this tool: {first}")


def to_json(fault: "ConfigFault") -> dict[str, Any]:
    return {
        "file": fault.file,
        "line": fault.line or None,
        "column": fault.column or None,
        "key": fault.key or None,
        "message": fault.message,
        "nearest": fault.nearest or None,
    }
