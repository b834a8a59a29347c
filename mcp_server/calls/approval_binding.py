"""What is an approval bound to?"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import anyio

from mcp_server.calls.approval_text import STANDS, TARGETS
from mcp_server.calls.request import CANONICAL, ResolvedCall
from mcp_server.guards.jail import Jail
from mcp_server.guards.path_targets import Target, find_targets
from mcp_server.guards.redaction import Redactor
from mcp_server.model.approvals import ApprovedCall
from mcp_server.model.context import Context
from mcp_server.model.files import RehearsalOver
from mcp_server.model.policy import Decision
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tools import READING, Arguments, Demand, Effect, Tool
from mcp_server.policy.arguments import normalize_arguments
from mcp_server.state.engine.rows import Judged

# What is an approval bound to? The arguments that decide what the call does, and where their paths lead.

NOTHING = object()


@dataclass(frozen=True)
class Binding:
    jail: Jail
    """Knows what a path means here, and where its links lead."""
    redactor: Redactor

    def find_destinations(self, found: ResolvedCall, decision: Decision, facts: Arguments) -> Arguments:
        """Return which path arguments lead elsewhere, and where; what is there; and the facts the call depends on."""
        given = {name: found.arguments[name] for name in found.tool.places if name in found.arguments}
        there = {name: _apply(value, self.jail.resolve_links) for name, value in given.items()}
        leads = {name: there[name] for name in given if there[name] != given[name]}
        # By the time the call runs, the same name may belong to another file or folder.
        known: Mapping[str, Any] = found.tool.arguments.get("properties", {})
        named = {name: found.arguments.get(name, known.get(name, {}).get("default")) for name in found.tool.places}
        changes = decision.demand is None or decision.demand.effect not in READING
        targets: dict[str, tuple[Target, ...]] = {}

        def find(name: str, path: str) -> str:
            asked = self._normalise_path(found.tool.join_base_path(name, path, found.arguments))
            targets[asked] = find_targets(self.jail, asked, hashed=changes and not facts)
            return asked

        for name, value in named.items():
            _apply(value, partial(find, name))
        return {**leads, TARGETS: targets, **({STANDS: facts} if facts else {})}

    def build_approved_call(self, found: ResolvedCall, judged: Judged, leads: Arguments) -> ApprovedCall:
        """Build the call as an approval must describe it. A connection that keeps no session has none to bind it to."""
        session = replace(judged.session, id="", run="") if found.live.passing else judged.session
        demand = judged.decision.demand or Demand(found.tool.effect, found.tool.profile)
        digest = self._digest_deciding_arguments(found.tool, found.arguments, leads)
        exact = Effect.EXEC in (found.tool.effect, demand.effect)
        asked = ApprovedCall.build_from_demand(session, judged.posture, found.tool.name, demand, digest)
        return replace(
            asked,
            # Nobody approves for a whole session what they cannot see in full. Nor a call that depends on more than its
            # arguments, unless the approval is for these arguments alone.
            lasting=asked.lasting and not self._has_secret(found.arguments) and (exact or STANDS not in leads),
            exact=exact,
            loose=found.loose,
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
        canonical = CANONICAL.encode({"decides": decides, "leads": leads})
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


async def look_up_facts(
    tool: Tool, context: Context, given: Arguments, failed: Callable[[BaseException], None]
) -> Arguments | Problem:
    """Return the facts, or why the call stops: nobody can approve what could not be looked up."""
    assert tool.stands_on is not None, "asked only of a tool that stands on something"
    try:
        with anyio.move_on_after(tool.timeout):
            return await tool.stands_on(context, normalize_arguments(tool.arguments, given))
        message = f"What `{tool.name}` would act on could not be looked at in time. Nothing ran."
        return Problem(Code.TIMEOUT, message, "Ask for less.")
    except Refusal as refused:
        return refused.problem
    except Exception as fault:
        # A pack is somebody else's code: it may raise anything.
        failed(fault)
        message = f"What `{tool.name}` would act on could not be looked at; menugate's log says why. Nothing ran."
        return Problem(Code.INTERNAL, message, "Try another way.")
