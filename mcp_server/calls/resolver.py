"""Which tool is meant, and where is it judged? Handles and carriers are resolved here, before anything is decided."""

import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, cast

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.calls.carriers import (
    drop_argument,
    find_menu_handle,
    fit_arguments,
    format_example_call,
    has_argument,
    normalise_carrier_arguments,
)
from mcp_server.calls.ledger import measure_arguments
from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.menus import MenuNavigator, Navigators
from mcp_server.calls.policy import CurrentPolicy
from mcp_server.calls.request import CallRequest, ResolvedCall
from mcp_server.calls.sessions import Sessions
from mcp_server.model.menus import CARRIERS, META_TOOLS, Mode
from mcp_server.model.policy import Policy, RuleKind
from mcp_server.model.results import Code, Problem
from mcp_server.model.sessions import Session
from mcp_server.model.text import shorten_text
from mcp_server.model.tools import Arguments, Tool
from mcp_server.policy.refusals import find_lost_mode, find_mode_with, format_enter_call
from mcp_server.policy.rule_trees import find_paths_beneath, has_tree_rules


class CallResolver(Struct, frozen=True):
    current_policy: CurrentPolicy
    sessions: Sessions
    navigators: Navigators
    root: str
    """The workspace, as a caller may write it in front of any path."""
    leads: Callable[[str], str]
    """Follows the links of a path."""
    holds: Callable[[str, int], tuple[str, ...] | None]
    """Lists a folder; None if it has more entries than the given number."""

    async def resolve_call(self, request: CallRequest) -> ResolvedCall | Problem:
        policy = self.current_policy.policy
        tool = policy.tools.get(request.tool)
        if tool is None or (tool.offers is None) is request.offer:
            return add_lost_mode(build_unknown_tool_problem(request.tool, policy), request.live.session, policy)
        meant = policy.meant(tool.name, request.arguments)
        if meant != request.arguments:
            request = replace(request, arguments=meant)
        if tool.name in CARRIERS:
            request = replace(request, arguments=normalise_carrier_arguments(request.arguments, policy))
        given = "menu" in request.arguments and not (request.within or request.offer)
        handle = find_menu_handle(tool, request.arguments) if given else None
        live = request.live if handle is None else await self._find_live(request, handle)
        if isinstance(live, Problem):
            return live
        if handle is not None and not has_argument(tool, "menu"):
            request = replace(request, arguments=drop_argument(request.arguments, "menu"), live=live)
        carrier, arguments = None, request.arguments
        if tool.name in CARRIERS:
            carried = unpack_carried_call(tool, arguments, policy, self.root)
            if isinstance(carried, Problem):
                return add_lost_mode(carried, live.session, policy)
            request, carrier, (tool, arguments) = replace(request, live=live), tool, carried
        elif not tool.meta:
            arguments = tool.make_paths_relative(arguments, self.root)
        led = None if tool.meta else resolve_links(tool, arguments, policy, self.leads, self.root)
        digest, size = measure_arguments(arguments)
        return ResolvedCall(request, tool, arguments, live, policy, digest, size, carrier, led, handle)

    def follow_links(self, call: ResolvedCall, policy: Policy) -> ResolvedCall:
        """Follow the links of the call's paths again, for new rules: the old ones may not have been about places."""
        led = resolve_links(call.tool, call.arguments, policy, self.leads, self.root)
        return replace(call, led=led, policy=policy)

    async def look_through_tree(self, call: ResolvedCall) -> ResolvedCall:
        """Add what rules say about the folder that the call takes as a whole, as it is now."""
        policy = self.current_policy.policy
        if not has_tree_rules(call.tool, policy):
            return call
        says = await to_thread.run_sync(find_paths_beneath, call.tool, call.readings, policy, self.holds)
        return replace(call, beneath=says)

    async def _find_live(self, request: CallRequest, handle: str) -> LiveSession | Problem:
        live = await self.sessions.find_by_handle(handle, request.principal)
        here = request.live.session
        if (
            isinstance(live, LiveSession)
            and here.pinned
            and (live.session.pinned, live.session.mode) != (True, here.mode)
        ):
            # A pinned endpoint promises one mode. A handle from elsewhere can be moved to another, so it must not widen
            # that.
            return request.live
        return live

    def find_wished_mode(self, call: ResolvedCall) -> Mode | Problem | None:
        """Find the mode that a carrier must enter first; None if there is none to enter."""
        wish = call.request.arguments.get("mode") if call.carrier else None
        if wish is None or wish == call.request.live.session.mode:
            return None
        desk = self.navigators.open(call.request, call.request.live, call.handle is not None)
        return desk.find_enterable_mode(str(wish))

    async def enter_mode(self, call: ResolvedCall, mode: Mode) -> ResolvedCall | Problem:
        """Enter the mode that a carrier names in `mode`, call by the same router as `menu_enter`, in the same step."""
        request = call.request
        desk = self.navigators.open(request, request.live, call.handle is not None)
        moved = await desk.move_to_mode(mode)
        await announce_move(call, desk)
        if isinstance(moved, Problem):
            return moved
        return replace(call, request=replace(request, live=desk.live), live=desk.live)


