"""`menugate status`: which posture holds, what is running, and what needs the person?"""

import argparse
import time
from typing import Any

from mcp_server.cli import servers
from mcp_server.cli.badge import set_terminal_title, show_badge, show_pending_changes
from mcp_server.cli.output import print_json, print_table, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_json, add_place, add_posture
from mcp_server.cli.servers import load_judgement
from mcp_server.model.text import format_count
from mcp_server.policy.pending import MOST
from mcp_server.views.pending import PendingView, build_pending_view, format_owner, format_target_options
from mcp_server.views.posture import NOT_YET, build_posture_view, open_state_reader, posture_to_json
from mcp_server.views.status import collect_status, describe_ceiling, describe_configuration, describe_key_lifetime
from mcp_server.views.text import format_one_line, format_time

MAX_CALLS = 20
EXAMPLES = """
menugate status                           this folder
menugate status --workspace ~/code/app    another folder
menugate status --json                    for a program
"""


def add(commands: CommandGroup) -> None:
    one = commands.add("status", EXAMPLES, run)
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
    for difference in [difference for one in judged.servers for difference in one.differences]:
        say_prose((format_one_line(difference), "yellow"))
    set_terminal_title(stands.posture, settings.workspace.name)
    return 0


def show_waiting(waits: PendingView, reader: str) -> None:
    """Above everything else, because it is what the person has to act on."""
    for one in waits.paused[:MOST]:
        what = format_one_line(f"paused: {one.run}{format_owner(one.principal, reader)}")
        say_prose((what, "yellow"), f", since {format_time(one.hold.at)}")
        target = format_target_options(one, reader)
        say_prose(format_one_line(f"{one.hold.reason}; resume with `menugate next{target}`"), indent="  ")
    show_more_count(len(waits.paused), "menugate status --json")
    for asked in waits.asked[:MOST]:
        what = f"needs your approval: `{asked.wanted.tool}`{format_owner(asked.wanted.principal, reader)}"
        say_prose((format_one_line(what), "yellow"), f", since {format_time(asked.asked)}")
        shows = f"menugate approvals show {asked.id}" if asked.whole else "menugate approvals"
        answers = f"`menugate approve {asked.id}` or `menugate deny {asked.id}`"
        say_prose(f"{answers}; `{shows}` shows the call", indent="  ")
    show_more_count(len(waits.asked), "menugate approvals")


def show_more_count(count: int, where: str) -> None:
    if count > MOST:
        say_prose(f"and {count - MOST} more; `{where}` lists them all", indent="  ")


def show_status(facts: dict[str, Any]) -> None:
    from mcp_server.installation import describe_installation

    rows = [("workspace", str(facts["workspace"])), ("config", str(facts["config"] or "none"))]
    for number, (axis, one) in enumerate(facts["posture"].items()):
        value = {True: "on", False: "off"}.get(one["value"], one["value"])
        rows.append(("" if number else "posture", f"{axis.replace('_', ' '):<12} {value:<12} {one['from']}"))
    if low := facts["narrowed"]:
        rows.append(("narrowed", f"{low['says']} To get the usual posture back, type one after another:"))
        rows += [("", one) for one in low["commands"]]
    rows += [
        ("ceiling", describe_ceiling(facts["ceiling"], facts["ceiling_set_by"])),
        ("menus", describe_configuration(facts["modes"], facts["tools"], facts["rules"])),
        ("paths", facts["guards"]["paths"]),
        ("search", facts["guards"]["search"]),
        ("sandbox", facts["guards"]["sandbox"]),
        ("runs from", describe_installation(facts["installation"]["inside"], facts["installation"]["linked"])),
    ]
    if one := facts["review"]:
        rows.append(("review", f"{one['model']} at {one['place']} gets the record of every finished run"))
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
    how = f"; {describe_key_lifetime(last)}" if last else ""
    rows = [("keys", f"{folder or 'none on disk'}{how}")]
    rows += [("", says) for says in facts["unfit_keys"]]
    if facts["foreign"]:
        says = "belongs to another account; it is left alone, and only the choices in it that narrow count here"
        rows.append(("", f"{facts['foreign']} {says}"))
    return rows


def format_call_rows(facts: dict[str, Any], head: str = "") -> list[tuple[str, str]]:
    shown, more = facts["calls"][:MAX_CALLS], len(facts["calls"]) - MAX_CALLS
    rows = [("" if number else head, describe_work(one)) for number, one in enumerate(shown)]
    return rows + [("", f"and {more} more; `menugate status --json` lists them all")][: more > 0]


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
        ("running", lives or "nothing"),
        *format_call_rows(facts),
        ("sessions", facts["unreadable"] or f"{facts['sessions']:,}"),
        ("ledger", f"{format_count(ledger['rows'], 'row')}, " + (ledger["fault"] or anchored)),
        ("messages", f"{facts['unread']} unread" + ("; read them with `menugate messages`" if facts["unread"] else "")),
    ]
    if ledger["unfinished"]:
        numbers = ", ".join(map(str, ledger["unfinished"][:10]))
        rows.insert(
            -1,
            (
                "",
                f"no outcome, because the process ended: {format_count(len(ledger['unfinished']), 'row')} ({numbers})",
            ),
        )
    return rows
