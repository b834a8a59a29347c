"""What is an approval bound to?"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import anyio
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.approval_parts import PARTS, list_parts
from mcp_server.calls.approval_text import MOMENT, PINNED, SEEN, STANDS, TARGETS, UNTOLD
from mcp_server.calls.request import ResolvedCall
from mcp_server.guards.jail import Jail
from mcp_server.guards.loss_targets import find_lost, list_lost_paths
from mcp_server.guards.path_targets import Target, find_targets, look_at_path
from mcp_server.guards.redaction import Redactor
from mcp_server.guards.run_targets import RunTargets, find_run_targets
from mcp_server.model.approvals import ApprovalMoment, ApprovedCall, LostPath
from mcp_server.model.context import Context
from mcp_server.model.files import RehearsalOver
from mcp_server.model.policy import Decision
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import quote_text
from mcp_server.model.tools import READING, Arguments, CallPart, Demand, Effect, Tool
from mcp_server.policy.arguments import normalize_arguments
from mcp_server.state.engine.rows import Judged

# What is an approval bound to? The arguments that decide what the call does, and where their paths lead.

NOTHING = object()
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class Binding(Struct, frozen=True):
    jail: Jail
    """Knows what a path means here, and where its links lead."""
    redactor: Redactor

    def find_destinations(self, call: ResolvedCall, decision: Decision, facts: Arguments) -> Arguments:
        """Return which path arguments lead elsewhere, and where; what is there; and the facts the call depends on."""
        given = {name: call.arguments[name] for name in call.tool.places if name in call.arguments}
        there = {name: _apply(value, self.jail.resolve_links) for name, value in given.items()}
        leads = {name: there[name] for name in given if there[name] != given[name]}
        # By the time the call runs, the same name may belong to another file or folder.
        hashed = _does_change(decision) and not facts
        targets = {path: find_targets(self.jail, path, hashed) for _, path in self._list_paths(call)}
        runs = self._find_run_files(call, facts)
        run = {path: find_targets(self.jail, path, hashed=True) for path in runs.files}
        targets |= run
        # A file that is too large, or has another name elsewhere, is not read, so its content could change unseen.
        unread = next((path for path, found in run.items() if not any(one.sha256 for one in found)), None)
        untold = runs.untold or (f"{quote_text(unread)} cannot be read as a whole" if unread is not None else "")
        leads |= {UNTOLD: untold} if untold else {}
        lost = self._find_lost(call.tool.parts(call.arguments)) if call.tool.parts is not None else ()
        moment = ApprovalMoment(bool(untold or runs.loads), lost)
        leads |= {MOMENT: moment} if moment != ApprovalMoment() else {}
        pinned = {path: run[path] for path in runs.pinned if path in run}
        leads |= {PINNED: pinned} if pinned else {}
        return {**leads, TARGETS: targets, **({STANDS: facts} if facts else {})}

    def _find_lost(self, parts: Sequence[CallPart]) -> tuple[LostPath, ...]:
        """Find what the call deletes and overwrites, as far as its arguments say."""
        found = find_lost(self.jail, list_lost_paths([loss for part in parts for loss in part.losses]))
        return tuple(one._replace(path="") if self._has_secret(one.path) else one for one in found)

    def look_around(self, call: ResolvedCall, decision: Decision, facts: Arguments) -> Arguments:
        """Look at what is there now and what would be lost, for the person to see."""
        changes = _does_change(decision)
        seen = [look_at_path(self.jail, name, path, with_text=changes) for name, path in self._list_paths(call)]
        argument = call.tool.subject[0] if call.tool.subject else ""
        runs = self._find_run_files(call, facts)
        run = (look_at_path(self.jail, argument, path, with_text=False) for path in runs.files)
        there = tuple(one for one in (*seen, *(one for one in run if one and one.kind == "file")) if one is not None)
        return {SEEN: there, PARTS: list_parts(call.tool, call.arguments, decision, self.redactor, self.jail)}

    def _find_run_files(self, call: ResolvedCall, facts: Arguments) -> RunTargets:
        """Find the files that the call may run, and why these may not be all."""
        if call.tool.runs_files is None:
            return RunTargets()
        return find_run_targets(self.jail, call.tool.runs_files(call.arguments, facts))

    def _list_paths(self, call: ResolvedCall) -> list[tuple[str, str]]:
        """List the paths that the call names or leaves at their default, by argument."""
        known: Mapping[str, Any] = call.tool.arguments.get("properties", {})
        named = {name: call.arguments.get(name, known.get(name, {}).get("default")) for name in call.tool.places}
        paths: list[tuple[str, str]] = []

        def find(name: str, path: str) -> str:
            path_asked = self._normalise_path(call.tool.join_base_path(name, path, call.arguments))
            paths.append((name, path_asked))
            return path_asked

        for name, value in named.items():
            _apply(value, partial(find, name))
        return paths

    def build_approved_call(self, call: ResolvedCall, judged: Judged, leads: Arguments) -> ApprovedCall:
        """Build the call as an approval must describe it. A connection that keeps no session has none to bind it to."""
        session = replace(judged.session, id="", run="") if call.live.passing else judged.session
        demand = judged.decision.demand or Demand(call.tool.effect, call.tool.profile)
        digest = self._digest_deciding_arguments(call.tool, call.arguments, leads)
        exact = Effect.EXEC in (call.tool.effect, demand.effect)
        approved = ApprovedCall.build_from_demand(session, judged.posture, call.tool.name, demand, digest)
        return replace(
            approved,
            # Nobody approves for a whole session what they cannot see in full. Nor a call that depends on more than its
            # arguments, unless the approval is for these arguments alone.
            lasting=approved.lasting
            and not self._has_secret(call.arguments)
            and UNTOLD not in leads
            and (exact or STANDS not in leads),
            exact=exact,
            loose=call.loose,
            moment=leads.get(MOMENT, ApprovalMoment()),
        )

    def _digest_deciding_arguments(self, tool: Tool, arguments: Arguments, leads: Arguments) -> str:
        """Digest the arguments that decide. An argument left out counts as its default. Every argument that the tool
        does not declare incidental decides: one its author forgot leads to one more question, not to a call let
        through."""
        given = {name: value for name, value in arguments.items() if name not in tool.incidental}
        given = normalize_arguments(tool.arguments, given)
        places = {name: _apply(given[name], self._normalise_path) for name in tool.places if name in given}
        known: Mapping[str, Any] = tool.arguments.get("properties", {})
        decides = {name: one for name, one in {**given, **places}.items() if not _is_default(known.get(name), one)}
        lasting = {name: lead for name, lead in leads.items() if name != MOMENT}
        canonical = CANONICAL.encode({"decides": decides, "leads": lasting})
        return hashlib.sha256(canonical.encode()).hexdigest()

    def _normalise_path(self, path: str) -> str:
        try:
            return self.jail.to_relative(path)
        except Refusal:
            return path

    def _has_secret(self, value: Any) -> bool:
        if isinstance(value, str):
            return any(secret for _, secret in self.redactor.split_at_secrets(value))
        if isinstance(value, Mapping):
            entries = cast(Mapping[str, Any], value)
            return any(self._has_secret(one) for entry in entries.items() for one in entry)
        return isinstance(value, list) and any(map(self._has_secret, cast(list[Any], value)))


def collect_targets(leads: Arguments) -> dict[str, tuple[Target, ...]]:
    """Collect what was approved by every path that a tool may open it by: as the call writes it, and as it is."""
    found: Mapping[str, tuple[Target, ...]] = leads[TARGETS]
    return {**{one.path: targets for targets in found.values() for one in targets}, **found}


class ApprovedFacts(NamedTuple):
    """What the tool of an approved call is held to, by the fields of its context."""

    stands: Arguments | None
    targets: dict[str, tuple[Target, ...]]
    pinned: dict[str, str]


def collect_approved(leads: Arguments) -> ApprovedFacts:
    return ApprovedFacts(leads.get(STANDS), collect_targets(leads), collect_pinned(leads))


def collect_pinned(leads: Arguments) -> dict[str, str]:
    """Collect the scripts that were approved, by the path where each really is, with their SHA-256."""
    found: Mapping[str, tuple[Target, ...]] = leads.get(PINNED, {})
    return {one.path: one.sha256 for targets in found.values() for one in targets if one.sha256}


def _does_change(decision: Decision) -> bool:
    return decision.demand is None or decision.demand.effect not in READING


def _is_default(schema: Any, value: Any) -> bool:
    default = cast(Mapping[str, Any], schema).get("default", NOTHING) if isinstance(schema, Mapping) else NOTHING
    return type(default) is type(value) and default == value


def _apply(value: Any, turn: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [_apply(one, turn) for one in cast(list[Any], value)]
    return turn(value) if isinstance(value, str) else value


# Could the call succeed at all? A tool that works on files alone is tried before anybody is asked.

TELLING = frozenset({Code.INVALID_ARGUMENTS})
"""What a reader answers to arguments that do not fit the content, which is not to be told before it may be read."""


async def rehearse_call(tool: Tool, context: Context, given: Arguments) -> Problem | None:
    """Return why the call would fail. None if it would not, or if only running it can tell."""
    try:
        with anyio.move_on_after(tool.timeout):
            ending = await tool.run(context, normalize_arguments(tool.arguments, given))
            if not isinstance(ending, Problem) or (tool.effect in READING and ending.code in TELLING):
                return None
            # Further lines would show content that the user has not approved.
            return replace(ending, message=ending.message.partition("\n")[0])
        return None
    except RehearsalOver:
        return None
    except Refusal as refused:
        return refused.problem


# What does a call depend on besides its arguments? The tool is asked when an approval is needed, and again before the
# approval is used.


LookUpDemand: TypeAlias = Callable[[Context, Arguments, Demand], Awaitable[Demand | None]]


async def look_up_demand(
    tool: Tool, look: LookUpDemand, context: Context, given: Arguments, failed: Callable[[BaseException], None]
) -> Demand | Problem | None:
    """Return what the call needs, given what is where it would run, or why it stops."""
    return await _look_up(tool, lambda arguments: look(context, arguments, context.demand), given, failed)


async def look_up_facts(
    tool: Tool, context: Context, given: Arguments, failed: Callable[[BaseException], None]
) -> Arguments | Problem:
    """Return the facts, or why the call stops: nobody can approve what could not be looked up."""
    assert tool.stands_on is not None, "only a tool with `stands_on` gets here"
    return await _look_up(tool, partial(tool.stands_on, context), given, failed)


FoundT = TypeVar("FoundT")


async def _look_up(
    tool: Tool,
    look: Callable[[Arguments], Awaitable[FoundT]],
    given: Arguments,
    failed: Callable[[BaseException], None],
) -> FoundT | Problem:
    try:
        with anyio.move_on_after(tool.timeout):
            return await look(normalize_arguments(tool.arguments, given))
        message = f"menugate could not check in time what `{tool.name}` would act on. Nothing ran."
        return Problem(Code.TIMEOUT, message, "Try a smaller request.")
    except Refusal as refused:
        return refused.problem
    except Exception as fault:
        # A pack is somebody else's code: it may raise anything.
        failed(fault)
        message = f"menugate could not check what `{tool.name}` would act on; its log says why. Nothing ran."
        return Problem(Code.INTERNAL, message, "Try another way.")