async def announce_move(call: ResolvedCall, desk: MenuNavigator | None, before: Session | None = None) -> None:
    """Announce the move to every client that sees the list. `before`: where the session was, if the call itself
    advanced the run."""
    request, live, session_before = call.request, call.live, before
    if desk is not None:
        left = request.turn(desk.live) if desk.arrived else None
        live, session_before = desk.live, left or desk.session_before or before
    if session_before is not None:
        await request.moved(live, session_before)


def unpack_carried_call(carrier: Tool, given: Arguments, policy: Policy, root: str) -> tuple[Tool, Arguments] | Problem:
    """Return the carried tool and its arguments, or why it may not be carried."""
    # Checked here because the decision will see only the carried tool and its arguments.
    if wrong := policy.unfit(carrier.name, given):
        return Problem(Code.INVALID_ARGUMENTS, wrong, _describe_carried_call(carrier, given, policy))
    name = str(given["tool"])
    tool = policy.tools.get(name)
    if name in (*META_TOOLS, *CARRIERS):
        return Problem(Code.NOT_CARRIED, f"`{name}` is always available.", f"Call `{name}` directly.")
    if tool is None or not tool.is_listed:
        return build_unknown_tool_problem(name, policy)
    if carrier.name == "menu_read" and not tool.hints.read_only:
        return Problem(
            Code.NOT_READ_ONLY, f"`{name}` does more than read.", "Call it with `menu_call` and the same arguments."
        )
    return tool, tool.make_paths_relative(policy.meant(name, given.get("arguments", {})), root)


def _describe_carried_call(carrier: Tool, given: Arguments, policy: Policy) -> str:
    """Show the call that was meant, with the tool's own arguments in `arguments`: many models put them beside its
    name."""
    tool = policy.tools.get(str(given.get("tool")))
    if tool is None or tool.name in (*META_TOOLS, *CARRIERS):
        return f"Call `{carrier.name}` again with arguments that fit."
    inner = given.get("arguments")
    beside = {name: value for name, value in given.items() if not has_argument(carrier, name)}
    own = {**beside, **(cast(Arguments, inner) if isinstance(inner, Mapping) else {})}
    where = {name: value for name in ("mode", "menu") if isinstance(value := given.get(name), str) and value}
    example = format_example_call(tool, fit_arguments(tool, own, policy), **where)
    return f"Put the tool's own arguments into `arguments`, like this: {example}"


