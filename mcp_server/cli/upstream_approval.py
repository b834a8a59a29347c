"""`menugate upstreams approve`: read what a server offers, show it to you, and keep your yes to exactly that."""

import argparse
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, ask_at_terminal, note, print_json, print_table, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_json, add_place, load_valid_configuration, settings_from_arguments
from mcp_server.model.text import find_nearest_name, format_count
from mcp_server.model.upstreams import Mount
from mcp_server.views.text import explain_refusals, format_time

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.guards.redaction import Redactor
    from mcp_server.model.upstreams import Catalogue
    from mcp_server.settings import Settings
    from mcp_server.views.upstream_approval import ApprovalPreview

APPROVE = """
menugate upstreams approve github                   show what it offers, and ask you
menugate upstreams approve github --json            only show it, with its digest
menugate upstreams approve github --digest 3f9a01   approve exactly what was shown with this digest
"""
WORD = "approve"
MIN_DIGEST_CHARS = 16
SHOWN_DIGEST_CHARS = 16
COLOURS = {"new": "yellow", "changed": "yellow", "gone": "dim"}
"""The colours of the words for changes."""


def add_approve(actions: CommandGroup) -> None:
    command = actions.add("approve", APPROVE, run_approve, "approve what a server offers, as it describes it now")
    command.add_argument("name", metavar="NAME", help="the server's name under `mcpServers`")
    command.add_argument("--digest", metavar="HEX", help="approve without asking, if this is still what it offers")
    add_place(command)
    add_json(command, "print what it offers as JSON; approves only with --digest")


def run_approve(arguments: argparse.Namespace) -> int:
    import asyncio

    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.cli.upstream_packages import fetch_missing
    from mcp_server.guards.own_memory import forbid_memory_reading

    settings = settings_from_arguments(arguments)
    with explain_refusals():
        refuse_inside_server(settings)  # first: a program must not start servers for you
    configuration = load_valid_configuration(arguments, settings)
    mount = find_mount(configuration, arguments.name)
    forbid_memory_reading()
    mount = fetch_missing(configuration, settings, mount)
    with explain_refusals():
        catalogue = asyncio.run(read_catalogue(configuration, settings, mount))
    preview = build_preview(configuration, settings, mount, catalogue)
    redactor = build_redactor(configuration, settings)
    if arguments.json:
        print_json(redactor.redact_value(to_json(preview)))
    elif arguments.digest is None:
        show_preview(preview, redactor)
    if arguments.digest is None and (arguments.json or preview.is_approved):
        return 0
    confirm(preview, arguments.digest)
    keep_approval(settings, preview)
    note(f"Approved {mount.name}: {count_parts(preview)}.")
    return 0


def find_mount(configuration: "Configuration", name: str) -> Mount:
    upstreams = configuration.library.config.upstreams
    mounts = {mount.name: mount for mount in upstreams.mounts} if upstreams else {}
    if mount := mounts.get(name):
        return mount
    faults = [str(one.fault) for one in upstreams.faults if one.server == name] if upstreams else []
    if faults:
        raise CliError(f"the server {name} cannot be used:\n" + "\n".join(faults))
    near = find_nearest_name(name, mounts)
    hint = f"; did you mean `{near}`?" if near else ", because `mcpServers` in your menugate.yaml does not name it."
    raise CliError(f"there is no server {name}{hint}")


async def read_catalogue(configuration: "Configuration", settings: "Settings", mount: Mount) -> "Catalogue":
    """Start or call the server, read what it offers, and end it."""
    from mcp_server.cli.call import CommandLine
    from mcp_server.compose import build_guards
    from mcp_server.config.folders import prepare_folders
    from mcp_server.config.secrets import build_use_recorder
    from mcp_server.model.upstreams import UpstreamCaller
    from mcp_server.upstreams.links import LinkOpener
    from mcp_server.upstreams.servers import UpstreamServers

    prepare_folders(settings)
    commands = build_guards(configuration, settings).commands
    redact = build_redactor(configuration, settings).redact
    network = configuration.library.config.network
    opener = LinkOpener(
        commands, settings.state / "upstreams", settings.person, network, redact, build_use_recorder(settings)
    )
    servers = UpstreamServers(opener.open_link, settings.workspace.as_uri(), settings.person)
    servers.set_mounts([mount])
    try:
        return await servers.get_catalogue(mount.name, UpstreamCaller(settings.person, "approve", CommandLine()))
    finally:
        await servers.close()
        await commands.close()


