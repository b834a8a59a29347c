"""`menugate status`: which posture is in force, what is running, and what needs your attention?"""

import argparse
import time
from typing import Any

from mcp_server.cli import servers
from mcp_server.cli.badge import set_terminal_title, show_badge, show_pending_changes
from mcp_server.cli.output import print_json, print_table, say, say_foreign, say_prose
from mcp_server.cli.parser import CommandGroup, add_json, add_place, add_posture
from mcp_server.cli.servers import load_judgement
from mcp_server.config.load import get_limits
from mcp_server.model.text import format_count
from mcp_server.policy.pending import MAX_LISTED
from mcp_server.views.glances import restore_words
from mcp_server.views.pending import PendingView, build_pending_view, format_owner, format_target_options
from mcp_server.views.posture import NOT_YET, build_posture_view, open_state_reader, posture_to_json
from mcp_server.views.status import (
    collect_status,
    describe_ceiling,
    describe_configuration,
    describe_key_lifetime,
    format_upstreams,
)
from mcp_server.views.text import format_one_line, format_time

MAX_CALLS = 20
EXAMPLES = """
menugate status                           this folder
menugate status --workspace ~/code/app    another folder
menugate status --json                    for a program
"""


def add(commands: CommandGroup) -> None:
    command = commands.add("status", EXAMPLES, run)
    add_place(command)
    add_posture(command)
    add_json(command)


def run(arguments: argparse.Namespace) -> int:
    judgement = load_judgement(arguments)
    settings, configuration = judgement.settings, judgement.configuration
    limits = get_limits(configuration, settings)
    with open_state_reader(settings) as state:
        by_flag = bool(arguments.profile or (judgement.server and judgement.server.profile))
        view = build_posture_view(settings, limits, state, by_flag)
        pending = build_pending_view(settings, limits, state, time.time_ns())
        facts = collect_status(settings, configuration, state) | posture_to_json(view) | {"waiting": pending.to_json()}
    facts["servers"] = [servers.to_json(server) for server in judgement.servers]
    if arguments.json:
        print_json(facts)
        return 0
    show_badge(view.posture)
    show_pending_changes(view.choice)
    show_waiting(pending, settings.person)
    show_status(facts)
    for difference in [difference for server in judgement.servers for difference in server.differences]:
        say_prose((format_one_line(difference), "yellow"))
    set_terminal_title(view.posture, settings.workspace.name)
    return 0


def show_waiting(pending: PendingView, reader: str) -> None:
    """Show first what the user has to act on."""
    for paused_run in pending.paused[:MAX_LISTED]:
        text = format_one_line(f"paused: {paused_run.run}{format_owner(paused_run.principal, reader)}")
        say_prose((text, "yellow"), f", since {format_time(paused_run.hold.at)}")
        target = format_target_options(paused_run, reader)
        say_prose(format_one_line(f"{paused_run.hold.reason}; resume with `menugate next{target}`"), indent="  ")
    show_more_count(len(pending.paused), "menugate status --json")
    for approval in pending.asked[:MAX_LISTED]:
        text = f"needs your approval: `{approval.wanted.tool}`{format_owner(approval.wanted.principal, reader)}"
        say_prose((format_one_line(text), "yellow"), f", since {format_time(approval.asked)}")
        if glance := pending.glances.get(approval.id):
            say_foreign(f"call: {glance}", "  ", "> ")
        show_command = f"menugate approvals show {approval.id}" if approval.whole else "menugate approvals"
        answers = f"`menugate approve {approval.id}` or `menugate deny {approval.id}`"
        say_prose(f"{answers}; `{show_command}` shows the call", indent="  ")
    show_more_count(len(pending.asked), "menugate approvals")


def show_more_count(count: int, where: str) -> None:
    if count > MAX_LISTED:
        say_prose(f"and {count - MAX_LISTED} more; `{where}` lists them all", indent="  ")


