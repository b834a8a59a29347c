"""Who builds the application? This module, which knows all the others; only the command line imports it.

Everything is built here and passed to constructors; no other module builds what it does not own.
"""

import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import mcp_server
from mcp_server.app import App, LazyPipeline
from mcp_server.calls.carriers import HANDLE_PREFIX
from mcp_server.calls.pauses import Holds
from mcp_server.calls.policy import CurrentPolicy
from mcp_server.calls.posture import CurrentPostures, PostureChanges
from mcp_server.calls.session_objects import ObjectRegistry
from mcp_server.calls.sessions import Sessions
from mcp_server.calls.slash import StopCommand
from mcp_server.calls.stops import RunningCalls
from mcp_server.config.faults import ConfigFaults
from mcp_server.config.load import Configuration, load_configuration
from mcp_server.config.prompts import PromptError
from mcp_server.model.tool_packs import Pack
from mcp_server.person import (
    build_health_response,
    build_posture_changes,
    build_profile_raise,
    build_slash_commands,
    make_id_generator,
)
from mcp_server.reload import ConfigurationReload
from mcp_server.settings import OPERATORS_FILE, BuildError, Settings, read_variable
from mcp_server.state import ledger
from mcp_server.state.engine.rows import Clock, WallClock
from mcp_server.state.keys import load_or_create_secret
from mcp_server.state.keys import write_bearer_token as shared
from mcp_server.state.location import make_private_folder
from mcp_server.state.store import Store
from mcp_server.wire.instructions import format_instructions
from mcp_server.wire.listings import Listings
from mcp_server.wire.notifications import Notifier
from mcp_server.wire.prompts import OfferHandlers, OwnPrompts
from mcp_server.wire.resources import build_report_resources, build_summary_resources
from mcp_server.wire.server import Handlers, build_server, get_server_stamp, make_schema_lookup
from mcp_server.wire.telemetry import TelemetrySettings, TelemetryUnavailable, start_telemetry

if TYPE_CHECKING:
    from mcp_server.gate import Gate
    from mcp_server.wire.telemetry import TelemetryHandle

log = logging.getLogger("menugate")


def build_app(settings: Settings, packs: Sequence[Pack] = (), clock: Clock | None = None) -> App:
    found = load_configuration(settings, packs)
    if isinstance(found, ConfigFaults):
        raise BuildError(str(found))
    if settings.mode is not None and found.policy.menus.get(settings.mode) is None:
        names = ", ".join(mode.name for mode in found.policy.menus)
        raise BuildError(f"there is no mode `{settings.mode}`; there are {names}.")
    prepare_folders(settings)
    try:
        return assemble_app(found, settings, clock)
    except (PromptError, TelemetryUnavailable) as wrong:
        raise BuildError(str(wrong)) from None
    except OSError as wrong:
        raise BuildError(f"{wrong.filename} cannot be written ({wrong.strerror}); menugate needs it.") from wrong


def assemble_app(found: Configuration, settings: Settings, clock: Clock | None) -> App:
    new_id, time = make_id_generator(), clock or WallClock()
    store = Store.open(settings.url, secrets=settings.secrets, clock=time, new_id=new_id)
    keeping, holds = ObjectRegistry(log_failure), Holds(store)

    def left(session: str) -> None:
        keeping.release_session(session)
        live_calls.board.schedule_write()

    sessions = Sessions(store, holds, new_id, make_session_handle, left)
    token, conversation = load_http_token(settings), new_id()
    secrets = collect_secrets(found, settings, token)

    def built() -> "Gate":
        from mcp_server.gate import Rooms, build_gate

        rooms = Rooms(
            store, sessions, holds, doors.postures, ruling, time, keeping, secrets, live_calls, notice, log_failure
        )
        return build_gate(found, settings, rooms, conversation)

    entrance = LazyPipeline(built, found.library.config.sandbox)
    found = replace(found, policy=replace(found.policy, shelter=entrance.get_sandbox_state))
    doors, ruling = build_posture_changes(found, settings, store), CurrentPolicy(found.policy)
    live_calls = RunningCalls(
        store, holds, entrance.redact, new_id, doors.postures.get_known_principals, settings.state
    )
    halting = StopCommand(store, holds, new_id, build_profile_raise(found, store, time))
    offers = build_offer_handlers(found, settings, doors, halting, entrance, time)
    watching = build_telemetry(found, settings, offers)
    notice, last_words = (watching.telemetry.note_decision, watching.stop) if watching else (None, None)
    front = build_handlers(found, settings, entrance, (sessions, doors.postures), offers)
    seal = load_or_create_secret(settings.secrets and settings.secrets / "request-state.key", anew=True).encode()
    server = build_server(front, mcp_server.__version__, seal, watching.telemetry.watch_request if watching else None)
    front.listings.stamp.update(get_server_stamp(server))
    return App(
        law=found,
        settings=settings,
        store=store,
        sessions=sessions,
        postures=doors.postures,
        holds=holds,
        entrance=entrance,
        notices=front.notices,
        keeping=keeping,
        renewal=ConfigurationReload(
            found, settings, ruling, doors.postures, front.listings.judge_by, make_configuration_recorder(store)
        ),
        live_calls=live_calls,
        server=server,
        health=build_health_response(found, settings, doors),
        token=token,
        last_words=last_words,
    )


