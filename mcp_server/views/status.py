"""What is to be said of this workspace? Its law and limits, its guards, and what is remembered, as plain values."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import when
from mcp_server.views.posture import serving

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.settings import Settings
    from mcp_server.state.engine.rows import Row
    from mcp_server.state.reader import Reader
    from mcp_server.state.running_calls import RunningWork

REFUSALS = 5


def collected(settings: "Settings", found: "Configuration", state: "Reader | None") -> dict[str, Any]:
    from mcp_server.config.load import ceiling_set_by
    from mcp_server.installation import inside, linked
    from mcp_server.state.keys import unfit_keys

    policy = found.policy
    facts: dict[str, Any] = {
        "workspace": settings.workspace,
        "keys": {"folder": settings.secrets, "last": settings.keys_last or None},
        "foreign": settings.foreign,
        "unfit_keys": list(unfit_keys(settings.secrets)),
        "config": settings.config,
        "ran": state is not None,
        "ceiling": policy.ceiling,
        "ceiling_set_by": ceiling_set_by(found, settings),
        "modes": len(policy.menus.modes),
        "tools": len(policy.tools),
        "rules": len(policy.rules.every),
        "installation": {"folder": sys.prefix, "inside": inside(settings, found), "linked": len(linked())},
        "guards": guards(settings, found),
        "review": reviewed_by(found),
    }
    return facts | at_present(settings) | (remembered(settings, state) if state else {})


def at_present(settings: "Settings") -> dict[str, Any]:
    """What runs for this account, also in a server that keeps its state with other keys."""
    from mcp_server.state.running_calls import at_work

    clients, works = at_work(settings.every_state)
    return {"clients": [asdict(one) for one in clients], "calls": [work_in_json(one) for one in works]}


def reviewed_by(found: "Configuration") -> dict[str, str] | None:
    """Who is sent what a run came to; it leaves this machine, so the person sees it where they look first."""
    wish = found.library.config.review
    return {"model": wish.model, "place": wish.place} if wish else None


def guards(settings: "Settings", found: "Configuration") -> dict[str, str]:
    """Which of their ways the guards take on this machine; tried out, because a kernel may only seem to have it."""
    import asyncio

    from mcp_server.guards.openat import by_kernel, chosen
    from mcp_server.guards.processes.build import rungs
    from mcp_server.guards.processes.choose import SandboxChooser

    paths = "openat2" if chosen() is by_kernel else "step by step, because this kernel has no openat2"
    shut_in = asyncio.run(SandboxChooser(rungs(settings.search_path), found.library.config.sandbox).described())
    return {"paths": paths, "search": search_engine(settings), "sandbox": shut_in}


def search_engine(settings: "Settings") -> str:
    import tempfile

    from mcp_server.guards.jail import Jail
    from mcp_server.guards.search.ripgrep_run import find_ripgrep
    from mcp_server.guards.search.search import FileSearch
    from mcp_server.model.files import Search

    with tempfile.TemporaryDirectory(prefix="menugate-") as folder:
        (Path(folder) / "one.txt").write_text("one\n")
        program = find_ripgrep(settings.search_path)
        engine = FileSearch(Jail(Path(folder)), ripgrep=program).grep(Search("one")).engine
    if engine == "ripgrep":
        return "ripgrep, shut in"
    return "plain Python, because ripgrep " + ("cannot be shut in here" if program else "is not installed")


def remembered(settings: "Settings", state: "Reader") -> dict[str, Any]:
    from mcp_server.state.engine.disk import no_room
    from mcp_server.state.engine.rows import LedgerFilter
    from mcp_server.state.running_calls import at_work
    from mcp_server.state.servers import unreadable

    refusals = state.rows(LedgerFilter(kinds=("refusal", "question"), tail=REFUSALS))
    loose, misfit = state.anchoring()
    lost = state.lost()
    clients, _ = at_work([settings.state])
    size = sum(path.stat().st_size for path in settings.state.glob("state.db*") if path.is_file())
    return {
        "state": {
            "file": settings.state / "state.db",
            "bytes": size,
            "lost": lost or None,
            "full": no_room(settings.state),
        },
        "running": serving(state),
        "unreadable": unreadable(settings.state) or None,
        "sessions": len({kept.session.id for kept in state.sessions()} | {one.session for one in clients}),
        "ledger": {
            "rows": state.head(),
            "not_anchored": loose,
            "fault": misfit or None,
            "unfinished": state.unfinished(),
        },
        "unread": len([one for one in state.messages() if not one.read]),
        "refusals": [refusal(row) for row in refusals],
    }


def work_in_json(one: "RunningWork") -> dict[str, Any]:
    return {
        "tool": one.tool,
        "about": one.about,
        "since": when(one.since),
        "principal": one.principal,
        "session": one.session,
        "client": one.client or None,
        "server": one.server,
        "processes": one.living,
        "in_background": one.over,
    }


def refusal(row: "Row") -> dict[str, Any]:
    wanted = ("tool", "code", "layer", "reason", "session")
    return {"seq": row.seq, "at": when(row.at), **{key: row.fields.get(key) for key in wanted}}
