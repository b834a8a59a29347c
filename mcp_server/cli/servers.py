"""Which configuration do the running servers use? The user's commands must decide by the same one."""

import argparse
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.cli.ledger import parse_whole_number
from mcp_server.cli.output import CliError, note
from mcp_server.cli.parser import load_valid_configuration, settings_from_arguments
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.model.posture import Profile
    from mcp_server.settings import Settings
    from mcp_server.state.servers import Server

MAX_LOOK_SECONDS = 1.0
"""Seconds to wait for a server that may not yet have seen a change to its files."""


class ServerJudgement(Struct, frozen=True):
    """The configuration to decide by, the server that uses it, and all running servers."""

    settings: "Settings"
    configuration: "Configuration"
    server: "Server | None" = None
    """The server that uses it; None if none runs, if several differ, or if a configuration was named."""
    servers: "Sequence[Server]" = ()

    @property
    def ceiling(self) -> "Profile":
        return self.configuration.policy.ceiling

    @property
    def has_profile_flag(self) -> bool:
        """Whether the profile comes from an option of the server."""
        return self.server is not None and self.server.profile is not None


def get_running_servers(settings: "Settings") -> "list[Server]":
    from mcp_server.state.servers import load_servers

    return load_servers(settings.state)


def add_server(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--server",
        type=parse_whole_number,
        metavar="PID",
        help="decide as this running server does, if several are running",
    )


def load_judgement(arguments: argparse.Namespace, strict: bool = False) -> ServerJudgement:
    """Judge as the running server does, or by the files on disk if none runs or a configuration was named. `strict`
    raises if servers differ, because a question about one call can have only one answer."""
    settings = settings_from_arguments(arguments)
    servers, server = get_running_servers(settings), find_judging_server(arguments, settings, strict)
    if server is not None:
        return load_server_judgement(arguments, settings, server)
    try:
        return ServerJudgement(settings, load_valid_configuration(arguments, settings), None, servers)
    except CliError:
        if strict or (fallback := load_judgement_despite_faults(arguments, settings)) is None:
            raise
    return fallback


def load_judgement_for_choice(arguments: argparse.Namespace, settings: "Settings") -> ServerJudgement:
    """Judge a choice by the user, which must work despite faults on disk: a program that can write there must not lock
    them out. Faults in the workspace's own file leave that file out; with others, decide as a running server does."""
    try:
        return ServerJudgement(settings, load_valid_configuration(arguments, settings))
    except CliError as wrong:
        try:
            judgement = ServerJudgement(settings, load_valid_configuration(arguments, settings, unheard=True))
        except CliError:
            if (fallback := load_judgement_despite_faults(arguments, settings)) is None:
                raise wrong from None
            note_servers(fallback)
            return fallback
    note("This folder's own menugate.yaml has faults and is ignored here; `menugate check` shows them.")
    return judgement


def load_judgement_despite_faults(arguments: argparse.Namespace, settings: "Settings") -> ServerJudgement | None:
    """Judge as a server that keeps running despite faults on disk; of several, as the one with the lowest ceiling.
    None if there is none, or none under the configuration that was named."""
    judgements: list[ServerJudgement] = []
    for server in get_running_servers(settings):
        if not arguments.config or server.config == str(settings.config):
            with suppress(CliError):
                judgements.append(load_server_judgement(arguments, settings, server))
    return next(
        (server for server in judgements if all(other.ceiling.covers(server.ceiling) for other in judgements)), None
    )


def load_server_judgement(arguments: argparse.Namespace, settings: "Settings", server: "Server") -> ServerJudgement:
    server_settings = settings_from_server(settings, server)
    try:
        configuration = load_server_configuration(arguments, server_settings, server)
    except CliError:
        if server.fault or (updated := wait_until_server_looked(settings, server)) is None:
            raise
        return load_server_judgement(arguments, settings, updated)
    return ServerJudgement(server_settings, configuration, server, get_running_servers(settings))