def build_redactor(configuration: "Configuration", settings: "Settings") -> "Redactor":
    from mcp_server.calls.secrets import load_secret_values
    from mcp_server.guards.redaction import Redactor

    upstreams = configuration.library.config.upstreams
    return Redactor((*load_secret_values(settings), *(upstreams.secrets if upstreams else ())))


def build_preview(
    configuration: "Configuration", settings: "Settings", mount: Mount, catalogue: "Catalogue"
) -> "ApprovalPreview":
    from mcp_server.policy.upstream_check import OtherTools
    from mcp_server.state.upstream_pins import UpstreamPins
    from mcp_server.views.upstream_approval import build_approval_preview

    upstreams = configuration.library.config.upstreams
    servers = {other.name for other in upstreams.mounts} - {mount.name} if upstreams else set[str]()
    others = OtherTools(frozenset(configuration.policy.tools), frozenset(servers))
    before = UpstreamPins(settings.secrets, settings.workspace).find_approval(mount.name)
    return build_approval_preview(mount, catalogue, before, others)


def confirm(preview: "ApprovalPreview", digest: str | None, word: str = WORD) -> None:
    """Take your yes: a digest that you were shown, or a word typed at a terminal. Raise without one."""
    if digest is not None:
        if len(digest) < MIN_DIGEST_CHARS:
            raise CliError(f"--digest needs at least the first {MIN_DIGEST_CHARS} characters of the digest.", code=2)
        if not preview.digest.startswith(digest.lower()):
            raise CliError(
                f"{preview.mount.name} no longer offers what you were shown; its digest is "
                f"{preview.digest[:SHOWN_DIGEST_CHARS]} now. Nothing was approved."
            )
        return
    if not sys.stdin.isatty():
        shown = preview.digest[:SHOWN_DIGEST_CHARS]
        raise CliError(f"nothing was approved. Answer at a terminal, or add `--digest {shown}`.")
    if ask_at_terminal(f"Type `{word}` to approve exactly this: ") != word:
        raise CliError(f"you did not type `{word}`; nothing was approved.")


def keep_approval(settings: "Settings", preview: "ApprovalPreview") -> None:
    import asyncio

    from mcp_server.calls.terminal import open_store_for_person
    from mcp_server.state import ledger
    from mcp_server.state.upstream_catalogues import save_catalogue
    from mcp_server.state.upstream_pins import UpstreamPins

    approval = preview.approve(time.time_ns())

    async def record() -> None:
        async with open_store_for_person(settings) as store:
            UpstreamPins(settings.secrets, settings.workspace).put_approval(preview.mount.name, approval)
            folder, name = str(settings.workspace), preview.mount.name
            await store.write(
                lambda tx: ledger.record_trust(tx, folder, settings.person, True, preview.digest, upstream=name)
            )

    with explain_refusals():
        asyncio.run(record())
    # What you approved is known from now on, before a server asks again.
    with suppress(OSError):
        save_catalogue(settings.state, settings.secrets, preview.mount, preview.catalogue)


def show_preview(preview: "ApprovalPreview", redactor: "Redactor") -> None:
    from mcp_server.views.upstream_approval import WARNING, describe_target
    from mcp_server.views.upstream_packages import describe_package

    mount, server = preview.mount, preview.catalogue.server
    version = f"  {server.get('name', '')} {server.get('version', '')}".rstrip()
    say((redactor.redact(mount.name), "bold"), redactor.redact(version))
    before = preview.before
    approved = f"{format_time(before.approved_at)}, version {before.version or 'unknown'}" if before else "never"
    rows = [*describe_target(mount), ("approved", approved), ("offers", count_parts(preview))]
    print_table([(f"  {what}", redactor.redact(text)) for what, text in rows])
    for sentence in describe_package(mount):
        say_prose(redactor.redact(sentence), indent="  ")
    if preview.is_moved:
        say_prose(("It is started or called differently than when you approved it.", "yellow"))
    show_tools(preview)
    if preview.catalogue.instructions and before is None:
        say("\nits instructions to a model:")
        say_prose(redactor.redact(preview.catalogue.instructions), indent="    ")
    show_changes(preview, redactor)
    if preview.findings:
        say(("\nread this first:", "bold"))
        for finding in preview.findings:
            say_prose((finding.kind, "red"), f" in {finding.place}", indent="  ")
            say_prose(redactor.redact(finding.words), indent="    ")
    say_prose(f"\n{WARNING}")
    if preview.is_approved:
        say_prose("Everything it offers is approved.")
    else:
        say(f"digest {preview.digest[:SHOWN_DIGEST_CHARS]}")


