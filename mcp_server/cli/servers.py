"""What do the servers that run here judge by? By what they judge, the person's commands judge too."""

import argparse
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, format_time, note
from mcp_server.cli.parser import load_valid_configuration, settings_from_arguments

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.model.posture import Profile
    from mcp_server.settings import Settings
    from mcp_server.state.servers import Server

LONGEST_LOOK = 1.0
"""A server looks every so often; so long one is waited for that has not yet seen what was just written."""


@dataclass(frozen=True, slots=True)
class ServerJudgement:
    """What is judged by, whose it is, and which servers there are."""

    settings: "Settings"
    law: "Configuration"
    server: "Server | None" = None
    """Whose it is; None where none runs, where several differ, or where a configuration was named."""
    servers: "Sequence[Server]" = ()

    @property
    def ceiling(self) -> "Profile":
        return self.law.policy.ceiling

    @property
    def has_profile_flag(self) -> bool:
        """Does the profile come from a flag of the server's?"""
        return self.server is not None and self.server.profile is not None


def get_running_servers(settings: "Settings") -> "list[Server]":
    from mcp_server.state.servers import load_servers

    return load_servers(settings.state)


def add_server(one: argparse.ArgumentParser) -> None:
    one.add_argument("--server", type=int, metavar="PID", help="as this running server judges, where there are several")


def load_judgement(arguments: argparse.Namespace, strict: bool = False) -> ServerJudgement:
    """As the server that runs here judges; by what is on disk where none does, or where a configuration was named.
    `strict`: several that differ are told, for who asks about one call can be given one answer only."""
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
    """For a choice of the person's, which a fault on disk does not keep from being made: whoever can write there must
    not lock them out. In the workspace's own file it is left aside; with one elsewhere, as a server that goes on."""
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
    note("What this folder says of itself has faults and is left aside here; `menugate check` shows them.")
    return found


def load_judgement_despite_faults(arguments: argparse.Namespace, settings: "Settings") -> ServerJudgement | None:
    """As a server that goes on though there are faults on disk; of several, as the one with the lowest ceiling. None
    where none does, or none under the configuration that was named."""
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
    """What the same server says once it has seen the fault as well; None where it does not look there."""
    end = time.monotonic() + LONGEST_LOOK
    while time.monotonic() < end:
        now = next((other for other in get_running_servers(settings) if other.pid == one.pid), None)
        if now is None or now.fault:
            return now
        time.sleep(0.02)
    return None


def find_judging_server(arguments: argparse.Namespace, settings: "Settings", strict: bool = False) -> "Server | None":
    """The server by which is judged; None where none runs, where several differ, or where a configuration was named."""
    found, wish = get_running_servers(settings), getattr(arguments, "server", None)
    if wish is not None and (arguments.config or wish not in [one.pid for one in found]):
        raise CliError(f"no server of this folder is process {wish} here; `menugate status` names them.", code=2)
    if arguments.config:
        return None
    different = {get_judgement_key(one): one for one in found if wish in (None, one.pid)}
    if len(different) > 1 and strict:
        raise CliError(
            f"{len(different)} servers here judge differently:\n{describe_servers(found)}\nName one with --server PID."
        )
    return next(iter(different.values())) if len(different) == 1 else None


def get_judgement_key(one: "Server") -> tuple[object, ...]:
    texts = tuple(sorted(one.texts.items()))
    # Of several that see the same file, each comes to rest at a moment of its own.
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
    """What is on disk, and where that does not count, what the server says it was; under what held before as well
    while what came after it has not yet lain still."""
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
    """On stderr, beside what was asked for: by what it was judged, and what does not hold in a running server."""
    if found.server is not None and found.server.config:
        note(f"Judged as the running server does (process {found.server.pid}), by {found.server.config}.")
    for one in found.servers:
        for told in one.differences:
            note(told)
        if found.server is None and one.config != (str(found.settings.config) if found.settings.config else None):
            note(f"Process {one.pid} judges by {describe_config(one)}.")


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
