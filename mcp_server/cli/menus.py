"""`menugate menus`: what is on the menu, and what does it cost a model?

Tokens are counted in the o200k encoding, which is close enough for every host's. Counted is what hosts put before a
model: of each listed tool its name, description and schemas, as compact JSON, and the instructions. All of it comes
from the code that serves.
"""

import argparse
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, note, print_json, print_table, say
from mcp_server.cli.parser import (
    CommandGroup,
    add_json,
    add_place,
    add_posture,
    load_valid_configuration,
    settings_from_arguments,
)

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.model.menus import Listing, Menus, Mode
    from mcp_server.model.tools import Tool

READ = ("name", "description", "inputSchema", "outputSchema")
REVISION = "2025-11-25"
SIGNS_PER_TOKEN = 4.4
"""Of tool lists and instructions; other languages than English and denser JSON have fewer."""


EXAMPLES = """
menugate menus                  every mode, with its number and when to enter it
menugate menus swe              the tools of one mode, by name, number, title or trigger
menugate menus --tokens         what each listing and each mode costs a model
menugate menus data --json      for a program
"""
ESTIMATE = "The token counts are an estimate by length; `pip install 'menugate[tokens]'` makes them exact."
NUMBERS = ("number", "tools", "tokens")
FACES = {
    "masked": "the six meta-tools",
    "carried": "and the two carriers",
    "stable": "the same eight, whatever the mode",
    "flat": "every tool at once",
}


def add(commands: CommandGroup) -> None:
    one = commands.add("menus", "show the modes and their tools, and what they cost a model", EXAMPLES, run)
    one.add_argument("mode", nargs="?", metavar="MODE", help="show the tools of this mode")
    one.add_argument("--tokens", action="store_true", help="count what a model has to read (o200k)")
    add_place(one)
    add_posture(one)
    add_json(one)


def run(arguments: argparse.Namespace) -> int:
    found = load_valid_configuration(arguments, settings_from_arguments(arguments))
    spent: MenuCosts | None = None
    if arguments.tokens:
        spent = measure_costs(found)
        if not spent.exact and not arguments.json:
            note(ESTIMATE)
    if arguments.mode is not None:
        show_mode(found, find_mode_by_wish(arguments.mode, found.policy.menus), spent, arguments.json)
    else:
        show_modes(found, spent, arguments.json)
    return 0


def find_mode_by_wish(wish: str, menus: "Menus") -> "Mode":
    """The mode that is meant, by the same router that `menu_enter` asks."""
    from mcp_server.model.text import quote_text
    from mcp_server.policy.router import Route, RouteChoice, route

    match route(wish, menus):
        case Route(mode=name):
            mode = menus.get(name)
            assert mode is not None, "the router answers with modes of the menus it was given"
            return mode
        case RouteChoice(candidates=candidates):
            lines = "\n".join(f"  {number}. {label}" for number, label in candidates)
            raise CliError(f"{quote_text(wish)} does not name one mode; it may be one of these:\n{lines}", code=2)
        case _:
            names = ", ".join(mode.name for mode in menus)
            raise CliError(f"no mode answers to {quote_text(wish)}; there are {names}.", code=2)


def show_modes(found: "Configuration", spent: "MenuCosts | None", for_programs: bool) -> None:
    rows = [
        {
            "number": number,
            "mode": mode.name,
            "title": mode.title,
            "tools": len(mode.tools),
            "when": mode.when,
            **({"tokens": spent.modes[mode.name]} if spent else {}),
        }
        for number, mode in enumerate(found.policy.menus, 1)
    ]
    if for_programs:
        print_json({"modes": rows} | ({"tokens": to_json(spent)} if spent else {}))
        return
    columns = ("number", "mode", "title", "tools", *(["tokens"] if spent else []), "when")
    numbers = [at for at, column in enumerate(columns) if column in NUMBERS]
    print_table(
        [[f"{row[column]:,}" if column in NUMBERS else str(row[column]) for column in columns] for row in rows],
        columns,
        numbers,
    )
    if spent:
        show_root_costs(spent)


def show_root_costs(spent: "MenuCosts") -> None:
    """What a model reads before it has done anything, and how much of the whole list that spares it."""
    flat = max(spent.root.values())
    say(f"\nAt ROOT a model reads, with {spent.instructions:,} tokens of instructions:")
    rows = [
        (str(face), f"{count:,}", f"{100 - count * 100 // flat} % less" if count < flat else "", FACES[face])
        for face, count in spent.root.items()
    ]
    print_table(rows, ("listing", "tokens", "than flat", ""), right=(1,))
    say("A mode adds its own to the lists that change.")