def show_tools(preview: "ApprovalPreview") -> None:
    from mcp_server.views.upstream_approval import describe_effect

    if not (tools := preview.catalogue.tools):
        return
    rows = [
        (f"  {tool.get('name')}", *describe_effect(preview.mount, tool), f"{count_tool_tokens(tool):,}")
        for tool in tools
    ]
    say("")
    print_table(rows, head=("  tool", "counts as", "needs", "says who", "tokens"), right=(4,))
    say_prose(f"A model that sees them all reads about {sum(map(count_tool_tokens, tools)):,} tokens.")


def count_tool_tokens(tool: Mapping[str, Any]) -> int:
    from mcp_server.cli.menus import count_tokens

    return count_tokens({key: tool[key] for key in ("name", "description", "inputSchema") if key in tool})


def show_changes(preview: "ApprovalPreview", redactor: "Redactor") -> None:
    if changes := preview.list_changes():
        say("\nsince you approved it:")
        for change in changes:
            named = f"  {change.kind} {change.name}" if change.name != change.kind else f"  {change.kind}"
            say("  ", (change.what, COLOURS[change.what]), named)
            for line in change.lines:
                say_prose(redactor.redact(line), indent="    ")
    if doubles := preview.list_doubles():
        names = ", ".join(dict.fromkeys(f"{part.kind} {part.name or '(no name)'}" for part in doubles))
        say_prose(f"\nnot offered even if you approve, because of its name or a second one of that name: {names}")


def count_parts(preview: "ApprovalPreview") -> str:
    catalogue = preview.catalogue
    counts = (
        (len(catalogue.tools), "tool"),
        (len(catalogue.prompts), "prompt"),
        (len(catalogue.resources), "resource"),
        (len(catalogue.templates), "template"),
    )
    parts = [format_count(count, noun) for count, noun in counts if count or noun == "tool"]
    return ", ".join([*parts, *(["instructions"] if catalogue.instructions else [])])


def to_json(preview: "ApprovalPreview") -> dict[str, Any]:
    from mcp_server.views.upstream_approval import describe_effect, describe_target
    from mcp_server.views.upstream_packages import describe_package

    catalogue, before = preview.catalogue, preview.before
    effects = [(tool, describe_effect(preview.mount, tool)) for tool in catalogue.tools]
    return {
        "name": preview.mount.name,
        "server": dict(catalogue.server),
        **dict(describe_target(preview.mount)),
        "package": describe_package(preview.mount),
        "approved_at": format_time(before.approved_at) if before else None,
        "approved": preview.is_approved,
        "digest": preview.digest,
        "tools": [
            {
                "name": tool.get("name"),
                "effect": effect,
                "profile": profile,
                "source": source,
                "tokens": count_tool_tokens(tool),
                "description": tool.get("description"),
            }
            for tool, (effect, profile, source) in effects
        ],
        "instructions": catalogue.instructions or None,
        "quarantined": [
            {"kind": one.part.kind, "name": one.part.name, "reason": f"it {one.reason}"}
            for one in preview.judged.quarantined
        ],
        "changes": [
            {"what": change.what, "kind": change.kind, "name": change.name, "lines": list(change.lines)}
            for change in preview.list_changes()
        ],
        "findings": [
            {"kind": finding.kind, "place": finding.place, "words": finding.words} for finding in preview.findings
        ],
    }
