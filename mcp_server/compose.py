"""How is the application put together? This module knows all the others.

Everything is built here and passed to constructors; no other module builds what it does not own. Whatever only calls
need is imported by the functions that build it, on the first call: hosts start many servers, list their tools, and
never call most of them. A server that is only listed loads over a hundred modules fewer."""

import logging
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

import mcp_server
from mcp_server.app import App, Core, Guards, LazyPipeline, LazyRedactor, SandboxWatch, UpstreamPort
from mcp_server.calls.carriers import make_session_handle
from mcp_server.calls.health import build_health_response
from mcp_server.calls.messages import Replies
from mcp_server.calls.pauses import Holds
from mcp_server.calls.policy import CurrentPolicy
from mcp_server.calls.posture import CurrentPostures, PostureChanges
from mcp_server.calls.posture_raise import ProfileRaise
from mcp_server.calls.run_commands import RunCommands
from mcp_server.calls.running_calls import RunningCalls
from mcp_server.calls.secrets import KnownSecrets, UsableSecrets, collect_secrets
from mcp_server.calls.session_objects import ObjectRegistry
from mcp_server.calls.sessions import Sessions
from mcp_server.calls.slash import SlashCommands
from mcp_server.calls.stops import StopOrders
from mcp_server.calls.upstream_offers import ServerOffers
from mcp_server.config.faults import ConfigFaults
from mcp_server.config.folders import prepare_folders
from mcp_server.config.load import DATA, Configuration, get_limits, load_configuration
from mcp_server.config.prompts import PromptError
from mcp_server.installation import build_host_paths
from mcp_server.model.approvals import ApprovalChannel
from mcp_server.model.tool_packs import Pack
from mcp_server.model.tools import LazyFunction
from mcp_server.reload import ConfigurationReload
from mcp_server.settings import BuildError, Settings
from mcp_server.state.engine.rows import Clock, WallClock
from mcp_server.state.ids import make_id_generator, make_short_id
from mcp_server.state.keys import load_or_create_secret, write_bearer_token
from mcp_server.state.store import Store
from mcp_server.wire.instructions import format_current_instructions
from mcp_server.wire.listings import Listings
from mcp_server.wire.notifications import Notifier
from mcp_server.wire.prompts import OfferHandlers, OwnPrompts
from mcp_server.wire.resources import build_report_resources, build_summary_resources
from mcp_server.wire.server import Handlers, MenuServer, build_server, get_server_stamp, make_schema_lookup
from mcp_server.wire.telemetry import TelemetrySettings, TelemetryUnavailable, start_telemetry

if TYPE_CHECKING:
    from mcp_server.calls.context import PortFactories
    from mcp_server.calls.ledger import LedgerRecorder
    from mcp_server.calls.memory import ProjectMemory
    from mcp_server.calls.pipeline import Pipeline
    from mcp_server.calls.runs import RunLifecycle
    from mcp_server.wire.telemetry import TelemetryHandle

log = logging.getLogger("menugate")
LISTABLE = LazyFunction("mcp_server.wire.translate:find_wire_fault")


def load(settings: Settings, packs: Sequence[Pack] = ()) -> Configuration:
    """Load the configuration, or raise `BuildError` with every fault."""
    configuration = load_configuration(settings, packs, find_wire_fault=LISTABLE)
    if isinstance(configuration, ConfigFaults):
        raise BuildError(str(configuration))
    menus = configuration.policy.menus
    if settings.mode is not None and menus.by_name.get(settings.mode) is None:
        raise BuildError(f"there is no mode `{settings.mode}`; the modes are {', '.join(mode.name for mode in menus)}.")
    return configuration


def build_app(settings: Settings, packs: Sequence[Pack] = (), clock: Clock | None = None) -> App:
    """Build what the first tool list needs; the rest follows with the first call."""
    configuration = load(settings, packs)
    prepare_folders(settings)
    try:
        return assemble_app(configuration, settings, clock or WallClock())
    except (PromptError, TelemetryUnavailable) as wrong:
        raise BuildError(str(wrong)) from None
    except OSError as wrong:
        raise BuildError(f"{wrong.filename} cannot be written ({wrong.strerror}); menugate needs it.") from wrong


