"""`menugate serve`: run the MCP server for a folder."""

import argparse
import gc
import hashlib
from typing import TYPE_CHECKING

from mcp_server.cli.output import CliError, say
from mcp_server.cli.parser import CommandGroup, add_place, add_posture, make_start_error
from mcp_server.views.text import explain_refusals

if TYPE_CHECKING:
    from mcp_server.app import App
    from mcp_server.settings import Settings
    from mcp_server.wire.http_access import HttpLimits

EXAMPLES = """
menugate serve                                    over stdio, for a host that starts it in the project's folder
menugate serve --workspace ~/code/app --mode swe  only one mode, whose tools are always listed
menugate serve --http 127.0.0.1:7391              over HTTP; prints the address, the token and a command for the host
menugate serve --profile restricted               read only
"""


def add(commands: CommandGroup) -> None:
    command = commands.add("serve", EXAMPLES, run)
    add_place(command)
    command.add_argument("--http", metavar="HOST:PORT", help="serve over HTTP instead of stdio (port 0: any free port)")
    command.add_argument("--mode", metavar="MODE", help="pin every session to one mode")
    command.add_argument(
        "--listing",
        metavar="NAME",
        choices=("auto", "masked", "carried", "stable", "flat"),
        help="what tools/list shows (default: auto, which depends on the client)",
    )
    add_posture(command)
    command.add_argument("--no-auth", action="store_true", help="do not ask for a token (loopback only)")
    command.add_argument("--allowed-hosts", metavar="NAMES", help="more Host headers to accept, for use behind a proxy")
    command.add_argument("--allowed-origins", metavar="URLS", help="web pages that may call this server")


def run(arguments: argparse.Namespace) -> int:
    # Everything imported from here on lives as long as the process, so collecting it as garbage would only cost time.
    gc.disable()
    import asyncio

    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.cli.log import log_in_background
    from mcp_server.guards.own_memory import forbid_memory_reading
    from mcp_server.settings import BuildError, Settings, SettingsError, read_settings

    async def serve(settings: Settings) -> None:
        from mcp_server.compose import build_app
        from mcp_server.wire.serve import serve_stdio

        app = build_app(settings, arguments.packs)
        if upstreams := app.configuration.library.config.upstreams:
            from mcp_server.catalogues import log_upstream_faults  # most people mount nothing

            log_upstream_faults(upstreams)
        async with app.open_for_use():
            await (serve_stdio(app.server) if settings.http is None else serve_over_http(app))

    try:
        settings = read_settings(vars(arguments))
    except SettingsError as wrong:
        raise CliError(str(wrong)) from None
    try:
        with explain_refusals(), log_in_background():
            # A program that started this could be its client, and answer its questions in the user's name.
            refuse_inside_server(settings, quick=True)
            forbid_memory_reading()
            asyncio.run(serve(settings))
    except BuildError as wrong:
        raise make_start_error(arguments, settings, wrong) from None
    return 0


async def serve_over_http(app: "App", limits: "HttpLimits | None" = None) -> None:
    from mcp_server.installation import describe_installation, find_linked_files, find_places_in_workspace
    from mcp_server.wire.http import build_local_hosts, open_listening_socket
    from mcp_server.wire.http_access import Admission, HttpLimits
    from mcp_server.wire.serve import serve_net

    settings = app.settings
    assert settings.http is not None
    try:
        listener = open_listening_socket(*settings.http)
    except OSError as wrong:
        address = f"{settings.http[0]}:{settings.http[1]}"
        raise CliError(f"cannot listen on {address} ({wrong.strerror}); name another address with --http.") from None
    host, port = settings.http[0], int(listener.getsockname()[1])
    hosts = build_local_hosts(host, port) | {name.lower() for name in settings.hosts}
    origins = frozenset(f"http://{name}" for name in hosts) | {origin.lower() for origin in settings.origins}
    token = app.token
    keys = {hashlib.sha256(token.encode()).hexdigest(): settings.person} if token else {}
    if token:
        keys |= {entry.sha256: entry.principal for entry in app.configuration.library.config.tokens}
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    fixed = (
        describe_installation(find_places_in_workspace(settings, app.configuration), len(find_linked_files()))
        if find_places_in_workspace(settings, app.configuration) or find_linked_files()
        else ""
    )
    await serve_net(
        app.server,
        lambda: app.core.current_policy.policy.menus,
        app.notifier,
        Admission(hosts, origins, keys, limits or HttpLimits()),
        listener,
        lambda: announce(settings, address, token, fixed),
    )


def announce(settings: "Settings", address: str, token: str | None, fixed: str = "") -> None:
    workspace = settings.workspace
    header = f' --header "Authorization: Bearer {token}"' if token else ""
    say(f"menugate serves {workspace}")
    say(f"  address  {address}/mcp        (older clients: {address}/sse)")
    if token:
        say(f"  token    {token}")
        say(f"           kept in {(settings.state / 'http.token').relative_to(workspace)}, which only you can read")
    if fixed:
        say(f"  runs from {fixed}")
    say("  to connect a host, for example:")
    say(f"    claude mcp add --transport http menugate {address}/mcp{header}")
    say("ready; press Ctrl-C to stop")
