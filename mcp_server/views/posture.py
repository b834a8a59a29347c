"""Which posture holds here, where does each of its values come from, and who serves under it?"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import CliError, note, when

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.model.posture import Posture, PostureChoice, Profile
    from mcp_server.policy.phrases import Narrowed
    from mcp_server.settings import Settings
    from mcp_server.state.reader import Reader


NOT_YET = "menugate has not run here yet."


@contextmanager
def remembering(settings: "Settings") -> Generator["Reader | None", None, None]:
    """What is remembered here; None where nothing ever was."""
    if not (settings.state / "state.db").exists():
        yield None
        return
    from mcp_server.model.results import Refusal
    from mcp_server.state.reader import Reader

    try:
        with Reader.open(settings.url, secrets=settings.secrets) as state:
            yield state
    except Refusal as refused:
        raise CliError(f"{refused.problem.message} {refused.problem.way_out}") from None


@dataclass(frozen=True, slots=True)
class PostureView:
    """The posture that holds for somebody, where each of its values comes from, and what is still to come."""

    posture: "Posture"
    origins: Mapping[str, str]
    choice: "PostureChoice | None" = None
    narrowed: "Narrowed | None" = None


def holding(
    settings: "Settings", found: "Configuration", state: "Reader | None", by_flag: bool, principal: str = ""
) -> PostureView:
    from mcp_server.model.posture import AXES, PostureChoice

    whose, lost = principal or settings.person, state.lost() if state else ""
    choice = state.choices().get(whose) if state else claimed(settings, whose)
    written = written_in(settings.config)
    origins = {axis: written.get(axis, "default") for axis in AXES}
    if settings.profile is not None:
        origins["profile"] = "--profile" if by_flag else "MENUGATE_PROFILE"
    if choice is None and lost:
        return PostureView(
            PostureChoice.least(0).over(found.posture),
            dict.fromkeys(AXES, LEAST),
            narrowed=typed_for(PostureChoice.least(0), found, lost, whose),
        )
    wished = choice.over(found.posture) if choice else found.posture
    origins |= dict.fromkeys(choice.axes if choice else (), "chosen")
    origins |= dict.fromkeys(
        choice.narrowed(found.posture) if choice else (), LEAST if lost and forgotten(choice) else NARROWED
    )
    posture = wished.capped(found.policy.ceiling).capped(ceiling_of(found, whose))
    asked = settings.profile or found.library.config.posture.profile
    said = choice is not None and "profile" in (*choice.axes, *choice.narrowing)
    if posture.profile is not (wished.profile if said else asked):
        origins["profile"] = "the ceiling"
    return PostureView(posture, origins, choice, typed_for(choice, found, lost, whose))


def typed_for(choice: "PostureChoice | None", found: "Configuration", lost: str, whose: str) -> "Narrowed | None":
    from mcp_server.policy.phrases import to_choose

    return to_choose(choice, found.posture.capped(ceiling_of(found, whose)), lost)


LEAST = "the least there is, because an earlier state was lost"
NARROWED = "claimed by a state that this account did not seal; it narrows until you choose"


def claimed(settings: "Settings", principal: str) -> "PostureChoice | None":
    """What another account's state says, where this account has not begun its own."""
    from mcp_server.state.peek import glimpse

    return glimpse(settings.database, settings.secrets, principal) if settings.foreign else None


def tell_alone(settings: "Settings") -> None:
    """Whoever steers should not think that somebody else's servers follow."""
    if settings.foreign and settings.foreign.exists():
        note("Another account works in this folder too, with a state of its own: this holds for your account alone.")


def forgotten(choice: "PostureChoice | None") -> bool:
    """Is all that was not chosen since at its least? A state that can still be read claims what was chosen in it."""
    from mcp_server.model.posture import AXES, PostureChoice

    least = PostureChoice.least(0).claims
    return choice is not None and all(axis in choice.axes or choice.claims.get(axis) == least[axis] for axis in AXES)


def ceiling_of(found: "Configuration", principal: str) -> "Profile":
    from mcp_server.config.load import lowest

    own = next((one.max_profile for one in found.library.config.tokens if one.principal == principal), None)
    return lowest(found.policy.ceiling, own)


def written_in(config: Path | None) -> dict[str, str]:
    """The keys of the operator's file, and where each stands."""
    from mcp_server.config.faults import FaultCollector
    from mcp_server.config.reader import Fields, read

    node = read(config, FaultCollector()) if config else None
    return {key: place.source for key, place in node.keys.items()} if isinstance(node, Fields) else {}


def serving(state: "Reader") -> list[dict[str, Any]]:
    """The processes that began, did not say that they ended, and are still there."""
    return [
        {"pid": row.fields.get("pid"), "since": when(row.at), "version": row.fields.get("version")}
        for row in state.alive()
    ]


def principal_meant(wish: str | None, settings: "Settings", found: "Configuration") -> str:
    """Whose posture is meant; somebody nobody knows would be chosen for in vain."""
    if wish is None or wish == settings.person:
        return settings.person
    from mcp_server.model.text import nearest, quoted

    with remembering(settings) as state:
        chosen = list(state.choices()) if state else []
    known = dict.fromkeys([settings.person, *(one.principal for one in found.library.config.tokens), *chosen])
    if wish in known:
        return wish
    near = nearest(wish, known)
    hint = f" Did you mean {quoted(near)}?" if near else ""
    raise CliError(f"nobody here is called {quoted(wish)}; there are {', '.join(known)}.{hint}")


def session_meant(wish: str, settings: "Settings") -> str:
    """A session that is on record here, or is held; of any other something would be said in vain."""
    from mcp_server.state.engine.rows import LedgerFilter

    with remembering(settings) as state:
        held = {session for _, session in state.holds()} if state else set[str]()
        if wish in held or (state and any(state.rows(LedgerFilter(session=wish, tail=1)))):
            return wish
    raise CliError(
        f"there is no session `{wish}` on record here; `menugate summary` names the one of the newest run, "
        "`menugate audit show N` that of row N."
    )


def in_json(stands: PostureView) -> dict[str, Any]:
    from mcp_server.policy.badge import badge, to_come

    return {
        "badge": badge(stands.posture),
        "posture": {
            axis: {"value": getattr(stands.posture, axis), "from": origin} for axis, origin in stands.origins.items()
        },
        "narrowed": {"says": stands.narrowed.says, "commands": stands.narrowed.commands} if stands.narrowed else None,
        "to_come": [
            {"id": change.id, "what": words, "scope": change.scope, "door": change.door, "reason": change.reason}
            for change, words in to_come(stands.choice)
        ],
    }