def wait_until_server_looked(settings: "Settings", server: "Server") -> "Server | None":
    """Wait until the server has seen the fault, too; None if it does not read that file."""
    deadline = time.monotonic() + MAX_LOOK_SECONDS
    while time.monotonic() < deadline:
        current = next((other for other in get_running_servers(settings) if other.pid == server.pid), None)
        if current is None or current.fault:
            return current
        time.sleep(0.02)
    return None


def find_judging_server(arguments: argparse.Namespace, settings: "Settings", strict: bool = False) -> "Server | None":
    """Find the server to judge by; None if none runs, if several differ, or if a configuration was named."""
    servers, pid = get_running_servers(settings), getattr(arguments, "server", None)
    if pid is not None and (arguments.config or pid not in [server.pid for server in servers]):
        raise CliError(f"no server here has the process id {pid}; `menugate status` lists the servers.", code=2)
    if arguments.config:
        return None
    by_judgement = {get_judgement_key(server): server for server in servers if pid in (None, server.pid)}
    if len(by_judgement) > 1 and strict:
        raise CliError(
            f"{len(by_judgement)} servers here decide differently:\n{describe_servers(servers)}\n"
            "Choose one with --server PID."
        )
    return next(iter(by_judgement.values())) if len(by_judgement) == 1 else None


def get_judgement_key(server: "Server") -> tuple[object, ...]:
    texts = tuple(sorted(server.texts.items()))
    # Servers that read the same file apply a change to it at different moments.
    older = repr(server.older) if server.fault else ""
    return server.config, server.profile, server.max_profile, tuple(server.menus), texts, older


def settings_from_server(settings: "Settings", server: "Server") -> "Settings":
    from mcp_server.model.posture import Profile

    return replace(
        settings,
        config=Path(server.config) if server.config else None,
        menus=tuple(map(Path, server.menus)),
        profile=settings.profile or (Profile(server.profile) if server.profile else None),
        max_profile=settings.max_profile or (Profile(server.max_profile) if server.max_profile else None),
    )


def load_server_configuration(arguments: argparse.Namespace, settings: "Settings", server: "Server") -> "Configuration":
    """Load the files on disk, or what the server read before they became invalid. While they are changing, combine them
    with the earlier configurations."""
    from mcp_server.config.merge import combine_configurations

    texts = {Path(path): text for path, text in server.texts.items()} if server.fault else None
    current = load_valid_configuration(arguments, settings, texts=texts)
    return combine_configurations(
        [*(load_earlier_configuration(arguments, settings, earlier) for earlier in server.older), current]
    )


def load_earlier_configuration(
    arguments: argparse.Namespace, settings: "Settings", earlier: "Mapping[str, str | None]"
) -> "Configuration":
    texts = {Path(path): text for path, text in earlier.items()}
    had_no_config = settings.config is not None and texts.get(settings.config) is None
    return load_valid_configuration(
        arguments, replace(settings, config=None) if had_no_config else settings, texts=texts
    )


def describe_servers(servers: "Sequence[Server]") -> str:
    return "\n".join(
        f"  process {server.pid}: {', '.join([describe_config(server), *format_flags(server)])}" for server in servers
    )


def describe_config(server: "Server") -> str:
    return server.config or "no configuration"


def format_flags(server: "Server") -> list[str]:
    flags = (("--profile", server.profile), ("--max-profile", server.max_profile))
    return [f"{flag} {value}" for flag, value in flags if value]


def note_servers(judgement: ServerJudgement) -> None:
    """Note on stderr which server decided, and where a running server differs."""
    if judgement.server is not None and judgement.server.config:
        note(f"Decided as the running server does (process {judgement.server.pid}), with {judgement.server.config}.")
    for server in judgement.servers:
        for difference in server.differences:
            note(difference)
        if judgement.server is None and server.config != (
            str(judgement.settings.config) if judgement.settings.config else None
        ):
            note(f"Process {server.pid} uses {describe_config(server)}.")


def to_json(server: "Server") -> dict[str, Any]:
    return {
        "pid": server.pid,
        "config": server.config,
        "profile": server.profile,
        "max_profile": server.max_profile,
        "since": format_time(server.since),
        "fault": server.fault or None,
        "restart": list(server.restart),
    }
