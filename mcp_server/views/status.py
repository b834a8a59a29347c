"""What is the status of this workspace? Configuration and limits, guards, state and running calls."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_server.model.parts import asdict
from mcp_server.model.posture import Profile
from mcp_server.model.text import format_count
from mcp_server.views.posture import list_running_servers
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.settings import Settings
    from mcp_server.state.engine.rows import Row
    from mcp_server.state.reader import Reader
    from mcp_server.state.running_calls import RunningWork

REFUSALS = 5
LOOKED_AT = 100
"""Rows among which these are looked for."""
NO_RIPGREP = "is not installed"


def collect_status(settings: "Settings", configuration: "Configuration", state: "Reader | None") -> dict[str, Any]:
    from mcp_server.config.load import get_limits
    from mcp_server.installation import find_linked_files, find_places_in_workspace
    from mcp_server.state.keys import describe_unfit_keys

    policy = configuration.policy
    facts: dict[str, Any] = {
        "workspace": settings.workspace,
        "keys": {"folder": settings.secrets, "last": settings.keys_last or None},
        "foreign": settings.foreign_state_file,
        "unfit_keys": list(describe_unfit_keys(settings.secrets)),
        "config": settings.config,
        "ran": state is not None,
        "ceiling": policy.ceiling,
        "ceiling_set_by": get_limits(configuration, settings).set_by,
        "modes": len(policy.menus.modes),
        "tools": len(policy.tools),
        "rules": len(policy.rules.every),
        "installation": {
            "folder": sys.prefix,
            "inside": find_places_in_workspace(settings, configuration),
            "linked": len(find_linked_files()),
        },
        "guards": describe_guards(settings, configuration),
        "review": get_reviewer(configuration),
        "upstreams": describe_upstreams(configuration),
    }
    return facts | collect_running_work(settings) | (collect_remembered_state(settings, state) if state else {})


def collect_running_work(settings: "Settings") -> dict[str, Any]:
    """Collect what runs for this account, including on servers that use other keys."""
    from mcp_server.state.running_calls import read_running_calls

    clients, calls = read_running_calls(settings.all_state_folders)
    return {"clients": [asdict(entry) for entry in clients], "calls": [work_to_json(entry) for entry in calls]}


def get_reviewer(configuration: "Configuration") -> dict[str, str] | None:
    """Return the model that reviews finished runs: it may be on another machine, so the user must see it."""
    review = configuration.library.config.review
    return {"model": review.model, "place": review.place} if review else None


def describe_upstreams(configuration: "Configuration") -> dict[str, Any] | None:
    """Return which servers are behind menugate, and which are missing because of a fault; None if there are none."""
    upstreams = configuration.library.config.upstreams
    if upstreams is None or not upstreams.names:
        return None
    return {
        "mounted": [mount.name for mount in upstreams.mounts if not mount.disabled],
        "disabled": [mount.name for mount in upstreams.mounts if mount.disabled],
        "broken": list(upstreams.broken),
        "warnings": len(upstreams.warnings),
    }


def format_upstreams(facts: dict[str, Any]) -> str:
    """`3 servers, 1 disabled, 1 left out because of a fault (git); see `menugate check``."""
    parts = [format_count(len(facts["mounted"]), "server")]
    if facts["disabled"]:
        parts.append(f"{len(facts['disabled'])} disabled")
    if broken := facts["broken"]:
        parts.append(f"{len(broken)} left out because of a fault ({', '.join(broken)})")
    if facts["warnings"]:
        parts.append(format_count(facts["warnings"], "warning"))
    return ", ".join(parts) + ("; see `menugate check`" if broken or facts["warnings"] else "")


def describe_guards(settings: "Settings", configuration: "Configuration") -> dict[str, str]:
    """Describe how the guards work on this machine by trying them: a kernel may claim support that it lacks."""
    import asyncio

    from mcp_server.guards.processes.choose import SandboxChooser, find_sandboxes

    candidates = find_sandboxes(settings.search_path, settings.workspace)
    sandboxes = SandboxChooser(candidates, configuration.library.config.sandbox)
    return {
        "paths": describe_path_guard()[0],
        "search": describe_search_engine(settings),
        "sandbox": asyncio.run(sandboxes.describe_sandbox()),
    }


def describe_path_guard() -> tuple[str, bool]:
    """Describe how paths are opened, and say whether the kernel does it in one step."""
    from mcp_server.guards.openat import choose_resolver, open_by_kernel

    by_kernel = choose_resolver() is open_by_kernel
    return "openat2" if by_kernel else "step by step, because this kernel has no openat2", by_kernel


def describe_configuration(modes: int, tools: int, rules: int) -> str:
    """`4 modes, 51 tools, 1 rule`."""
    return ", ".join((format_count(modes, "mode"), format_count(tools, "tool"), format_count(rules, "rule")))


def describe_ceiling(ceiling: str, source: str) -> str:
    """Describe the highest profile, and who limits it."""
    return f"{ceiling} (no limit set)" if ceiling == Profile.UNRESTRICTED else f"{ceiling}, set by {source}"


def describe_key_lifetime(lifetime: str) -> str:
    """Say how long temporary keys last, and how to keep them."""
    return f"they last {lifetime}; set MENUGATE_STATE_HOME to a folder that keeps them"


def describe_search_engine(settings: "Settings") -> str:
    import tempfile

    from mcp_server.guards.jail import Jail
    from mcp_server.guards.search.ripgrep_run import find_ripgrep
    from mcp_server.guards.search.search import FileSearch
    from mcp_server.model.files import Search

    with tempfile.TemporaryDirectory(prefix="menugate-") as folder:
        (Path(folder) / "one.txt").write_text("one\n")
        program = find_ripgrep(settings.search_path, settings.workspace)
        engine = FileSearch(Jail(Path(folder)), ripgrep=program).grep(Search("one")).engine
    if engine == "ripgrep":
        return "ripgrep, sandboxed"
    return "plain Python, because ripgrep " + ("cannot be sandboxed here" if program else NO_RIPGREP)


def collect_remembered_state(settings: "Settings", state: "Reader") -> dict[str, Any]:
    from mcp_server.state.engine.disk import is_disk_full
    from mcp_server.state.running_calls import read_running_calls
    from mcp_server.state.servers import describe_unreadable_folder

    refusals = list_refusals(state)
    glances = state.load_glances([row.seq for row in refusals])
    unanchored, anchor_fault = state.check_anchor()
    loss = state.describe_loss()
    clients, _ = read_running_calls([settings.state])
    size = sum(path.stat().st_size for path in settings.state.glob("state.db*") if path.is_file())
    return {
        "state": {
            "file": settings.state / "state.db",
            "bytes": size,
            "lost": loss or None,
            "full": is_disk_full(settings.state),
        },
        "running": list_running_servers(state),
        "unreadable": describe_unreadable_folder(settings.state) or None,
        "sessions": len({stored.session.id for stored in state.load_sessions()} | {entry.session for entry in clients}),
        "ledger": {
            "rows": state.get_head(),
            "not_anchored": unanchored,
            "fault": anchor_fault or None,
            "unfinished": state.find_unfinished_calls(),
        },
        "unread": len([entry for entry in state.load_messages() if not entry.read]),
        "refusals": [refusal_to_json(row, glances.get(row.seq)) for row in refusals],
    }


def list_refusals(state: "Reader") -> list["Row"]:
    """List the last calls that did not run: not those that you approved, nor those that still wait for you."""
    from mcp_server.model.approvals import ApprovalAnswer
    from mcp_server.state.engine.rows import LedgerFilter

    now = time.time_ns()
    approved = {
        str(row.fields.get("question")) for row in state.read_rows(LedgerFilter(kinds=("redeemed",), tail=LOOKED_AT))
    }
    approved |= {one.id for one in state.load_approvals() if one.is_waiting(now) or one.answer is ApprovalAnswer.YES}
    rows = state.read_rows(LedgerFilter(kinds=("refusal", "question"), tail=LOOKED_AT))
    return [row for row in rows if str(row.fields.get("question")) not in approved][-REFUSALS:]


def work_to_json(work: "RunningWork") -> dict[str, Any]:
    return {
        "tool": work.tool,
        "about": work.about,
        "since": format_time(work.since),
        "principal": work.principal,
        "session": work.session,
        "client": work.client or None,
        "server": work.server,
        "processes": work.living_processes,
        "in_background": work.over,
    }


def refusal_to_json(row: "Row", glance: str | None) -> dict[str, Any]:
    fields = {key: row.fields.get(key) for key in ("tool", "code", "layer", "reason", "session")}
    return {"seq": row.seq, "at": format_time(row.at), **fields, "glance": glance}
