"""Which posture is in force here, where does each value come from, and which servers follow it?"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcp_server.views.text import ViewError, format_time

if TYPE_CHECKING:
    from mcp_server.config.limits import Limits
    from mcp_server.model.posture import Posture, PostureChoice
    from mcp_server.policy.phrases import Narrowed
    from mcp_server.settings import Settings
    from mcp_server.state.reader import Reader


NOT_YET = "menugate has not run here yet."


@contextmanager
def open_state_reader(settings: "Settings") -> Generator["Reader | None", None, None]:
    """The state of this workspace, or None if there is none yet."""
    if not (settings.state / "state.db").exists():
        yield None
        return
    from mcp_server.model.results import Refusal
    from mcp_server.state.reader import Reader

    try:
        with Reader.open(settings.url, secrets=settings.secrets) as state:
            yield state
    except Refusal as refused:
        raise ViewError(f"{refused.problem.message} {refused.problem.way_out}") from None


class PostureView(Struct, frozen=True):
    """A principal's posture, where each value comes from, and the pending changes."""

    posture: "Posture"
    origins: Mapping[str, str]
    choice: "PostureChoice | None" = None
    narrowed: "Narrowed | None" = None


def build_posture_view(
    settings: "Settings", limits: "Limits", state: "Reader | None", by_flag: bool, principal: str = ""
) -> PostureView:
    from mcp_server.model.posture import AXES, PostureChoice

    whose, lost = principal or settings.person, state.describe_loss() if state else ""
    choice = state.load_choices().get(whose) if state else load_claimed_choice(settings, whose)
    written = find_written_keys(settings.config)
    origins = {axis: written.get(axis, "default") for axis in AXES}
    if settings.profile is not None:
        origins["profile"] = "--profile" if by_flag else "MENUGATE_PROFILE"
    if choice is None and lost:
        return PostureView(
            PostureChoice.build_most_restricted(0).apply_to(limits.posture),
            dict.fromkeys(AXES, LEAST),
            narrowed=find_narrowing(PostureChoice.build_most_restricted(0), limits, lost, whose),
        )
    wished = choice.apply_to(limits.posture) if choice else limits.posture
    chosen = choice.find_chosen_values(limits.posture) if choice else {}
    origins |= dict.fromkeys(chosen, "chosen")
    origins |= dict.fromkeys(
        choice.find_narrowed_axes(limits.posture) if choice else (),
        LEAST if lost and is_rest_at_narrowest(choice) else NARROWED,
    )
    posture = wished.cap_profile(limits.get_ceiling(whose))
    said = choice is not None and "profile" in (*chosen, *choice.narrowing_claims)
    if posture.profile is not (wished.profile if said else limits.start_profile):
        origins["profile"] = "the ceiling"
    return PostureView(posture, origins, choice, find_narrowing(choice, limits, lost, whose))


def find_narrowing(choice: "PostureChoice | None", limits: "Limits", lost: str, whose: str) -> "Narrowed | None":
    from mcp_server.policy.phrases import find_narrowed_posture

    return find_narrowed_posture(choice, limits.posture.cap_profile(limits.get_ceiling(whose)), lost)


LEAST = "the most restricted value, because an earlier state was lost"
NARROWED = "restricted by a state that this account did not seal; choose a posture to lift the restriction"


def load_claimed_choice(settings: "Settings", principal: str) -> "PostureChoice | None":
    """Read the choice in another account's state, if this account has no state of its own yet."""
    from mcp_server.state.peek import peek_posture_choice

    return peek_posture_choice(settings.database, settings.secrets, principal) if settings.foreign_state_file else None


def describe_other_account(settings: "Settings") -> str:
    """Warn that another account's servers do not follow; empty if there is no other account."""
    if settings.foreign_state_file and settings.foreign_state_file.exists():
        return "Another account also works in this folder, with its own state. This applies only to your account."
    return ""


def is_rest_at_narrowest(choice: "PostureChoice | None") -> bool:
    """Whether every axis not chosen since is at its most restricted. A state that can still be read may claim
    otherwise."""
    from mcp_server.model.posture import AXES, PostureChoice

    least = PostureChoice.build_most_restricted(0).claims
    return choice is not None and all(axis in choice.axes or choice.claims.get(axis) == least[axis] for axis in AXES)


def find_written_keys(config: Path | None) -> dict[str, str]:
    """The keys of the operator's file, and where each is written."""
    from mcp_server.config.faults import FaultCollector
    from mcp_server.config.reader import Fields, read_yaml_file

    node = read_yaml_file(config, FaultCollector()) if config else None
    return {key: place.source for key, place in node.keys.items()} if isinstance(node, Fields) else {}


def list_running_servers(state: "Reader") -> list[dict[str, Any]]:
    """The processes that started, did not record that they ended, and still run."""
    return [
        {"pid": row.fields.get("pid"), "since": format_time(row.at), "version": row.fields.get("version")}
        for row in state.find_unended_processes(running=True)
    ]


def find_principal(wish: str | None, settings: "Settings", limits: "Limits") -> str:
    """The principal with this name; an unknown one is an error, because the change would have no effect."""
    if wish is None or wish == settings.person:
        return settings.person
    from mcp_server.model.text import find_nearest_name, quote_text

    with open_state_reader(settings) as state:
        chosen = list(state.load_choices()) if state else []
    known = dict.fromkeys([settings.person, *limits.ceilings, *chosen])
    if wish in known:
        return wish
    near = find_nearest_name(wish, known)
    hint = f" Did you mean {quote_text(near)}?" if near else ""
    raise ViewError(f"no principal here is called {quote_text(wish)}; known names: {', '.join(known)}.{hint}")


def find_session(wish: str, settings: "Settings") -> str:
    """The session with this id, if it is on record or paused; any other is an error."""
    from mcp_server.state.engine.rows import LedgerFilter

    with open_state_reader(settings) as state:
        held = {session for _, session in state.load_holds()} if state else set[str]()
        if wish in held or (state and any(state.read_rows(LedgerFilter(session=wish, tail=1)))):
            return wish
    raise ViewError(
        f"there is no session `{wish}` on record here; `menugate summary` names the session of the newest run, and "
        "`menugate audit show N` the session of row N."
    )


def posture_to_json(stands: PostureView) -> dict[str, Any]:
    from mcp_server.policy.badge import describe_pending_changes, format_full_badge

    return {
        "badge": format_full_badge(stands.posture),
        "posture": {
            axis: {"value": getattr(stands.posture, axis), "from": origin} for axis, origin in stands.origins.items()
        },
        "narrowed": {"says": stands.narrowed.says, "commands": stands.narrowed.commands} if stands.narrowed else None,
        "to_come": [
            {"id": change.id, "what": words, "scope": change.scope, "door": change.door, "reason": change.reason}
            for change, words in describe_pending_changes(stands.choice)
        ],
    }
