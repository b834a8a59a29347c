"""What do the menu tools answer? The results of `menu_list`, `menu_enter`, `menu_exit` and `complete`.

The text and the structured content say the same, because many hosts show the model only one of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec import Struct

from mcp_server.calls import upstream_listing
from mcp_server.calls.carriers import format_example_call
from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.policy import CurrentPolicy
from mcp_server.calls.posture import CurrentPostures
from mcp_server.calls.request import CallRequest
from mcp_server.calls.results import append_note
from mcp_server.calls.runs import RunLifecycle
from mcp_server.calls.sessions import HANDLE_LIFE, Sessions, format_place
from mcp_server.calls.tool_search import SearchPlace, ToolFinder, describe_tools, list_mode_tools
from mcp_server.model.menus import META_TOOLS, Mode
from mcp_server.model.policy import Policy
from mcp_server.model.posture import Posture
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.schema import format_brief_schema
from mcp_server.model.sessions import Session
from mcp_server.model.text import first_sentence, format_count, shorten_text
from mcp_server.model.tools import Arguments, Tool
from mcp_server.policy.decision import list_visible_tools
from mcp_server.policy.refusals import find_lost_mode
from mcp_server.policy.router import Route, RouteChoice, route

MAX_EARLIER_PLACES = 5
MAX_ADDED = 10
"""Tools that a session may add to its list; of more, the earliest leave it."""
ADDED = "These tools are in your list until the run ends, in every mode."
NOTHING_ADDED = "Nothing was added, because this connection keeps no list of its own. Call the tools as shown."
"""Earlier places that are named to a caller that gets a new one."""


class Navigators(Struct, frozen=True):
    """Opens a navigator when a call needs one; most calls never move."""

    current_policy: CurrentPolicy
    sessions: Sessions
    postures: CurrentPostures
    runs: RunLifecycle
    finder: ToolFinder

    def open(self, request: CallRequest, live: LiveSession, has_handle: bool) -> "MenuNavigator":
        posture = partial(self.postures.get_known, live.session.principal)
        return MenuNavigator(
            live,
            self.sessions,
            self.current_policy.policy,
            posture,
            self.runs,
            self.finder,
            has_handle,
            request.listing.fixed,
            request.listing.carriers,
        )


@dataclass
class MenuNavigator:
    live: LiveSession
    sessions: Sessions
    policy: Policy
    posture: Callable[[], Posture]
    runs: RunLifecycle
    finder: ToolFinder
    has_handle: bool = False
    """The call carried a menu handle: it is about that place, and creates no other."""
    fixed: bool = False
    """The client's list never changes."""
    carriers: bool = True
    """The carriers are in that list."""
    session_before: Session | None = None
    """The session before this navigator moved it; None if it did not."""
    arrived: bool = False
    """The connection must switch to this navigator's live session, which may not be the one the call came from."""

    def show_menu(self) -> Ending:
        mode = self.policy.menus.by_name.get(self.live.session.mode)
        return self._describe_root() if mode is None else self._describe_mode(mode)

    def show_modes(self) -> Ending:
        modes, lines = self._list_modes()
        return Done("\n".join(["Enter a mode with `menu_enter` to get its tools:", *lines]), {"modes": modes})

    async def enter(self, query: str) -> Ending:
        mode = self.find_enterable_mode(query)
        if isinstance(mode, Problem):
            return await self._explain_unknown_mode(mode, query)
        if not self.has_handle:
            # A caller without a handle may be another agent on the same connection, so it gets a place of its own.
            self.live = await self.sessions.claim(self.live)
        # Write the session before it moves, so that entering the mode is on record.
        handle = await self.sessions.ensure_handle(self.live)
        problem = await self._move(mode.name, f"menu_enter {mode.name}")
        if problem is not None:
            return problem
        self.arrived = True
        return self._describe_entered_mode(mode, handle)

    async def _explain_unknown_mode(self, problem: Problem, query: str) -> Problem:
        """Words that name no mode may say what the caller wants to do: name the tools for that."""
        if problem.code is not Code.UNKNOWN_MODE or not query.strip():
            return problem
        return await self.finder.explain_unknown_mode(problem, query, self._build_search_place())

    async def find_tools(self, need: str, category: str = "") -> Ending:
        mode = self._find_mode(category) if category else None
        if isinstance(mode, Problem):
            return mode
        place = self._build_search_place()
        if mode is not None and not need.strip():
            return list_mode_tools(mode, place)
        return await self.finder.find(need, place, mode)

    def describe_tools(self, names: Sequence[str]) -> Ending:
        return describe_tools(names, self._build_search_place())

    async def add_tools(self, names: Sequence[str]) -> Ending:
        shown = self.describe_tools(names)
        if isinstance(shown, Problem):
            return shown
        if self.live.passing or self.live.session.pinned:
            return append_note(shown, NOTHING_ADDED)
        kept = [name for name in self.live.session.added if name not in names]
        moved = await self.sessions.add_tools(self.live, tuple(dict.fromkeys((*kept, *names)))[-MAX_ADDED:])
        if isinstance(moved, Problem):
            return moved
        self.session_before = moved
        gone = [name for name in kept if name not in self.live.session.added]
        left = f" Taken out, because at most {MAX_ADDED} are kept: {', '.join(gone)}." if gone else ""
        return append_note(self.describe_tools(names), f"{ADDED}{left}")

    def list_servers(self) -> Ending:
        return upstream_listing.list_servers(self._build_search_place())

    def list_server_tools(self, server: str) -> Ending:
        return upstream_listing.list_server_tools(server, self._build_search_place())

    def find_server_tool(self, server: str, tool: str) -> str | Problem:
        return upstream_listing.find_server_tool(server, tool, self._build_search_place())

    def find_server_resource(self, server: str, uri: str) -> tuple[str, Arguments] | Problem:
        return upstream_listing.find_server_resource(server, uri, self._build_search_place())

    def _build_search_place(self) -> SearchPlace:
        handle = (self.live.handle or "") if self.has_handle else ""
        return SearchPlace(self.live.session, self.posture(), self.policy, self.fixed, self.carriers, handle)

    async def move_to_mode(self, mode: Mode) -> Problem | None:
        """Move to that mode without a reply."""
        return await self._move_to_free_place(mode.name, f"menu_enter {mode.name}")

    def find_enterable_mode(self, query: str) -> Mode | Problem:
        mode = self._find_mode(query)
        if isinstance(mode, Mode) and self.live.session.pinned and mode.name != self.live.session.mode:
            return build_pinned_problem(self.live.session.mode)
        return mode

    async def _move_to_free_place(self, mode: str | None, reason: str) -> Problem | None:
        """Move, but never move a place whose handle a caller has, unless the call carries that handle."""
        if not self.has_handle:
            self.live = await self.sessions.choose_place(self.live, mode)
        problem = await self._move(mode, reason)
        self.arrived = problem is None and not self.has_handle
        return problem

    async def _move(self, mode: str | None, reason: str) -> Problem | None:
        moved = await self.sessions.move(self.live, mode, reason)
        if isinstance(moved, Session):
            self.session_before = moved
            return None
        return moved

    async def leave(self) -> Ending:
        before = self.policy.menus.by_name.get(self.live.session.mode)
        if before is None:
            return Problem(
                Code.ALREADY_AT_ROOT, "there is no mode to leave; you are at ROOT.", "Enter one with `menu_enter`."
            )
        if self.live.session.pinned:
            return build_pinned_problem(before.name)
        return await self._move_to_free_place(None, "menu_exit") or Done(
            f"Left {before.title} ({before.name}); you are at ROOT. `menu_list` shows every mode.",
            {"mode": None, "left": before.name},
        )

    async def complete(self, answer: str, status: str) -> Ending:
        if not answer.strip():
            return Problem(Code.INVALID_ARGUMENTS, "`final_answer` is empty.", "Tell the user what was done.")
        before = self.live.session
        ending = await self.runs.complete(self.live, answer, status)
        self._note_former_place(before)
        return ending

    async def think(self, content: str) -> Ending:
        before = self.live.session
        ending = await self.runs.think(self.live, content)
        self._note_former_place(before)
        return ending

    def _note_former_place(self, before: Session) -> None:
        if before.listing_key != self.live.session.listing_key:
            self.session_before = before

    async def change_phase(self, before: str | None, after: str | None, reason: str) -> Problem | None:
        moved = await self.sessions.change_phase(self.live, before, after, reason)
        if isinstance(moved, Session):
            self.session_before = moved
        return moved if isinstance(moved, Problem) else None

    def _find_mode(self, query: str) -> Mode | Problem:
        names = ", ".join(mode.name for mode in self.policy.menus)
        match route(query, self.policy.menus):
            case Route(mode=name):
                mode = self.policy.menus.by_name.get(name)
                assert mode is not None, "the router answers with modes of the menus it was given"
                return mode
            case RouteChoice(candidates=candidates, note=note):
                lines = "\n".join(f"{number}. {label}" for number, label in candidates)
                return Problem(
                    Code.AMBIGUOUS_MODE,
                    f"`{shorten_text(query)}` does not name exactly one mode: {note}.",
                    f"Call `menu_enter` again with the number or name of one of these:\n{lines}",
                    {"candidates": [{"number": number, "label": label} for number, label in candidates]},
                )
            case _:
                return Problem(Code.UNKNOWN_MODE, f"there is no mode `{shorten_text(query)}`.", f"Modes: {names}.")

    def _find_visible_tools(self, mode: Mode) -> list[Tool]:
        """Return the mode's tools, without those that the current posture would refuse."""
        session = self.live.session
        visible = (
            set(list_visible_tools(session, self.posture(), self.policy))
            if session.mode == mode.name
            else set(mode.tools)
        )
        return [self.policy.tools[name] for name in mode.tools if name in visible]

    def _list_modes(self) -> tuple[list[dict[str, Any]], list[str]]:
        modes = [
            {"number": number, "mode": mode.name, "title": mode.title, "when": mode.when, "tools": len(mode.tools)}
            for number, mode in enumerate(self.policy.menus, 1)
        ]
        return modes, [f"{one['number']}. {one['mode']}: {one['title']}. Use it {one['when']}" for one in modes]

    def _describe_root(self) -> Ending:
        modes, lines = self._list_modes()
        lost = find_lost_mode(self.live.session, self.policy)
        text = (
            f"You are at ROOT. {f'{lost}. ' if lost else ''}Enter a mode with `menu_enter` to get its tools:\n"
            + "\n".join(lines)
        )
        return Done(text, {"mode": None, "modes": modes})

    def _describe_mode(self, mode: Mode) -> Ending:
        tools = self._find_visible_tools(mode)
        leave = "" if self.live.session.pinned else " Leave with `menu_exit`, or enter another mode directly."
        text = (
            f"You are in {mode.title} ({mode.name}), {format_count(len(tools), 'tool')}. {mode.description}\n"
            f"{format_tool_list(tools)}\nIn every mode: {', '.join(META_TOOLS)}.{leave}"
        )
        data = {
            "mode": mode.name,
            "title": mode.title,
            "description": mode.description,
            "tools": build_tool_entries(tools),
        }
        return Done(text, data | {"meta": list(META_TOOLS)})

    def _describe_entered_mode(self, mode: Mode, handle: str) -> Ending:
        tools, earlier = self._find_visible_tools(mode), self._find_earlier_places()
        call = format_example_call(tools[0], menu=handle) if self.fixed and tools else ""
        how = "If a tool is not in your list, call it with menu_read or menu_call"
        lines = [
            f"You are in {mode.title} ({mode.name}), {format_count(len(tools), 'tool')}. {mode.description}",
            format_tool_list(tools),
            *([f"{how}, like this: {call}" if call else f"{how}."] if self.carriers else []),
            f"Menu handle: {handle} (pass it as `menu` if your calls do not share a connection; valid for "
            f"{HANDLE_LIFE}).",
        ]
        if earlier:
            back = ", ".join(f"`{name}` {other}" for name, other in earlier)
            lines.append(
                "This place is new: nothing has been read or planned in it yet. To return to an earlier one on this "
                f"connection, call `menu_enter` with its handle as `menu`: {back}."
            )
        data = {
            "mode": mode.name,
            "title": mode.title,
            "description": mode.description,
            "menu": handle,
            "menu_lives": HANDLE_LIFE,
            "tools": build_tool_entries(tools),
        }
        more: dict[str, Any] = {"call": call, "earlier": dict(earlier)}
        return Done("\n".join(lines), data | {name: value for name, value in more.items() if value})

    def _find_earlier_places(self) -> list[tuple[str, str]]:
        """Return mode and handle of this session's other places, newest last, for a caller that just got a new one."""
        if self.has_handle:
            return []
        others = [
            (other.session.mode, other.handle)
            for other in self.live.common.live_sessions
            if other.told and other is not self.live and other.handle and other.session.mode
        ]
        return others[-MAX_EARLIER_PLACES:]


def format_tool_list(tools: list[Tool]) -> str:
    return "\n".join(
        f"- {tool.name}({format_brief_schema(tool.offered)}): {first_sentence(tool.description)}" for tool in tools
    )


def build_tool_entries(tools: list[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "name": tool.name,
            "arguments": format_brief_schema(tool.offered),
            "description": first_sentence(tool.description),
        }
        for tool in tools
    ]


def build_pinned_problem(mode: str | None) -> Problem:
    return Problem(
        Code.WRONG_MODE,
        f"this endpoint serves only {format_place(mode)}; its mode cannot change.",
        "Use the listed tools. Other modes are on other endpoints, which only the user can connect.",
    )