def to_json(spent: "MenuCosts") -> dict[str, Any]:
    return {
        "encoding": "o200k",
        "exact": spent.exact,
        "instructions": spent.instructions,
        "root": {str(face): count for face, count in spent.root.items()},
        "modes": dict(spent.modes),
    }


def show_mode(found: "Configuration", mode: "Mode", spent: "MenuCosts | None", for_programs: bool) -> None:
    tools = [found.policy.tools[name] for name in mode.tools]
    withheld = find_hidden_tools(found, mode)
    if for_programs:
        print_json(
            {
                "mode": mode.name,
                "title": mode.title,
                "description": mode.description,
                "triggers": mode.triggers,
                "tools": [tool_to_json(tool, withheld.get(tool.name)) for tool in tools],
            }
            | ({"tokens": spent.modes[mode.name], "exact": spent.exact} if spent else {})
        )
        return
    from mcp_server.model.schema import format_brief_schema

    say((f"{mode.title} ({mode.name})", "bold"), f", {len(tools)} tools")
    say(mode.description)
    if mode.triggers:
        say(f"Also entered by: {', '.join(mode.triggers)}.")
    if spent:
        say(f"Adds {'' if spent.exact else 'about '}{spent.modes[mode.name]:,} tokens to the list.")
    say()
    for tool in tools:
        code = withheld.get(tool.name)
        say(
            (tool.name, "cyan"),
            f"({format_brief_schema(tool.arguments)})",
            (f"  hidden: {code}", "yellow") if code else "",
        )
        say(f"    {tool.description.partition('. ')[0].rstrip('.')}.")


def tool_to_json(tool: "Tool", withheld: str | None) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "profile": tool.profile,
        "effect": tool.effect,
        "arguments": tool.arguments,
        "hidden": withheld,
    }


def find_hidden_tools(found: "Configuration", mode: "Mode") -> dict[str, str]:
    """The mode's tools that are not shown under this posture, and the code that says why."""
    from mcp_server.model.policy import Call, Verdict
    from mcp_server.model.sessions import Session
    from mcp_server.policy.decision import decide

    policy, session = found.policy, Session(id="", principal="", mode=mode.name)
    answers = {name: decide(policy.tools[name], Call(name), session, found.posture, policy) for name in mode.tools}
    return {name: str(answer.code) for name, answer in answers.items() if answer.verdict is Verdict.DENY}


@dataclass(frozen=True, slots=True)
class TokenCounter:
    count: Callable[[str], int]
    exact: bool


@cache
def get_token_counter() -> TokenCounter:
    """The real encoding where the extra `tokens` is installed, an estimate by length where it is not."""
    try:
        # The package's compiled part has no types. Its counts equal those of two other counters on some 350 texts.
        encoding: Any = importlib.import_module("rs_bpe.bpe").openai.o200k_base()
    except ImportError:
        return TokenCounter(estimate_tokens, exact=False)
    return TokenCounter(lambda text: int(encoding.count(text)), exact=True)


def estimate_tokens(text: str) -> int:
    plain = sum(sign.isascii() for sign in text)
    return round(plain / SIGNS_PER_TOKEN + (len(text) - plain) * 0.8)


def count_tokens(value: Any) -> int:
    """A text as it is; anything else as the compact JSON a host puts before a model."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return get_token_counter().count(text)


@dataclass(frozen=True, slots=True)
class MenuCosts:
    exact: bool
    instructions: int
    root: Mapping["Listing", int]
    """What a client at ROOT gets to read, under each listing, instructions included."""
    modes: Mapping[str, int]
    """What entering a mode adds to a list that changes with it."""


def measure_costs(found: "Configuration") -> MenuCosts:
    from mcp_server.compose import format_endpoint_instructions
    from mcp_server.model.menus import Listing
    from mcp_server.model.sessions import Session
    from mcp_server.wire.listings import Listings

    listings = Listings(found.policy, found.library.hosts, None)
    at_root = Session(id="", principal="")

    def count_list_tokens(face: Listing, session: Session) -> int:
        shown = (
            listings.get_prepared_tool(REVISION, name) for name in listings.get_tool_names(face, session, found.posture)
        )
        return count_tokens([{key: tool[key] for key in READ if key in tool} for tool in shown])

    words = count_tokens(format_endpoint_instructions(found, None))
    before = count_list_tokens(Listing.MASKED, at_root)
    return MenuCosts(
        exact=get_token_counter().exact,
        instructions=words,
        root={face: count_list_tokens(face, replace(at_root, flat=face is Listing.FLAT)) + words for face in Listing},
        modes={
            mode.name: count_list_tokens(Listing.MASKED, replace(at_root, mode=mode.name)) - before
            for mode in found.policy.menus
        },
    )
