"""`menugate menus`: which modes and tools exist, and how many tokens do they cost?

Tokens are counted in the o200k encoding, which is close enough to what any host uses. The count covers what a host
shows a model: the name, description and schemas of each listed tool as compact JSON, and the instructions. All of it
comes from the code that serves.
"""

import argparse
import importlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.cli.menu_proposals import PROPOSE, run_propose
from mcp_server.cli.output import CliError, note, print_json, print_table, say, say_prose
from mcp_server.cli.parser import (
    CommandGroup,
    add_json,
    add_place,
    add_posture,
    load_valid_configuration,
    settings_from_arguments,
)
from mcp_server.cli.usage import join_names
from mcp_server.model.text import format_count

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.model.menus import Listing, Menus, Mode
    from mcp_server.model.tools import Tool

READ = ("name", "description", "inputSchema", "outputSchema")
CHARS_PER_TOKEN = 4.4
"""Characters per token in tool lists and instructions; dense JSON and languages other than English have fewer."""


EXAMPLES = """
menugate menus                 every mode, and when a model should enter it
menugate menus swe             the tools of one mode, given its name, number, title or trigger
menugate menus --tokens        the tokens that each listing and each mode costs
menugate menus data --json     for a program
menugate menus propose         modes for the tools of your servers, and their price
menugate menus propose shop    write this proposed mode
"""
ESTIMATE = "The token counts are estimates; for exact ones, `pip install 'menugate[tokens]'`."
NUMBERS = ("number", "tools", "tokens")
LISTINGS = {
    "masked": "the six meta-tools",
    "carried": "the meta-tools and the two carriers",
    "stable": "the same eight in every mode",
    "flat": "every tool at once",
}


def add(commands: CommandGroup) -> None:
    command = commands.add("menus", EXAMPLES, run)
    command.add_argument(
        "mode", nargs="?", metavar="MODE", help="show the tools of this mode only; or `propose` modes for your servers"
    )
    command.add_argument("names", nargs="*", metavar="NAME", help="after `propose`: the proposed modes to write")
    command.add_argument("--tokens", action="store_true", help="count the tokens a model has to read (o200k)")
    add_place(command)
    add_posture(command)
    add_json(command)


def run(arguments: argparse.Namespace) -> int:
    if arguments.mode == PROPOSE:
        return run_propose(arguments)
    if arguments.names:
        raise CliError("name one mode; only `propose` goes with more words.", code=2)
    configuration = load_valid_configuration(arguments, settings_from_arguments(arguments))
    costs: MenuCosts | None = None
    if arguments.tokens:
        costs = measure_costs(configuration)
        if not costs.exact and not arguments.json:
            note(ESTIMATE)
    if arguments.mode is not None:
        show_mode(configuration, find_mode_by_words(arguments.mode, configuration.policy.menus), costs, arguments.json)
    else:
        show_modes(configuration, costs, arguments.json)
    return 0


def find_mode_by_words(words: str, menus: "Menus") -> "Mode":
    """Find the mode that `menu_enter` would enter for these words."""
    from mcp_server.model.text import quote_text
    from mcp_server.policy.router import Route, RouteChoice, route

    match route(words, menus):
        case Route(mode=name):
            mode = menus.by_name.get(name)
            assert mode is not None, "the router answers with modes of the menus it was given"
            return mode
        case RouteChoice(candidates=candidates):
            lines = "\n".join(f"  {number}. {label}" for number, label in candidates)
            raise CliError(f"{quote_text(words)} matches no single mode; did you mean one of these?\n{lines}", code=2)
        case _:
            names = join_names((mode.name for mode in menus), "and")
            raise CliError(f"there is no mode {quote_text(words)}; the modes are {names}.", code=2)


def show_modes(configuration: "Configuration", costs: "MenuCosts | None", for_programs: bool) -> None:
    rows = [
        {
            "number": number,
            "mode": mode.name,
            "title": mode.title,
            "tools": len(mode.tools),
            "when": mode.when,
            **({"tokens": costs.modes[mode.name]} if costs else {}),
        }
        for number, mode in enumerate(configuration.policy.menus, 1)
    ]
    if for_programs:
        print_json({"modes": rows} | ({"tokens": to_json(costs)} if costs else {}))
        return
    columns = ("number", "mode", "title", "tools", *(["tokens"] if costs else []), "when")
    numbers = [at for at, column in enumerate(columns) if column in NUMBERS]
    print_table(
        [[f"{row[column]:,}" if column in NUMBERS else str(row[column]) for column in columns] for row in rows],
        columns,
        numbers,
    )
    if costs:
        show_root_costs(costs)


def show_root_costs(costs: "MenuCosts") -> None:
    """Show what a model reads before its first call, and how much less that is than the full list."""
    flat = max(costs.root.values())
    say()
    tokens = format_count(costs.instructions, "token")
    say_prose(f"What a model reads before it enters a mode, including {tokens} of instructions:")
    rows = [
        (str(listing), f"{count:,}", f"{100 - count * 100 // flat} % less" if count < flat else "", LISTINGS[listing])
        for listing, count in costs.root.items()
    ]
    print_table(rows, ("listing", "tokens", "than flat", ""), right=(1,))
    say_prose("Entering a mode adds that mode's tokens to the masked and carried lists.")


