"""What is a yes bound to? The arguments that decide what a call does, and the places their paths lead to."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from mcp_server.calls.approving.wording import STANDS
from mcp_server.calls.asking import CANONICAL, Found
from mcp_server.guards.jail import Jail
from mcp_server.guards.redaction import Redactor
from mcp_server.model.ending import Refusal
from mcp_server.model.ports.context import Belongings
from mcp_server.model.runs.approval import Wanted
from mcp_server.model.tool import Arguments, Demand, Effect, Tool
from mcp_server.rules.arguments import normalised
from mcp_server.state.record import Judged

NOTHING = object()


@dataclass(frozen=True)
class Binding:
    jail: Jail
    """Knows what a path means here, and where its links lead."""
    redactor: Redactor
    objects: Callable[[str], Belongings]
    """What a session keeps between its calls."""

    def destinations(self, found: Found) -> Arguments:
        """The paths among the arguments that lead elsewhere, and where to."""
        given = {name: found.arguments[name] for name in found.tool.places if name in found.arguments}
        there = {name: _apply(value, self.jail.leads) for name, value in given.items()}
        leads = {name: there[name] for name in given if there[name] != given[name]}
        return {**leads, **self._stands(found)}

    def _stands(self, found: Found) -> Arguments:
        """Where a shell that stays has gone: a line means something else in another folder."""
        if found.tool.goes_on_with is None:
            return {}
        kept = self.objects(found.seat.session.id)
        names = found.tool.goes_on_with(found.arguments)
        shell = next((one for name in names if (one := kept.get(name)) is not None), None)
        return {STANDS: shell.standing()} if shell is not None else {}

    def wanted(self, found: Found, judged: Judged, leads: Arguments) -> Wanted:
        """The call as a yes has to be about it. A connection that remembers nothing has no session to bind it to."""
        session = replace(judged.session, id="", run="") if found.seat.passing else judged.session
        demand = judged.decision.demand or Demand(found.tool.effect, found.tool.profile)
        digest = self._digest(found.tool, found.arguments, leads)
        asked = Wanted.by(session, judged.posture, found.tool.name, demand, digest)
        return replace(
            asked,
            # Nobody says yes for longer to what they do not see all of.
            lasting=asked.lasting and not self._holds_secret(found.arguments),
            exact=Effect.EXEC in (found.tool.effect, demand.effect),
            loose=found.loose,
        )

    def _digest(self, tool: Tool, arguments: Arguments, leads: Arguments) -> str:
        """The digest of what decides. An argument left out counts as its default. What a tool does not call incidental
        decides: what nobody thought of is asked about once more, and never let through."""
        given = {name: value for name, value in arguments.items() if name not in tool.incidental}
        given = normalised(tool.arguments, given)
        places = {name: _apply(given[name], self._spelling) for name in tool.places if name in given}
        known: Mapping[str, Any] = tool.arguments.get("properties", {})
        decides = {name: one for name, one in {**given, **places}.items() if not _is_default(known.get(name), one)}
        canonical = CANONICAL.encode({"decides": decides, "leads": leads})
        return hashlib.sha256(canonical.encode()).hexdigest()

    def _spelling(self, path: str) -> str:
        try:
            return self.jail.relative(path)
        except Refusal:
            return path

    def _holds_secret(self, value: Any) -> bool:
        if isinstance(value, str):
            return any(secret for _, secret in self.redactor.pieces(value))
        if isinstance(value, Mapping):
            entries = cast(Mapping[str, Any], value)
            return any(self._holds_secret(one) for entry in entries.items() for one in entry)
        return isinstance(value, list) and any(map(self._holds_secret, cast(list[Any], value)))


def _is_default(schema: Any, value: Any) -> bool:
    default = cast(Mapping[str, Any], schema).get("default", NOTHING) if isinstance(schema, Mapping) else NOTHING
    return type(default) is type(value) and default == value


def _apply(value: Any, turn: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [_apply(one, turn) for one in cast(list[Any], value)]
    return turn(value) if isinstance(value, str) else value
