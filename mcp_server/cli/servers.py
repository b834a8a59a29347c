"""Which configuration do the running servers use? The person's commands must decide by the same one."""

import argparse
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
"""Seconds to wait for a server that may not have seen a change of its files yet; it looks every so often."""


@dataclass(frozen=True, slots=True)
class ServerJudgement:
    """The configuration to decide by, the server that uses it, and all running servers."""

    settings: "Settings"
    law: "Configuration"
    server: "Server | None" = None
    """The server that uses it; None if none runs, if several differ, or if a configuration was named."""
    servers: "Sequence[Server]" = ()

    @property
    def ceiling(self) -> "Profile":
        return self.law.policy.ceiling

    @property
    def has_profile_flag(self) -> bool:
        """Whether the profile comes from an option of the server."""
        return self.server is not None and self.server.profile is not None


def get_running_servers(settings: "Settings") -> "list[Server]":
    from mcp_server.state.servers import load_servers

    return load_servers(settings.state)


def add_server(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--server",
        type=parse_whole_number,
        metavar="PID",
        help="decide as this running server does, if there are several",
    )


def load_judgement(arguments: argparse.Namespace, strict: bool = False) -> ServerJudgement:
    """Decide as the running server does, or by the files on disk if none runs or a configuration was named. `strict`
    refuses to choose between servers that differ: a question about one call can only have one answer."""
    settings = settings_from_arguments(arguments)
    found, one = get_running_servers(settings), find_judging_server(arguments, settings, strict)
    if one is not None:
        return load_server_judgement(arguments, settings, one)
    try:
        return ServerJudgement(settings, load_valid_configuration(arguments, settings), None, found)
    except CliError:
        if strict or (going := load_judgement_despite_faults(arguments, settings)) is None:
            raise
    return going


def load_judgement_for_choice(arguments: argparse.Namespace, settings: "Settings") -> ServerJudgement:
    """For a choice by the person, which must work despite faults on disk: a program that can write there must not lock
    them out. Faults in the workspace's own file leave that file out; with others, decide as a running server does."""
    try:
        return ServerJudgement(settings, load_valid_configuration(arguments, settings))
    except CliError as wrong:
        try:
            found = ServerJudgement(settings, load_valid_configuration(arguments, settings, unheard=True))
        except CliError:
            if (going := load_judgement_despite_faults(arguments, settings)) is None:
                raise wrong from None
            note_servers(going)
            return going
    note("This folder's own menugate.yaml has faults and is ignored here; `menugate check` shows them.")
    return found


def load_judgement_despite_faults(arguments: argparse.Namespace, settings: "Settings") -> ServerJudgement | None:
    """Decide as a server that keeps running despite faults on disk; of several, as the one with the lowest ceiling.
    None if there is none, or none under the configuration that was named."""
    found: list[ServerJudgement] = []
    for one in get_running_servers(settings):
        if not arguments.config or one.config == str(settings.config):
            with suppress(CliError):
                found.append(load_server_judgement(arguments, settings, one))
    return next((one for one in found if all(other.ceiling.covers(one.ceiling) for other in found)), None)


def load_server_judgement(arguments: argparse.Namespace, settings: "Settings", one: "Server") -> ServerJudgement:
    theirs = settings_from_server(settings, one)
    try:
        found = load_server_configuration(arguments, theirs, one)
    except CliError:
        if one.fault or (now := wait_until_server_looked(settings, one)) is None:
            raise
        return load_server_judgement(arguments, settings, now)
    return ServerJudgement(theirs, found, one, get_running_servers(settings))


def wait_until_server_looked(settings: "Settings", one: "Server") -> "Server | None":
    """The same server once it has seen the fault, too; None if it does not read that file."""
    end = time.monotonic() + MAX_LOOK_SECONDS
    while time.monotonic() < end:
        now = next((other for other in get_running_servers(settings) if other.pid == one.pid), None)
        if now is None or now.fault:
            return now
        time.sleep(0.02)
    return None


def find_judging_server(arguments: argparse.Namespace, settings: "Settings", strict: bool = False) -> "Server | None":
    """The server to decide by; None if none runs, if several differ, or if a configuration was named."""
    found, wish = get_running_servers(settings), getattr(arguments, "server", None)
    if wish is not None and (arguments.config or wish not in [one.pid for one in found]):
        raise CliError(f"no server of this folder has the process id {wish}; `menugate status` lists them.", code=2)
    if arguments.config:
        return None
    different = {get_judgement_key(one): one for one in found if wish in (None, one.pid)}
    if len(different) > 1 and strict:
        raise CliError(
            f"{len(different)} servers here decide differently:\n{describe_servers(found)}\n"
            "Choose one with --server PID."
        )
    return next(iter(different.values())) if len(different) == 1 else None


def get_judgement_key(one: "Server") -> tuple[object, ...]:
    texts = tuple(sorted(one.texts.items()))
    # Several servers that see the same file take it over at different moments.
    older = repr(one.older) if one.fault else ""
    return one.config, one.profile, one.max_profile, tuple(one.menus), texts, older


def settings_from_server(settings: "Settings", one: "Server") -> "Settings":
    from mcp_server.model.posture import Profile

    return replace(
        settings,
        config=Path(one.config) if one.config else None,
        menus=tuple(map(Path, one.menus)),
        profile=settings.profile or (Profile(one.profile) if one.profile else None),
        max_profile=settings.max_profile or (Profile(one.max_profile) if one.max_profile else None),
    )


def load_server_configuration(arguments: argparse.Namespace, settings: "Settings", one: "Server") -> "Configuration":
    """The files on disk, or what the server read before they became invalid. While they are still changing, combined
    with the earlier configurations."""
    from mcp_server.config.merge import combine_configurations

    texts = {Path(path): text for path, text in one.texts.items()} if one.fault else None
    now = load_valid_configuration(arguments, settings, texts=texts)
    return combine_configurations([*(load_earlier_configuration(arguments, settings, said) for said in one.older), now])


def load_earlier_configuration(
    arguments: argparse.Namespace, settings: "Settings", said: "Mapping[str, str | None]"
) -> "Configuration":
    texts = {Path(path): text for path, text in said.items()}
    none = settings.config is not None and texts.get(settings.config) is None
    return load_valid_configuration(arguments, replace(settings, config=None) if none else settings, texts=texts)


def describe_servers(found: "Sequence[Server]") -> str:
    return "\n".join(f"  process {one.pid}: {', '.join([describe_config(one), *format_flags(one)])}" for one in found)


def describe_config(one: "Server") -> str:
    return one.config or "no configuration"


def format_flags(one: "Server") -> list[str]:
    flags = (("--profile", one.profile), ("--max-profile", one.max_profile))
    return [f"{flag} {value}" for flag, value in flags if value]


def note_servers(found: ServerJudgement) -> None:
    """Notes on stderr: which server decided, and where a running server differs."""
    if found.server is not None and found.server.config:
        note(f"Decided as the running server does (process {found.server.pid}), by {found.server.config}.")
    for one in found.servers:
        for difference in one.differences:
            note(difference)
        if found.server is None and one.config != (str(found.settings.config) if found.settings.config else None):
            note(f"Process {one.pid} uses {describe_config(one)}.")


def to_json(one: "Server") -> dict[str, Any]:
    return {
        "pid": one.pid,
        "config": one.config,
        "profile": one.profile,
        "max_profile": one.max_profile,
        "since": format_time(one.since),
        "fault": one.fault or None,
        "restart": list(one.restart),
    }
