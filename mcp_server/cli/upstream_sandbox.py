"""`menugate upstreams add --sandbox`: what is the narrowest sandbox in which a server starts?"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, note
from mcp_server.model.results import Refusal

if TYPE_CHECKING:
    from mcp_server.cli.upstream_edit import OperatorEdit

ATTEMPTS: Sequence[Mapping[str, Any]] = ({}, {"write": ["."]}, {"write": ["."], "home": True})
"""From narrow to wide."""


def find_sandbox(
    edit: "OperatorEdit", name: str, entry: Mapping[str, Any], workspace: str | None, hosts: Sequence[str]
) -> Mapping[str, Any]:
    """Start the server in one sandbox after the other, until it says what it offers; return that one."""
    network = {"network": list(hosts)} if hosts else {}
    reason = ""
    for attempt in ATTEMPTS:
        sandbox = {**attempt, **network}
        if not (reason := try_sandbox(edit, name, {**entry, "sandbox": sandbox}, workspace)):
            note(f"{name} starts in a sandbox: {describe(sandbox)}.")
            note("What it needs later was not tried; `sandbox` in its entry opens more.")
            return sandbox
    raise CliError(f"{name} starts in no sandbox: {reason} Nothing was written; without `--sandbox`, it gets none.")


def try_sandbox(edit: "OperatorEdit", name: str, entry: Mapping[str, Any], workspace: str | None) -> str:
    """Return why it does not start; empty if it does."""
    from mcp_server.cli.upstream_approval import read_catalogue
    from mcp_server.cli.upstream_edit import draft_text
    from mcp_server.cli.upstream_packages import fetch_missing, find_mounts

    configuration = edit.check(draft_text(edit, {name: entry}, workspace), [name])
    for mount in find_mounts(configuration, [name]):
        kept = fetch_missing(configuration, edit.settings, mount)
        try:
            asyncio.run(read_catalogue(configuration, edit.settings, kept))
        except Refusal as refused:
            return refused.problem.message
    return ""


def describe(sandbox: Mapping[str, Any]) -> str:
    from mcp_server.model.upstreams import MountSandbox
    from mcp_server.views.upstream_approval import describe_sandbox

    write, network = (tuple(sandbox.get(key, ())) for key in ("write", "network"))
    return describe_sandbox(MountSandbox(write, network, sandbox.get("home", False)))
