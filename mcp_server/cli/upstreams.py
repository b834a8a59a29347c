"""`menugate upstreams`: the MCP servers behind menugate."""

import argparse
from typing import TYPE_CHECKING

from mcp_server.cli.output import CliError, print_json, print_table, say, say_foreign, say_prose
from mcp_server.cli.parser import (
    CommandGroup,
    add_actions,
    add_json,
    add_place,
    load_valid_configuration,
    settings_from_arguments,
)
from mcp_server.cli.upstream_approval import add_approve
from mcp_server.cli.upstream_edit import add_edits
from mcp_server.cli.upstream_packages import add_update
from mcp_server.cli.upstream_test import add_looks
from mcp_server.model.text import find_nearest_name
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.guards.redaction import Redactor
    from mcp_server.model.tools import Tool
    from mcp_server.views.upstream_proposals import WorkspaceProposals
    from mcp_server.views.upstreams import UpstreamView

EXAMPLES = """
menugate upstreams                  every server, with its tools, its price and your approval
menugate upstreams show github      one server: what is in force of it, and what is not, and why
menugate upstreams approve github   read what a server offers, and approve it
menugate upstreams add time -- uvx mcp-server-time@2026.10.19   put a server behind menugate
menugate upstreams add --from .mcp.json                         see what a file proposes
menugate upstreams update github    take over a newer version of its package
menugate upstreams test github      start or call it, and say how long that takes
"""
LIST = """
menugate upstreams list           every server; starts none of them
menugate upstreams list --json    for a program
"""
SHOW = """
menugate upstreams show github           what of it is in force, and what is not, and why; does not start it
menugate upstreams show github --json    for a program
"""
COLOURS = {
    "approved": "green",
    "broken": "red",
    "changed": "yellow",
    "not approved": "yellow",
    "started differently": "yellow",
    "disabled": "dim",
}
NONE = "No servers are behind menugate; `mcpServers` in your menugate.yaml adds them."
UNKNOWN = "It has not said yet what it offers; `menugate upstreams approve` or the next `menugate serve` asks it."


def add(commands: CommandGroup) -> None:
    actions = add_actions(commands.add("upstreams", EXAMPLES, None))
    list_action = actions.add("list", LIST, run_list, "list the servers, without starting any")
    show_action = actions.add("show", SHOW, run_show, "show one server and its tools, without starting it")
    show_action.add_argument("name", metavar="NAME", help="the server's name under `mcpServers`")
    for action in (list_action, show_action):
        add_place(action)
        add_json(action)
    add_approve(actions)
    add_update(actions)
    add_edits(actions)
    add_looks(actions)


def run_list(arguments: argparse.Namespace) -> int:
    from mcp_server.views.upstream_proposals import collect_proposals

    views, redactor = collect_views(arguments)
    proposals = collect_proposals(settings_from_arguments(arguments))
    if arguments.json:
        proposed = {"proposed": proposals.to_json()} if proposals else {}
        print_json(redactor.redact_value({"servers": [view.to_json() for view in views], **proposed}))
        return 0
    if views:
        show_views(views, redactor)
    elif not proposals:
        say_prose(NONE)
    if proposals:
        show_proposals(proposals, redactor)
    return 0


def show_proposals(proposals: "WorkspaceProposals", redactor: "Redactor") -> None:
    if proposals.fault:
        say_prose((f"\n{proposals.fault}", "red"))
    if not proposals.servers:
        return
    say_prose(f"\nproposed by {proposals.path}; none of these is started or called unless you add it:")
    for one in proposals.servers:
        since = f"  differs from yours in {', '.join(one.differs)}" if one.differs else ""
        say_foreign(redactor.redact(f"{one.name}{since}{f'  {one.fault}' if one.fault else ''}"), "  ", "    ")
        for what, text in one.target:
            say_foreign(redactor.redact(f"{what}  {text}"), "    ", "      ")
    say_prose(f"To add some of them: menugate upstreams add --from {proposals.path} NAME…")


