"""`menugate status`: how do things stand here?"""

import argparse
import time
from typing import Any

from mcp_server.cli import servers
from mcp_server.cli.badge import set_terminal_title, show_badge, show_pending_changes
from mcp_server.cli.output import format_one_line, print_json, print_table, say
from mcp_server.cli.parser import CommandGroup, add_json, add_place, add_posture
from mcp_server.cli.servers import load_judgement
from mcp_server.views.pending import build_pending_view, show_waiting
from mcp_server.views.posture import NOT_YET, build_posture_view, open_state_reader, posture_to_json
from mcp_server.views.status import collect_status

MOST_WORKS = 20
EXAMPLES = """
menugate status                             this folder
menugate status --workspace ~/code/app      another one
menugate status --json                      for a program
"""


def add(commands: CommandGroup) -> None:
    one = commands.add("status", "show how things stand: what waits for you, posture, state, refusals", EXAMPLES, run)
    add_place(one)
    add_posture(one)
    add_json(one)


def run(arguments: argparse.Namespace) -> int:
    judged = load_judgement(arguments)
    settings, found = judged.settings, judged.law
    with open_state_reader(settings) as state:
        flagged = bool(arguments.profile or (judged.server and judged.server.profile))
        stands = build_posture_view(settings, found, state, flagged)
        waits = build_pending_view(settings, found, state, time.time_ns())
        facts = collect_status(settings, found, state) | posture_to_json(stands) | {"waiting": waits.to_json()}
    facts["servers"] = [servers.to_json(one) for one in judged.servers]
    if arguments.json:
        print_json(facts)
        return 0
    show_badge(stands.posture)
    show_pending_changes(stands)
    show_waiting(waits, settings.person)
    show_status(facts)
    for told in [told for one in judged.servers for told in one.differences]:
        say((format_one_line(told), "yellow"))
    set_terminal_title(stands.posture, settings.workspace.name)
    return 0


def show_status(facts: dict[str, Any]) -> None:
    from mcp_server.installation import describe_installation

    rows = [("workspace", str(facts["workspace"])), ("config", str(facts["config"] or "none"))]
    for number, (axis, one) in enumerate(facts["posture"].items()):
        value = {True: "on", False: "off"}.get(one["value"], one["value"])
        rows.append(("" if number else "posture", f"{axis.replace('_', ' '):<12} {value:<12} {one['from']}"))
    if low := facts["narrowed"]:
        rows.append(("narrowed", f"{low['says']} For what is usual here, type one after another:"))
        rows += [("", one) for one in low["commands"]]
    rows += [
        ("ceiling", f"{facts['ceiling']}, set by {facts['ceiling_set_by']}"),
        ("menus", f"{facts['modes']} modes, {facts['tools']} tools, {facts['rules']} rules"),
        ("paths", facts["guards"]["paths"]),
        ("search", facts["guards"]["search"]),
        ("sandbox", facts["guards"]["sandbox"]),
        ("runs from", describe_installation(facts["installation"]["inside"], facts["installation"]["linked"])),
    ]
    if one := facts["review"]:
        rows.append(("review", f"{one['model']} at {one['place']} is sent the record of every run that ends"))
    rows += format_state_rows(facts) if facts["ran"] else [("state", NOT_YET), *format_call_rows(facts, "running")]
    print_table(rows + format_key_rows(facts))
    if facts.get("refusals"):
        say("\nThe last calls that did not run:")
        print_table(
            [(str(one["seq"]), one["at"], one["tool"], one["code"], one["reason"]) for one in facts["refusals"]]
        )


def describe_work(one: dict[str, Any]) -> str:
    from mcp_server.model.text import quote_text

    name = f"`{one['tool']}`" + (f" `{one['about']}`" if one["about"] else "")
    pids = f"pid {', '.join(map(str, one['processes']))}, " if one["processes"] else ""
    behind = ", in the background" if one["in_background"] else ""
    whose = f"session {one['session']}" + (f" of {quote_text(one['client'])}" if one["client"] else "")
    return f"{name} since {one['since']}{behind} ({pids}{whose}, {one['principal']}, server {one['server']})"


def format_key_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    folder, last = facts["keys"]["folder"], facts["keys"]["last"]
    how = f"; they last {last}; MENUGATE_STATE_HOME can name a folder that keeps them" if last else ""
    rows = [("keys", f"{folder or 'none on disk'}{how}")]
    rows += [("", says) for says in facts["unfit_keys"]]
    if facts["foreign"]:
        says = "is another account's; it is left as it is, and nothing in it counts here but what narrows"
        rows.append(("", f"{facts['foreign']} {says}"))
    return rows


def format_call_rows(facts: dict[str, Any], head: str = "") -> list[tuple[str, str]]:
    shown, more = facts["calls"][:MOST_WORKS], len(facts["calls"]) - MOST_WORKS
    rows = [("" if number else head, describe_work(one)) for number, one in enumerate(shown)]
    return rows + [("", f"and {more} more; `menugate status --json` shows all of them")][: more > 0]


def format_state_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    state, ledger = facts["state"], facts["ledger"]
    by = {one["pid"]: one["config"] for one in facts["servers"] if one["config"] != str(facts["config"])}
    lives = ", ".join(
        f"process {one['pid']} since {one['since']}" + (f", by {by[one['pid']]}" if by.get(one["pid"]) else "")
        for one in facts["running"]
    )
    anchored = "anchored" if not ledger["not_anchored"] else f"the last {ledger['not_anchored']} not anchored yet"
    from mcp_server.state.engine.disk import FULL

    rows = [("disk", FULL.format(state["file"].parent))] if state["full"] else []
    rows += [
        (
            "state",
            f"{state['file']}, {state['bytes'] / 1024:,.0f} KB" + (f"; {state['lost']}" if state["lost"] else ""),
        ),
        ("running", lives or "nothing at the moment"),
        *format_call_rows(facts),
        ("sessions", facts["unreadable"] or f"{facts['sessions']:,}"),
        ("ledger", f"{ledger['rows']:,} rows, " + (ledger["fault"] or anchored)),
        ("messages", f"{facts['unread']} unread" + ("; `menugate messages` shows them" if facts["unread"] else "")),
    ]
    if ledger["unfinished"]:
        numbers = ", ".join(map(str, ledger["unfinished"][:10]))
        rows.insert(-1, ("", f"without an outcome, because their process ended: {numbers}"))
    return rows
