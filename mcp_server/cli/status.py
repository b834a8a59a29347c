"""`menugate status`: how do things stand here?"""

import argparse
import time
from typing import Any

from mcp_server.cli import servers
from mcp_server.cli.badge import entitle, show_badge, show_to_come
from mcp_server.cli.output import as_json, one_line, say, table
from mcp_server.cli.parser import Commands, add_json, add_place, add_posture
from mcp_server.cli.servers import judging
from mcp_server.views.pending import show_waiting, waiting
from mcp_server.views.posture import NOT_YET, holding, in_json, remembering
from mcp_server.views.status import collected

MOST_WORKS = 20
EXAMPLES = """
menugate status                             this folder
menugate status --workspace ~/code/app      another one
menugate status --json                      for a program
"""


def add(commands: Commands) -> None:
    one = commands.add("status", "show how things stand: what waits for you, posture, state, refusals", EXAMPLES, run)
    add_place(one)
    add_posture(one)
    add_json(one)


def run(arguments: argparse.Namespace) -> int:
    judged = judging(arguments)
    settings, found = judged.settings, judged.law
    with remembering(settings) as state:
        flagged = bool(arguments.profile or (judged.server and judged.server.profile))
        stands = holding(settings, found, state, flagged)
        waits = waiting(settings, found, state, time.time_ns())
        facts = collected(settings, found, state) | in_json(stands) | {"waiting": waits.in_json()}
    facts["servers"] = [servers.in_json(one) for one in judged.servers]
    if arguments.json:
        as_json(facts)
        return 0
    show_badge(stands.posture)
    show_to_come(stands)
    show_waiting(waits, settings.person)
    tell(facts)
    for told in [told for one in judged.servers for told in one.differs]:
        say((one_line(told), "yellow"))
    entitle(stands.posture, settings.workspace.name)
    return 0


def tell(facts: dict[str, Any]) -> None:
    from mcp_server.installation import described

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
        ("runs from", described(facts["installation"]["inside"], facts["installation"]["linked"])),
    ]
    if one := facts["review"]:
        rows.append(("review", f"{one['model']} at {one['place']} is sent the record of every run that ends"))
    rows += of_state(facts) if facts["ran"] else [("state", NOT_YET), *of_calls(facts, "running")]
    table(rows + of_keys(facts))
    if facts.get("refusals"):
        say("\nThe last calls that did not run:")
        table([(str(one["seq"]), one["at"], one["tool"], one["code"], one["reason"]) for one in facts["refusals"]])


def work_in_words(one: dict[str, Any]) -> str:
    from mcp_server.model.text import quoted

    name = f"`{one['tool']}`" + (f" `{one['about']}`" if one["about"] else "")
    pids = f"pid {', '.join(map(str, one['processes']))}, " if one["processes"] else ""
    behind = ", in the background" if one["in_background"] else ""
    whose = f"session {one['session']}" + (f" of {quoted(one['client'])}" if one["client"] else "")
    return f"{name} since {one['since']}{behind} ({pids}{whose}, {one['principal']}, server {one['server']})"


def of_keys(facts: dict[str, Any]) -> list[tuple[str, str]]:
    folder, last = facts["keys"]["folder"], facts["keys"]["last"]
    how = f"; they last {last}; MENUGATE_STATE_HOME can name a folder that keeps them" if last else ""
    rows = [("keys", f"{folder or 'none on disk'}{how}")]
    rows += [("", says) for says in facts["unfit_keys"]]
    if facts["foreign"]:
        says = "is another account's; it is left as it is, and nothing in it counts here but what narrows"
        rows.append(("", f"{facts['foreign']} {says}"))
    return rows


def of_calls(facts: dict[str, Any], head: str = "") -> list[tuple[str, str]]:
    shown, more = facts["calls"][:MOST_WORKS], len(facts["calls"]) - MOST_WORKS
    rows = [("" if number else head, work_in_words(one)) for number, one in enumerate(shown)]
    return rows + [("", f"and {more} more; `menugate status --json` shows all of them")][: more > 0]


def of_state(facts: dict[str, Any]) -> list[tuple[str, str]]:
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
        *of_calls(facts),
        ("sessions", facts["unreadable"] or f"{facts['sessions']:,}"),
        ("ledger", f"{ledger['rows']:,} rows, " + (ledger["fault"] or anchored)),
        ("messages", f"{facts['unread']} unread" + ("; `menugate messages` shows them" if facts["unread"] else "")),
    ]
    if ledger["unfinished"]:
        numbers = ", ".join(map(str, ledger["unfinished"][:10]))
        rows.insert(-1, ("", f"without an outcome, because their process ended: {numbers}"))
    return rows