def to_json(costs: "MenuCosts") -> dict[str, Any]:
    return {
        "encoding": "o200k",
        "exact": costs.exact,
        "instructions": costs.instructions,
        "root": {str(listing): count for listing, count in costs.root.items()},
        "modes": dict(costs.modes),
    }


def show_mode(configuration: "Configuration", mode: "Mode", costs: "MenuCosts | None", for_programs: bool) -> None:
    tools = [configuration.policy.tools[name] for name in mode.tools]
    hidden_tools = find_hidden_tools(configuration, mode)
    if for_programs:
        print_json(
            {
                "mode": mode.name,
                "title": mode.title,
                "description": mode.description,
                "triggers": mode.triggers,
                "tools": [tool_to_json(tool, hidden_tools.get(tool.name)) for tool in tools],
            }
            | ({"tokens": costs.modes[mode.name], "exact": costs.exact} if costs else {})
        )
        return
    from mcp_server.model.schema import format_brief_schema

    say((f"{mode.title} ({mode.name})", "bold"), f", {format_count(len(tools), 'tool')}")
    say_prose(mode.description)
    if mode.triggers:
        say_prose(f"Other names: {', '.join(mode.triggers)}.")
    if costs:
        tokens = format_count(costs.modes[mode.name], "token")
        say_prose(f"Adds {'' if costs.exact else 'about '}{tokens} to the list.")
    say()
    for tool in tools:
        code = hidden_tools.get(tool.name)
        say(
            (tool.name, "cyan"),
            f"({format_brief_schema(tool.offered)})",
            (f"  hidden: {code}", "yellow") if code else "",
        )
        say_prose(f"{tool.description.partition('. ')[0].rstrip('.')}.", indent="    ")


def tool_to_json(tool: "Tool", hiding_code: str | None) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "profile": tool.profile,
        "effect": tool.effect,
        "arguments": tool.offered,
        "hidden": hiding_code,
    }


def find_hidden_tools(configuration: "Configuration", mode: "Mode") -> dict[str, str]:
    """Find the tools of the mode that this posture hides, each with the code that says why."""
    from mcp_server.model.policy import Call, Verdict
    from mcp_server.model.sessions import Session
    from mcp_server.policy.decision import decide

    policy, session = configuration.policy, Session(id="", principal="", mode=mode.name)
    answers = {
        name: decide(policy.tools[name], Call(name), session, configuration.posture, policy) for name in mode.tools
    }
    return {name: str(answer.code) for name, answer in answers.items() if answer.verdict is Verdict.DENY}


class TokenCounter(Struct, frozen=True):
    count: Callable[[str], int]
    exact: bool


@cache
def get_token_counter() -> TokenCounter:
    """Count with the real encoding if the extra `tokens` is installed, else estimate by length."""
    try:
        # The compiled part has no types. Its counts matched those of two other tokenizers on 350 texts.
        encoding: Any = importlib.import_module("rs_bpe.bpe").openai.o200k_base()
    except ImportError:
        return TokenCounter(estimate_tokens, exact=False)
    return TokenCounter(lambda text: int(encoding.count(text)), exact=True)


def estimate_tokens(text: str) -> int:
    plain = sum(sign.isascii() for sign in text)
    return round(plain / CHARS_PER_TOKEN + (len(text) - plain) * 0.8)


def count_tokens(value: Any) -> int:
    """Count text as it is, and anything else as the compact JSON that a host shows a model."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return get_token_counter().count(text)


class MenuCosts(Struct, frozen=True):
    exact: bool
    instructions: int
    root: Mapping["Listing", int]
    """The tokens that a client reads at ROOT under each listing, including the instructions."""
    modes: Mapping[str, int]
    """The tokens that entering each mode adds to a list that changes with the mode."""


def measure_costs(configuration: "Configuration") -> MenuCosts:
    from mcp_server.model.menus import Listing
    from mcp_server.model.sessions import Session
    from mcp_server.wire.instructions import format_endpoint_instructions
    from mcp_server.wire.listings import Listings
    from mcp_server.wire.revisions import SHOWN

    listings = Listings(configuration.policy, configuration.library.hosts, None)
    at_root = Session(id="", principal="")

    def count_list_tokens(listing: Listing, session: Session) -> int:
        listed = (
            listings.get_prepared_tool(SHOWN, name)
            for name in listings.get_tool_names(listing, session, configuration.posture)
        )
        return count_tokens([{key: tool[key] for key in READ if key in tool} for tool in listed])

    instruction_tokens = count_tokens(format_endpoint_instructions(configuration, None))
    root_tokens = count_list_tokens(Listing.MASKED, at_root)
    return MenuCosts(
        exact=get_token_counter().exact,
        instructions=instruction_tokens,
        root={
            listing: count_list_tokens(listing, replace(at_root, flat=listing is Listing.FLAT)) + instruction_tokens
            for listing in Listing
        },
        modes={
            mode.name: count_list_tokens(Listing.MASKED, replace(at_root, mode=mode.name)) - root_tokens
            for mode in configuration.policy.menus
        },
    )