def make_configuration_recorder(store: Store) -> Callable[[str | None, int, str], Awaitable[int]]:
    async def record(config: str | None, rules: int, fault: str) -> int:
        return await store.write(lambda tx: ledger.record_rules(tx, config, rules, fault))

    return record


def build_offer_handlers(
    found: Configuration,
    settings: Settings,
    doors: PostureChanges,
    halting: StopCommand,
    entrance: LazyPipeline,
    clock: Clock,
) -> OfferHandlers:
    sayings = OwnPrompts(found.words, str(settings.workspace), doors.postures.get_for_display)
    typed = build_slash_commands(doors, halting, partial(examine_health, found, settings, doors), clock)
    written = (*build_report_resources(doors.store, entrance.redact), *build_summary_resources(doors.store))
    return OfferHandlers((sayings.build_pack(), *found.packs), typed, written)


async def examine_health(found: Configuration, settings: Settings, doors: PostureChanges, fix: bool) -> str:
    from mcp_server.health import examine_while_serving

    return await examine_while_serving(found, settings, doors, fix)


def log_failure(what: str, fault: BaseException) -> None:
    log.error("%s failed", what, exc_info=fault)


def collect_secrets(found: Configuration, settings: Settings, token: str | None) -> tuple[str, ...]:
    review = found.library.config.review
    told = (*settings.secret_values, token, read_variable(review.key) if review else "")
    return tuple(secret for secret in told if secret)


def build_telemetry(found: Configuration, settings: Settings, offers: OfferHandlers) -> "TelemetryHandle | None":
    wish = TelemetrySettings(settings.traces, settings.metrics, settings.workspace.name)
    return start_telemetry(wish, frozenset(found.policy.tools), offers.prompt_names, settings.person)


def load_http_token(settings: Settings) -> str | None:
    asked = settings.http is not None and settings.auth
    return shared(settings.secrets, settings.workspace, settings.state / "http.token") if asked else None


def build_handlers(
    found: Configuration,
    settings: Settings,
    entrance: LazyPipeline,
    people: tuple[Sessions, CurrentPostures],
    offers: OfferHandlers,
) -> Handlers:
    sessions, postures = people
    listings = Listings(found.policy, found.library.hosts, settings.listing or found.library.config.listing)
    return Handlers(
        pipeline=entrance,
        postures=postures,
        sessions=sessions,
        listings=listings,
        notices=Notifier(listings, postures.get_known, settings.settle_seconds),
        offers=offers,
        owner=settings.person,
        pinned=settings.mode,
        instructions=partial(format_endpoint_instructions, found),
        schema_of=make_schema_lookup(found.policy.tools),
        patience=settings.answer_seconds,
    )


def format_endpoint_instructions(found: Configuration, pinned: str | None) -> str:
    head, tail = found.words.render_prompt("instructions/head"), found.words.render_prompt("instructions/tail")
    return format_instructions(head, tail, found.policy.menus, found.policy.menus.get(pinned))


def prepare_folders(settings: Settings) -> None:
    for folder in settings.state_folders:
        if folder.is_symlink():
            # It may have come with the workspace, and lead to where a tool reads and writes.
            raise BuildError(
                f"{folder} is a link, and menugate keeps its state in a folder that is really there; take it away."
            )
    # A missing folder cannot be protected from a program that creates it, and a workspace may be a whole home.
    places = (settings.operators, *settings.key_places)
    inside = [place for place in places if place.resolve() in settings.protected_inside_workspace]
    for folder in (*settings.state_folders, *settings.private_folders, *inside):
        try:
            make_private_folder(folder)
        except OSError as wrong:
            raise BuildError(f"{folder} cannot be made ({wrong.strerror}); menugate keeps its state there.") from wrong
    if settings.operators.resolve() == settings.workspace:
        with suppress(FileExistsError):
            os.close(os.open(settings.workspace / OPERATORS_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    ignore = settings.state_folders[0] / ".gitignore"
    # A courtesy to the person's repository. A failure must not keep a server from reading what is there.
    with suppress(OSError):
        if not ignore.exists():
            ignore.write_text("*\n")


def make_session_handle() -> str:
    return HANDLE_PREFIX + secrets.token_urlsafe(16)