def assemble_app(configuration: Configuration, settings: Settings, clock: Clock) -> App:
    token = load_http_token(settings)
    sandbox = SandboxWatch(configuration.library.config.sandbox)
    configuration = replace(configuration, policy=replace(configuration.policy, shelter=sandbox.get_state))
    core = build_core(
        configuration, settings, clock, sandbox, LazyRedactor(collect_secrets(configuration, settings, token))
    )
    prompts = build_prompt_handlers(configuration, settings, core)
    telemetry = build_telemetry(configuration, settings, prompts)
    if telemetry is not None:
        core = replace(core, note_decision=telemetry.telemetry.note_decision)
    pipeline = LazyPipeline(
        partial(build_guards, configuration, settings),
        partial(build_pipeline, configuration, settings, core),
        sandbox,
    )
    handlers = build_handlers(configuration, settings, core, pipeline, prompts)
    return App(
        configuration=configuration,
        settings=settings,
        core=core,
        pipeline=pipeline,
        notifier=handlers.notices,
        reload=build_reload(configuration, settings, core, pipeline, handlers),
        server=build_mcp_server(settings, handlers, telemetry),
        health=build_health_response(core.posture_changes, configuration.library.config, settings.person),
        token=token,
        stop_telemetry=telemetry.stop if telemetry else None,
    )


def build_reload(
    configuration: Configuration, settings: Settings, core: Core, pipeline: LazyPipeline, handlers: Handlers
) -> ConfigurationReload:
    """Everything that changes the policy of a running server: its files, and the servers behind it."""
    live = (core.current_policy, core.postures, handlers.listings.judge_by, core.store)
    reload = ConfigurationReload(configuration, settings, *live, KnownSecrets(settings, core.redactor.learn))
    core.upstreams.set_up(configuration.mounted, core, pipeline, reload, handlers.notices.announce_change)
    return reload


def build_core(
    configuration: Configuration, settings: Settings, clock: Clock, sandbox: SandboxWatch, redactor: LazyRedactor
) -> Core:
    new_id = make_id_generator()
    store = Store.open(settings.url, secrets=settings.secrets, clock=clock, new_id=new_id)
    holds, session_objects, upstreams = Holds(store), ObjectRegistry(log_failure), UpstreamPort()
    changes = build_posture_changes(configuration, settings, store)
    running_calls = RunningCalls(settings.state, redactor.redact)
    release_session = partial(release_left_session, session_objects, running_calls, upstreams)
    return Core(
        store=store,
        clock=clock,
        new_id=new_id,
        holds=holds,
        replies=Replies(store, running_calls.board.find_connected_sessions),
        posture_changes=changes,
        current_policy=CurrentPolicy(configuration.policy, keeps_glances=configuration.library.config.glance),
        sessions=Sessions(store, holds, new_id, make_session_handle, release_session),
        session_objects=session_objects,
        running_calls=running_calls,
        stop_orders=StopOrders(running_calls, store, holds, new_id, changes.postures.get_known_principals),
        sandbox=sandbox,
        redactor=redactor,
        upstreams=upstreams,
        conversation=new_id(),
    )


def release_left_session(objects: ObjectRegistry, calls: RunningCalls, upstreams: UpstreamPort, session: str) -> None:
    """Forget a session that no connection, process or handle can reach any more."""
    objects.release_session(session)
    upstreams.end_session(session)
    calls.board.schedule_write()


def build_posture_changes(configuration: Configuration, settings: Settings, store: Store) -> PostureChanges:
    return PostureChanges(store, CurrentPostures(store, get_limits(configuration, settings)), make_short_id)


def build_prompt_handlers(configuration: Configuration, settings: Settings, core: Core) -> OfferHandlers:
    """The prompts, the slash commands and the resources."""
    changes, store, words = core.posture_changes, core.store, configuration.words
    out_of_band = configuration.library.config.approvals is ApprovalChannel.OUT_OF_BAND
    runs = RunCommands(changes, core.holds, core.new_id, ProfileRaise(store, core.clock, out_of_band, changes))
    own = OwnPrompts(words, str(settings.workspace), core.postures.get_for_display)
    examine = partial(examine_health, configuration, settings, changes)
    slash = SlashCommands(changes, runs.raising, examine, core.clock).build_commands()
    return OfferHandlers(
        (own.build_pack(), *configuration.packs),
        (*slash, *runs.build_commands()),
        (*build_report_resources(store, core.redactor.redact), *build_summary_resources(store)),
    )