def show_status(facts: dict[str, Any]) -> None:
    from mcp_server.installation import describe_installation

    rows = [("workspace", str(facts["workspace"])), ("config", str(facts["config"] or "none"))]
    for number, (axis, setting) in enumerate(facts["posture"].items()):
        value = {True: "on", False: "off"}.get(setting["value"], setting["value"])
        rows.append(("" if number else "posture", f"{axis.replace('_', ' '):<12} {value:<12} {setting['from']}"))
    if narrowing := facts["narrowed"]:
        rows.append(("narrowed", f"{narrowing['says']} To restore the usual posture, type these commands:"))
        rows += [("", command) for command in narrowing["commands"]]
    rows += [
        ("ceiling", describe_ceiling(facts["ceiling"], facts["ceiling_set_by"])),
        ("menus", describe_configuration(facts["modes"], facts["tools"], facts["rules"])),
        ("paths", facts["guards"]["paths"]),
        ("search", facts["guards"]["search"]),
        ("sandbox", facts["guards"]["sandbox"]),
        ("runs from", describe_installation(facts["installation"]["inside"], facts["installation"]["linked"])),
    ]
    if upstreams := facts["upstreams"]:
        rows.append(("upstreams", format_upstreams(upstreams)))
    if reviewer := facts["review"]:
        rows.append(("review", f"{reviewer['model']} at {reviewer['place']} gets the record of every finished run"))
    rows += format_state_rows(facts) if facts["ran"] else [("state", NOT_YET), *format_call_rows(facts, "running")]
    print_table(rows + format_key_rows(facts))
    if facts.get("refusals"):
        say("\nThe last calls that did not run:")
        for row in facts["refusals"]:
            say_foreign(f"{row['seq']:>6}  {row['at']}  {row['glance'] or row['tool']}", "", "> ")
            say_prose(
                format_one_line(f"{row['code']}: {restore_words(row['reason'] or '', row['glance'] or '')}"),
                indent="        ",
            )


def describe_work(work: dict[str, Any]) -> str:
    from mcp_server.model.text import quote_text

    name = f"`{work['tool']}`" + (f" `{work['about']}`" if work["about"] else "")
    pids = f"pid {', '.join(map(str, work['processes']))}, " if work["processes"] else ""
    background = ", in the background" if work["in_background"] else ""
    owner = f"session {work['session']}" + (f" of {quote_text(work['client'])}" if work["client"] else "")
    return f"{name} since {work['since']}{background} ({pids}{owner}, {work['principal']}, server {work['server']})"


def format_key_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    folder, lifetime = facts["keys"]["folder"], facts["keys"]["last"]
    lifetime_text = f"; {describe_key_lifetime(lifetime)}" if lifetime else ""
    rows = [("keys", f"{folder or 'none on disk'}{lifetime_text}")]
    rows += [("", text) for text in facts["unfit_keys"]]
    if facts["foreign"]:
        text = "belongs to another account; menugate leaves it alone and applies only its restrictive choices"
        rows.append(("", f"{facts['foreign']} {text}"))
    return rows


def format_call_rows(facts: dict[str, Any], head: str = "") -> list[tuple[str, str]]:
    shown, hidden_count = facts["calls"][:MAX_CALLS], len(facts["calls"]) - MAX_CALLS
    rows = [("" if number else head, describe_work(work)) for number, work in enumerate(shown)]
    return rows + [("", f"and {hidden_count} more; `menugate status --json` lists them all")][: hidden_count > 0]


def format_state_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    state, ledger = facts["state"], facts["ledger"]
    configs = {
        server["pid"]: server["config"] for server in facts["servers"] if server["config"] != str(facts["config"])
    }
    servers = ", ".join(
        f"process {server['pid']} since {server['since']}"
        + (f", with {configs[server['pid']]}" if configs.get(server["pid"]) else "")
        for server in facts["running"]
    )
    anchored = "anchored" if not ledger["not_anchored"] else f"the last {ledger['not_anchored']} not anchored yet"
    from mcp_server.state.engine.disk import FULL

    rows = [("disk", FULL.format(state["file"].parent))] if state["full"] else []
    rows += [
        (
            "state",
            f"{state['file']}, {state['bytes'] / 1024:,.0f} KB" + (f"; {state['lost']}" if state["lost"] else ""),
        ),
        ("running", servers or "nothing"),
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