def resolve_links(
    tool: Tool, given: Arguments, policy: Policy, leads: Callable[[str], str], root: str
) -> Arguments | None:
    """Resolve links, so that rules about places are asked about the target as well: otherwise a link is a name that no
    rule knows. None if no link changes anything, or if no rule could care."""
    of_tree = tool.tree != "" and has_tree_rules(tool, policy)
    if not of_tree and not any(policy.rules.get_shelf(tool.name, kind) for kind in RuleKind):
        return None

    def resolve_value(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [resolve_value(name, one) for one in cast(list[Any], value)]
        if not isinstance(value, str):
            return value
        path = tool.join_base_path(name, value, given)
        target = leads(path)
        # A path relative to another argument cannot stay relative once its link leads elsewhere.
        return value if target == path else target if path == value else f"{root.rstrip('/')}/{target}"

    led = {name: resolve_value(name, given[name]) for name in tool.places if name in given}
    return {**given, **led} if any(led[name] != given[name] for name in led) else None


READING = re.compile(r'Read\(file_path="(.+)"\)')


def advise_reading_first(call: ResolvedCall, ending: Problem, policy: Policy) -> Problem:
    """Name this call's place in the advice: reading first helps only there. A carried call without a handle may share
    nothing with the call before."""
    if ending.code not in (Code.NOT_READ, Code.STALE):
        return ending
    if call.live.passing and (said := READING.search(ending.way_out or "")):
        return replace(ending, way_out=_describe_reading_with_handle(call, said, policy))
    first = READING.sub(lambda said: _describe_reading_here(call, said, policy), ending.way_out or "")
    if ending.code is Code.NOT_READ and call.request.tool in CARRIERS and call.handle is None:
        mode = call.live.session.mode
        first += (
            f" If your calls do not share a connection, call `menu_enter` with `{mode}` and pass its handle as `menu`"
        )
        first += " in both."
    return replace(ending, way_out=first)


SOME_HANDLE = "menu_..."


def _describe_reading_with_handle(call: ResolvedCall, said: "re.Match[str]", policy: Policy) -> str:
    """Advise to use a handle: without one nothing is remembered, so reading first would never help."""
    here = find_mode_with(("Read", call.tool.name), call.live.session, policy)
    enter = format_enter_call(here) if here else "`menu_enter`"
    read = _describe_reading_here(call, said, policy, SOME_HANDLE)
    return (
        f"Without a menu handle, menugate does not remember what you read. Call {enter} once, and pass the handle it "
        f'returns in both calls: {read}, then this call with the same `"menu"`.'
    )


def _describe_reading_here(call: ResolvedCall, said: "re.Match[str]", policy: Policy, handle: str | None = None) -> str:
    """Show the read as this client must call it, so that it runs in the place of the refused call."""
    read, arguments = policy.tools.get("Read"), {"file_path": said[1]}
    where = {"menu": call.handle or handle or ""} if call.handle or handle else {}
    if read is not None and (call.request.listing.fixed or call.request.tool in CARRIERS):
        mode = call.live.session.mode
        return format_example_call(read, arguments, **(where or ({"mode": mode} if mode else {})))
    return f"Read {json.dumps({**arguments, **where}, ensure_ascii=False)}" if where else said[0]


def advise_thinking_with_handle(call: ResolvedCall, problem: Problem) -> Problem:
    """Advise to think with a handle: if calls share no connection and carry no handle, a thought that advances the run
    is forgotten."""
    if problem.code is Code.WRONG_STAGE and call.handle:
        return replace(problem, way_out=f'{problem.way_out} Pass `think` the same `"menu": "{call.handle}"`.')
    if problem.code is not Code.WRONG_STAGE or not call.live.passing:
        return problem
    how = "Your calls do not share a connection: call `menu_enter` first, and pass its handle as `menu` in later calls."
    return replace(problem, way_out=f"{problem.way_out} {how}")


def advise_other_mode(call: ResolvedCall, problem: Problem, policy: Policy) -> Problem:
    """Suggest a call that this client can make: if its list never changes, entering the mode does not let it repeat
    this one. For a caller that gave a handle, the call moves that place instead of creating another."""
    modes = policy.menus.find_modes_with(call.tool.name)
    if problem.code is not Code.WRONG_MODE or call.live.session.pinned or not modes:
        return problem
    misled = call.carrier is not None and call.request.arguments.get("mode") is not None
    if not (call.request.listing.fixed or misled):
        if call.handle is None:
            return problem
        return replace(problem, way_out=f"Call {format_enter_call(modes[0], call.handle)}, then make this call again.")
    here = find_mode_with((call.tool.name,), call.live.session, policy) or modes[0]
    where = {"mode": here.name} | ({"menu": call.handle} if call.handle else {})
    example = format_example_call(call.tool, fit_arguments(call.tool, call.arguments, policy), **where)
    if misled:
        return replace(problem, way_out=f"Call it in its own mode: {example}")
    return replace(problem, way_out=f"Your tool list does not change with the mode. Make the call like this: {example}")


def advise_other_tools(call: ResolvedCall, problem: Problem, tools: tuple[str, ...], policy: Policy) -> Problem:
    """Suggest the tools that do it, as calls that this client can make."""
    mode = find_mode_with(tools, call.live.session, policy)
    there = mode is not None and mode.name == call.live.session.mode
    if mode is None or not (call.request.listing.fixed or (call.handle and not there)):
        return problem
    way_out = problem.way_out or ""
    if not call.request.listing.fixed:
        return replace(problem, way_out=way_out.replace(format_enter_call(mode), format_enter_call(mode, call.handle)))
    where = {} if there and call.handle else {"mode": mode.name}
    example = format_example_call(
        policy.tools[tools[0]], None, **where | ({"menu": call.handle} if call.handle else {})
    )
    # Only the entering goes: what the tools do, and what they don't, is the same for every client.
    does = way_out.replace(f"{format_enter_call(mode)}, then ", "")
    how = "Make the call like this" if len(tools) == 1 else "Make the first call like this"
    return replace(problem, way_out=f"{does} {how}: {example}")


def build_unknown_tool_problem(name: str, policy: Policy) -> Problem:
    near = get_close_matches(name, [one for one, tool in policy.tools.items() if tool.is_listed], n=1, cutoff=0.7)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    return Problem(
        Code.UNKNOWN_TOOL,
        f"there is no tool `{shorten_text(name)}`.{hint}",
        "`menu_list` shows the modes and their tools.",
    )


def add_lost_mode(problem: Problem, session: Session, policy: Policy) -> Problem:
    """Tell a caller whose mode is gone: that may be why there is no such tool."""
    lost = find_lost_mode(session, policy) if problem.code is Code.UNKNOWN_TOOL else ""
    return replace(problem, way_out=f"This session is at ROOT now. {lost}. {problem.way_out}") if lost else problem