async def examine_health(configuration: Configuration, settings: Settings, changes: PostureChanges, fix: bool) -> str:
    from mcp_server.health import examine_while_serving

    return await examine_while_serving(configuration, settings, changes, fix)


def build_handlers(
    configuration: Configuration, settings: Settings, core: Core, pipeline: LazyPipeline, prompts: OfferHandlers
) -> Handlers:
    library, policy = configuration.library, configuration.policy
    listings = Listings(policy, library.hosts, settings.listing or library.config.listing)
    return Handlers(
        pipeline=pipeline,
        postures=core.postures,
        sessions=core.sessions,
        listings=listings,
        notices=Notifier(listings, core.postures.get_known, settings.settle_seconds),
        offers=prompts,
        owner=settings.person,
        pinned=settings.mode,
        instructions=partial(format_current_instructions, configuration, core.current_policy),
        schema_of=make_schema_lookup(lambda: core.current_policy.policy.tools),
        patience=settings.answer_seconds,
        server_offers=ServerOffers(core.upstreams.find, core.current_policy, core.postures, core.redactor.redact_value),
    )


def build_mcp_server(settings: Settings, handlers: Handlers, telemetry: "TelemetryHandle | None") -> MenuServer:
    seal = load_or_create_secret(settings.secrets and settings.secrets / "request-state.key", anew=True).encode()
    server = build_server(handlers, mcp_server.__version__, seal, telemetry and telemetry.telemetry.watch_request)
    handlers.listings.stamp.update(get_server_stamp(server))
    return server


def build_telemetry(
    configuration: Configuration, settings: Settings, prompts: OfferHandlers
) -> "TelemetryHandle | None":
    wanted = TelemetrySettings(settings.traces, settings.metrics, settings.workspace.name)
    return start_telemetry(wanted, frozenset(configuration.policy.tools), prompts.prompt_names, settings.person)


def load_http_token(settings: Settings) -> str | None:
    needed = settings.http is not None and settings.auth
    return write_bearer_token(settings.secrets, settings.workspace, settings.state / "http.token") if needed else None


def log_failure(what: str, fault: BaseException) -> None:
    """Log our own failures, which no client ever sees."""
    log.error("%s failed", what, exc_info=fault)


# From here on: what only calls need.


def build_guards(configuration: Configuration, settings: Settings) -> Guards:
    """The guards between a call and the disk, and between a command and the machine."""
    from mcp_server.guards.jail import Jail
    from mcp_server.guards.network.network import build_program_proxy
    from mcp_server.guards.processes.commands import build_command_host

    config, paths = configuration.library.config, build_host_paths(configuration, settings)
    jail = Jail(
        settings.workspace,
        settings.protected_inside_workspace,
        (settings.state / "spill",),
        installation=tuple(map(Path, paths.find_installation_inside((str(settings.workspace),)))),
    )
    commands = build_command_host(paths, jail, config.sandbox, config.limits, build_program_proxy(config.network))
    return Guards(jail, commands)


def build_pipeline(configuration: Configuration, settings: Settings, core: Core, guards: Guards) -> "Pipeline":
    from mcp_server.calls.approvals import Approvals, build_answer_trust
    from mcp_server.calls.memory import ProjectMemory
    from mcp_server.calls.menus import Navigators
    from mcp_server.calls.phases import PhaseLogs
    from mcp_server.calls.pipeline import Pipeline
    from mcp_server.calls.resolver import CallResolver
    from mcp_server.calls.results import ResultFilter
    from mcp_server.calls.running_calls import register_child_process
    from mcp_server.calls.summaries import SummarySchedule
    from mcp_server.calls.tool_search import build_tool_finder
    from mcp_server.guards.spill import open_swept_spill

    config, store, policy, jail = configuration.library.config, core.store, core.current_policy, guards.jail
    redactor = core.redactor.load()
    memory = ProjectMemory(store, redactor.redact)
    runs = build_run_lifecycle(configuration, core, guards, memory)
    navigators = Navigators(policy, core.sessions, core.postures, runs, build_tool_finder(DATA / "menus"))
    workspace = str(settings.workspace)
    guards.commands.registry.on_start = register_child_process
    return Pipeline(
        current_policy=policy,
        postures=core.postures,
        resolver=CallResolver(policy, core.sessions, navigators, workspace, jail.resolve_links, jail.list_beneath),
        recorder=build_recorder(configuration, core, guards),
        approvals=Approvals(store, core.clock, redactor, build_answer_trust(config), settings.approval_seconds),
        runs=runs,
        result_filter=ResultFilter(redactor, open_swept_spill(settings.state / "spill")),
        ports=build_port_factories(configuration, settings, core, guards, memory),
        navigators=navigators,
        run_memory=SummarySchedule(store, config.folding),
        replies=core.replies,
        phases=PhaseLogs(store, policy),
        running_calls=core.running_calls,
        stop_orders=core.stop_orders,
        failed=lambda tool, fault: log_failure(f"the tool {tool}", fault),
    )


