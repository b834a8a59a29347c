"""`menugate status` and `menugate messages`: how do things stand here, and what was left for the person?"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_server.cli.command import Commands, add_json, add_place, add_posture, law_of, settings_of
from mcp_server.cli.paper import as_json, note, say, table, when
from mcp_server.cli.posture.holding import holding, in_json, remembering, serving
from mcp_server.cli.posture.shown import entitle, show_badge, show_to_come

if TYPE_CHECKING:
    from mcp_server.law import Law
    from mcp_server.settings import Settings
    from mcp_server.state import Message, Row
    from mcp_server.state.reader import Reader

STATUS = """
menugate status                             this folder
menugate status --workspace ~/code/app      another one
menugate status --json                      for a program
"""
MESSAGES = """
menugate messages                           what was left for you since you last looked; then it counts as read
menugate messages --keep                    the same, and it stays unread
menugate messages --all                     what you have read before as well
menugate messages --json --keep             for a program
"""
REFUSALS = 5
NOT_YET = "menugate has not run here yet."


def add(commands: Commands) -> None:
    one = commands.add("status", "show how things stand: posture, state, ledger, guards, refusals", STATUS, run)
    add_place(one)
    add_posture(one)
    add_json(one)
    one = commands.add("messages", "show what tools and models left for you to read", MESSAGES, run_messages)
    one.add_argument("--all", action="store_true", help="those you have read as well")
    one.add_argument("--keep", action="store_true", help="leave them unread")
    add_place(one)
    add_json(one)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    found = law_of(arguments, settings)
    with remembering(settings) as state:
        stands = holding(settings, found, state, bool(arguments.profile))
        facts = collected(settings, found, state) | in_json(stands)
    if arguments.json:
        as_json(facts)
        return 0
    show_badge(stands.posture)
    show_to_come(stands)
    tell(facts)
    entitle(stands.posture, settings.workspace.name)
    return 0


def collected(settings: "Settings", found: "Law", state: "Reader | None") -> dict[str, Any]:
    from mcp_server.law import ceiling_set_by

    policy = found.policy
    facts: dict[str, Any] = {
        "workspace": settings.workspace,
        "config": settings.config,
        "ran": state is not None,
        "ceiling": policy.ceiling,
        "ceiling_set_by": ceiling_set_by(settings, found.library),
        "modes": len(policy.menus.modes),
        "tools": len(policy.tools),
        "rules": len(policy.rules.every),
        "guards": guards(settings, found),
    }
    return facts | (remembered(settings, state) if state else {})


def guards(settings: "Settings", found: "Law") -> dict[str, str]:
    """Which of their ways the guards take on this machine; tried out, because a kernel may only seem to have it."""
    import asyncio

    from mcp_server.guards.beneath import by_kernel, chosen
    from mcp_server.guards.processes import Ladder, rungs

    paths = "openat2" if chosen() is by_kernel else "step by step, because this kernel has no openat2"
    shut_in = asyncio.run(Ladder(rungs(settings.search_path), found.library.config.sandbox).described())
    return {"paths": paths, "search": search_engine(settings), "sandbox": shut_in}


def search_engine(settings: "Settings") -> str:
    import tempfile

    from mcp_server.guards.jail import Jail
    from mcp_server.guards.search import Finder, find_ripgrep
    from mcp_server.model.ports.files import Search

    with tempfile.TemporaryDirectory(prefix="menugate-") as folder:
        (Path(folder) / "one.txt").write_text("one\n")
        program = find_ripgrep(settings.search_path)
        engine = Finder(Jail(Path(folder)), ripgrep=program).grep(Search("one")).engine
    if engine == "ripgrep":
        return "ripgrep, shut in"
    return "plain Python, because ripgrep " + ("cannot be shut in here" if program else "is not installed")


def remembered(settings: "Settings", state: "Reader") -> dict[str, Any]:
    from mcp_server.state import Wanted

    refusals = state.rows(Wanted(kinds=("refusal", "question"), tail=REFUSALS))
    loose, misfit = state.anchoring()
    size = sum(path.stat().st_size for path in settings.state.glob("state.db*") if path.is_file())
    return {
        "state": {"file": settings.state / "state.db", "bytes": size, "lost": state.lost() or None},
        "running": serving(state),
        "sessions": len(state.sessions()),
        "ledger": {
            "rows": state.head(),
            "not_anchored": loose,
            "fault": misfit or None,
            "unfinished": state.unfinished(),
        },
        "unread": len([one for one in state.messages() if not one.read]),
        "refusals": [refusal(row) for row in refusals],
    }


def refusal(row: "Row") -> dict[str, Any]:
    wanted = ("tool", "code", "layer", "reason", "session")
    return {"seq": row.seq, "at": when(row.at), **{key: row.fields.get(key) for key in wanted}}


def tell(facts: dict[str, Any]) -> None:
    rows = [("workspace", str(facts["workspace"])), ("config", str(facts["config"] or "none"))]
    for number, (axis, one) in enumerate(facts["posture"].items()):
        value = {True: "on", False: "off"}.get(one["value"], one["value"])
        rows.append(("" if number else "posture", f"{axis.replace('_', ' '):<12} {value:<12} {one['from']}"))
    rows += [
        ("ceiling", f"{facts['ceiling']}, set by {facts['ceiling_set_by']}"),
        ("menus", f"{facts['modes']} modes, {facts['tools']} tools, {facts['rules']} rules"),
        ("paths", facts["guards"]["paths"]),
        ("search", facts["guards"]["search"]),
        ("sandbox", facts["guards"]["sandbox"]),
    ]
    table(rows + (of_state(facts) if facts["ran"] else [("state", NOT_YET)]))
    if facts.get("refusals"):
        say("\nThe last calls that did not run:")
        table([(str(one["seq"]), one["at"], one["tool"], one["code"], one["reason"]) for one in facts["refusals"]])


def of_state(facts: dict[str, Any]) -> list[tuple[str, str]]:
    state, ledger = facts["state"], facts["ledger"]
    lives = ", ".join(f"process {one['pid']} since {one['since']}" for one in facts["running"])
    anchored = "anchored" if not ledger["not_anchored"] else f"the last {ledger['not_anchored']} not anchored yet"
    rows = [
        (
            "state",
            f"{state['file']}, {state['bytes'] / 1024:,.0f} KB" + (f"; {state['lost']}" if state["lost"] else ""),
        ),
        ("running", lives or "nothing at the moment"),
        ("sessions", f"{facts['sessions']:,}"),
        ("ledger", f"{ledger['rows']:,} rows, " + (ledger["fault"] or anchored)),
        ("messages", f"{facts['unread']} unread" + ("; `menugate messages` shows them" if facts["unread"] else "")),
    ]
    if ledger["unfinished"]:
        numbers = ", ".join(map(str, ledger["unfinished"][:10]))
        rows.insert(4, ("", f"without an outcome, because their process ended: {numbers}"))
    return rows


def run_messages(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    with remembering(settings) as state:
        found = [one for one in (state.messages() if state else ()) if arguments.all or not one.read]
    # Those that are new come first.
    found.sort(key=lambda one: one.read)
    if arguments.json:
        as_json([fields_of(one) for one in found])
    elif state is None:
        say(NOT_YET)
    else:
        show(found, arguments.all, settings.person)
    new = [one.id for one in found if not one.read]
    if new and not arguments.keep:
        # Who closed the pipe has not read them.
        sys.stdout.flush()
        mark(settings, new)
    return 0


def show(found: Sequence["Message"], every: bool, reader: str) -> None:
    if not found:
        say("There are no messages." if every else "There is nothing new; --all shows what you have read.")
    for one in found:
        whose = f"{one.principal}  " if one.principal not in ("", reader) else ""
        head = f"{when(one.at) if one.at else 'at a start'}  {whose}{one.session or 'menugate'}"
        say((head, "dim"), "" if one.read else ("  new", "yellow"))
        say(one.text)
        for path in one.attachments:
            say(f"  attached: {path}")
        say()


def fields_of(one: "Message") -> dict[str, Any]:
    return {
        "id": one.id,
        "at": when(one.at) if one.at else None,
        "session": one.session or None,
        "principal": one.principal or None,
        "text": one.text,
        "attachments": one.attachments,
        "read": one.read,
    }


def mark(settings: "Settings", ids: Sequence[str]) -> None:
    """From here on they count as read. Where that cannot be written they were still shown."""
    import asyncio

    from mcp_server.compose import Wall, numbered
    from mcp_server.model.ending import Refusal
    from mcp_server.state import Store

    async def marked() -> None:
        store = Store.open(settings.url, secrets=settings.secrets, clock=Wall(), new_id=numbered())
        try:
            await store.read_messages(ids)
        finally:
            await store.close()

    try:
        asyncio.run(marked())
    except Refusal as refused:
        note(f"They stay unread: {refused.problem.message}")