def show_views(views: "list[UpstreamView]", redactor: "Redactor") -> None:
    rows = [
        (
            view.name,
            str(view.state),
            f"{len(view.tools):,}",
            f"{len(view.aside) + len(view.quarantined):,}",
            f"{sum(view.tokens.values()):,}",
            redactor.redact(" ".join(text for _, text in view.target[:1]) or "—"),
        )
        for view in views
    ]
    print_table(rows, ("server", "state", "tools", "held back", "tokens", "target"), right=(2, 3, 4), paint=COLOURS)
    if any(view.state not in ("approved", "disabled") or view.aside for view in views):
        say_prose("\n`menugate upstreams show NAME` says why.")


def run_show(arguments: argparse.Namespace) -> int:
    views, redactor = collect_views(arguments)
    view = find_view(views, arguments.name)
    if arguments.json:
        print_json(redactor.redact_value(view.to_json()))
    else:
        show_view(view, redactor)
    return 0


def collect_views(arguments: argparse.Namespace) -> "tuple[list[UpstreamView], Redactor]":
    from mcp_server.cli.upstream_approval import build_redactor
    from mcp_server.views.upstreams import collect_upstreams

    settings = settings_from_arguments(arguments)
    configuration = load_valid_configuration(arguments, settings)
    return collect_upstreams(configuration, settings, count_tool_tokens), build_redactor(configuration, settings)


def count_tool_tokens(tool: "Tool") -> int:
    from mcp_server.cli.menus import count_tokens

    return count_tokens({"name": tool.name, "description": tool.description, "inputSchema": tool.offered})


def find_view(views: "list[UpstreamView]", name: str) -> "UpstreamView":
    by_name = {view.name: view for view in views}
    if view := by_name.get(name):
        return view
    near = find_nearest_name(name, by_name)
    hint = f"; did you mean `{near}`?" if near else ", because `mcpServers` in your menugate.yaml does not name it."
    raise CliError(f"there is no server {name}{hint}")


def show_view(view: "UpstreamView", redactor: "Redactor") -> None:
    from mcp_server.views.upstream_packages import describe_package
    from mcp_server.views.upstreams import MEANING

    mount, catalogue = view.mount, view.catalogue
    say((redactor.redact(view.name), "bold"), "  ", (str(view.state), COLOURS[view.state]))
    say_prose(MEANING[view.state], indent="  ")
    rows = list(view.target)
    if mount is not None:
        rows += [("written in", mount.source), ("tools begin with", f"{mount.slug}_" if mount.prefixed else "nothing")]
    if catalogue is not None:
        said = f"{catalogue.server.get('name', '')} {catalogue.server.get('version', '')}".strip() or "unknown"
        rows += [("is", said), ("last asked", format_time(catalogue.read_at))]
    if view.approved_at:
        rows.append(("approved", format_time(view.approved_at)))
    if view.modes:
        rows.append(("modes", ", ".join(view.modes)))
    rows += [("shared by", f"process {one.pid}, in {one.workspace}") for one in view.holders]
    if rows:
        print_table([(f"  {what}", redactor.redact(text)) for what, text in rows])
    if mount is not None and catalogue is None and not mount.disabled:
        say_prose(UNKNOWN)
    show_tools(view, redactor)
    if mount is not None:
        for sentence in describe_package(mount):
            say_prose(redactor.redact(sentence), indent="  ")
    for head, lines in (("faults", view.faults), ("warnings", view.warnings)):
        if lines:
            say("\n".join([f"\n{head}:", *(f"  {line}" for line in lines)]))


def show_tools(view: "UpstreamView", redactor: "Redactor") -> None:
    if view.tools:
        rows = [
            (f"  {tool.name}", str(tool.effect), str(tool.profile), f"{view.tokens[tool.name]:,}", tool.written or "")
            for tool in view.tools
        ]
        say("")
        print_table(rows, ("  tool", "counts as", "needs", "tokens", "in modes and rules"), right=(3,))
        say_prose(f"A model that sees them all reads about {sum(view.tokens.values()):,} tokens.")
    if view.quarantined:
        say("\nneeds your approval:")
        parts = [
            (f"  {one.part.kind} {redactor.redact(one.part.name)}", f"it {one.reason}") for one in view.quarantined
        ]
        print_table(parts)
    if view.aside:
        say("\nset aside:")
        print_table([(f"  {redactor.redact(one.tool)}", redactor.redact(one.reason)) for one in view.aside])