def build_recorder(configuration: Configuration, core: Core, guards: Guards) -> "LedgerRecorder":
    from mcp_server.calls.approval_binding import Binding
    from mcp_server.calls.ledger import LedgerRecorder, build_tool_counter

    noted = (core.conversation, core.redactor.redact, core.note_decision)
    return LedgerRecorder(
        core.store,
        build_tool_counter(core.current_policy),
        *noted,
        Binding(guards.jail, core.redactor.load()),
        configuration.policy.read_line,
        core.redactor.load().redact_beginning,
        core.current_policy,
        core.running_calls.list_beside,
    )


def build_run_lifecycle(
    configuration: Configuration, core: Core, guards: Guards, memory: "ProjectMemory"
) -> "RunLifecycle":
    from mcp_server.calls.reviews import RunReview
    from mcp_server.calls.runs import RunLifecycle

    store, config, check = core.store, configuration.library.config, None
    if config.review is not None:
        from mcp_server.calls.advisers import build_model_check  # few operators name a model

        words = configuration.words.render_prompt
        check = build_model_check(config.review, config.network, store, core.redactor.load(), words)
    review = RunReview(store, guards.commands.build_call_processes, check)
    known = core.postures.get_known
    return RunLifecycle(store, core.sessions, core.holds, known, core.redactor.load(), review, memory.learn)


def build_port_factories(
    configuration: Configuration, settings: Settings, core: Core, guards: Guards, memory: "ProjectMemory"
) -> "PortFactories":
    from mcp_server.calls.context import PortFactories, SeenBy
    from mcp_server.calls.documents import build_document_stores
    from mcp_server.calls.messages import PersonChannel
    from mcp_server.calls.results import wrap_progress
    from mcp_server.calls.upstreams import build_upstream_grants
    from mcp_server.guards.atomic import Trash
    from mcp_server.guards.files import WorkspaceFiles
    from mcp_server.guards.index.index import WorkspaceIndex
    from mcp_server.guards.network.network import ToolNetworks
    from mcp_server.guards.network.outgoing import SecretSearch
    from mcp_server.guards.processes.git_identity import find_hooks_folder, find_ignore_file, read_signature
    from mcp_server.guards.search.ripgrep_run import find_ripgrep
    from mcp_server.guards.search.search import FileSearch

    store, jail = core.store, guards.jail
    ripgrep = find_ripgrep(settings.search_path, settings.workspace)
    search = FileSearch(jail, settings.protected_inside_workspace, ripgrep)
    files = WorkspaceFiles(jail, Trash(settings.state / "trash"), SeenBy(store), search)
    looks = (read_signature, find_ignore_file, find_hooks_folder)
    return PortFactories(
        files=lambda session, demand, profile, bounds: files.limit_to_grant(
            demand, SeenBy(store, session.key), profile, bounds
        ),
        processes=guards.commands.build_call_processes,
        network=ToolNetworks(SecretSearch(core.redactor.load().get_spellings)).build_network,
        belongings=lambda session: core.session_objects.build_session_objects(session.id),
        person=partial(PersonChannel, store, core.clock, *(partial(look, guards.commands.paths) for look in looks)),
        records=partial(build_document_stores, store),
        index=WorkspaceIndex(jail, settings.index, time.time_ns),
        memory=memory.build_lookup,
        progress=partial(wrap_progress, core.redactor.load()),
        upstreams=build_upstream_grants(core.upstreams.find, core.redactor.load()),
        secrets=partial(UsableSecrets, settings),
    )
