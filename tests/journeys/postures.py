"""A long random walk of two servers on one workspace: does a call ever run under a policy that was revoked before?

python -m tests.journeys.postures --steps 100000 --seed N

Two processes on one folder, each with a house that a walk of its own goes through; a short walk goes through two houses
in one process, each with its own thread, connection and memory of the state. People choose, now and later; sessions
move; calls begin, run for a while and end; runs are completed. Afterwards the ledger is read from the beginning: what
held when a call was put on record is worked out anew from the transitions alone, and every call has to be one that this
allows.
"""

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from mcp_server.app import App
from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.request import CallRequest
from mcp_server.cli.call import CommandLine
from mcp_server.model.context import Context
from mcp_server.model.policy import Call, Verdict
from mcp_server.model.posture import (
    AXES,
    ChangeScope,
    Posture,
    PostureChange,
    Profile,
    WorkMode,
    find_axis_value,
    list_axis_words,
)
from mcp_server.model.results import Code, Done, Ending, Refusal
from mcp_server.model.sessions import Session
from mcp_server.model.tool_packs import Pack
from mcp_server.model.tools import ACTING, Effect, Hints, Tool
from mcp_server.policy.decision import decide
from mcp_server.state import posture, posture_changes, runs
from mcp_server.state.engine.rows import Row
from mcp_server.state.reader import Reader
from tests.clients import tuned
from tests.clients.within import house

PEOPLE = ("alice", "bob")
MODES = ("walk", "data", "swe")
WEIGHTS = {"begins": 10, "ends": 9, "chooses": 5, "moves": 4, "completes": 2, "takes_back": 1, "goes_on": 3}
MOST_RUNNING = 12
TOOLS = {
    "walk_read": (Profile.RESTRICTED, Effect.READ_LOCAL),
    "walk_write": (Profile.NORMAL, Effect.WRITE_LOCAL),
    "walk_build": (Profile.TRUSTED, Effect.EXEC),
}


@dataclass
class Gates:
    """The calls that run, each until somebody lets it end."""

    open: dict[str, anyio.Event] = field(default_factory=dict[str, anyio.Event])
    began: dict[str, Posture] = field(default_factory=dict[str, Posture])

    async def run(self, _ctx: Context, args: Mapping[str, Any]) -> Ending:
        gate = self.open[args["call"]]
        await gate.wait()
        return Done("ended")


def pack(gates: Gates) -> Pack:
    schema = {"type": "object", "properties": {"call": {"type": "string"}}, "required": ["call"]}

    def tool(name: str, profile: Profile, effect: Effect) -> Tool:
        reads = effect is Effect.READ_LOCAL
        hints = Hints(read_only=reads, destructive=not reads, idempotent=False, open_world=False)
        arguments = {**schema, "additionalProperties": False}
        return Tool(
            name=name,
            title=name,
            description="For a walk.",
            arguments=arguments,
            profile=profile,
            effect=effect,
            hints=hints,
            stages=ACTING,
            run=gates.run,
            timeout=600,
        )

    menus = Path(tuned.__file__).parent / "walk"
    return Pack("walk", tools=tuple(tool(name, *what) for name, what in TOOLS.items()), menus=(str(menus),))


@dataclass
class RandomWalk:
    houses: list[App]
    gates: Gates
    seed: int
    chance: random.Random
    group: anyio.abc.TaskGroup
    live_sessions: list[tuple[int, LiveSession]] = field(default_factory=list[tuple[int, LiveSession]])
    number: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*WEIGHTS, "turned away"), 0))

    async def sit(self) -> None:
        for index, one in enumerate(self.houses):
            for who in PEOPLE:
                live = one.core.sessions.open(who)
                await one.core.sessions.move(live, "walk", "the walk begins")
                self.live_sessions.append((index, live))

    async def step(self) -> None:
        what = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        self.counts[what] += 1
        try:
            await getattr(self, what)()
        except Refusal as refused:
            # On a machine with too much to do the state may be held for too long; who is turned away did nothing.
            if refused.problem.code is not Code.BUSY:
                raise
            self.counts["turned away"] += 1

    async def begins(self) -> None:
        if len(self.gates.open) >= MOST_RUNNING:
            return await self.ends()
        self.number += 1
        name = str(self.number)
        self.gates.open[name] = anyio.Event()
        index, live = self.chance.choice(self.live_sessions)
        tool = self.chance.choice(list(TOOLS))
        self.group.start_soon(self._called, index, live, tool, {"call": name})
        # Sometimes it is looked at before it has got far, sometimes after.
        for _ in range(self.chance.randrange(4)):
            await anyio.lowlevel.checkpoint()

    async def _called(self, index: int, live: LiveSession, tool: str, arguments: dict[str, Any]) -> None:
        await self.houses[index].pipeline.run(asked(live, tool, arguments))
        self.gates.open.pop(arguments.get("call", ""), None)

    async def ends(self) -> None:
        if self.gates.open:
            self.gates.open[self.chance.choice(list(self.gates.open))].set()
        await anyio.lowlevel.checkpoint()

    async def chooses(self) -> None:
        axis = self.chance.choice(["profile", "profile", "work_mode", "ai_mode", "run_control", "model_mode"])
        value = find_axis_value(axis, str(self.chance.choice(list_axis_words(AXES[axis]))))
        assert value is not None
        if self.chance.random() < 0.4:
            axis, value = self.chance.choice([("work_mode", WorkMode.BUILD), ("profile", Profile.TRUSTED)])
        self.number += 1
        scope = self.chance.choice(list(ChangeScope))
        # Two walks on one folder number their changes alike.
        change = PostureChange(f"c{self.seed}.{self.number}", {axis: value}, scope, "the walk")
        await self._at_a_door(posture_changes.request_posture_change, change=change)

    async def takes_back(self) -> None:
        who = self.chance.choice(PEOPLE)
        one = self.chance.choice(self.houses)
        choice = await one.core.store.read(partial(posture.load_choice, principal=who))
        ids = [change.id for change in choice.waiting] if choice else []
        await one.core.store.write(partial(posture_changes.drop_changes, principal=who, ids=ids[:1]))

    async def goes_on(self) -> None:
        """A unit of an assisted run is done, and the person looked at it."""
        await self._at_a_door(runs.resume_session, session=None)

    async def _at_a_door(self, deed: Any, **about: Any) -> None:
        one = self.chance.choice(self.houses)
        await one.core.store.write(partial(deed, principal=self.chance.choice(PEOPLE), **about))

    async def moves(self) -> None:
        index, live = self.chance.choice(self.live_sessions)
        arguments = {"mode": self.chance.choice(MODES if self.chance.random() < 0.3 else ("walk",))}
        await self.houses[index].pipeline.run(asked(live, "menu_enter", arguments))

    async def completes(self) -> None:
        index, live = self.chance.choice(self.live_sessions)
        await self.houses[index].pipeline.run(asked(live, "complete", {"final_answer": "so far"}))


def asked(live: LiveSession, tool: str, arguments: Mapping[str, Any]) -> CallRequest:
    async def nobody(_seat: LiveSession, _before: Session) -> None:
        """Nobody looks at a list here."""

    async def silent(_done: float, /, total: float | None = None, message: str | None = None) -> None:
        """Nobody waits here."""

    return CallRequest(
        tool=tool,
        arguments=arguments,
        live=live,
        principal=live.session.principal,
        client=CommandLine(),
        progress=silent,
        transport="walk",
        moved=nobody,
    )


@asynccontextmanager
async def walking(folder: Path, seed: int, houses: int = 2) -> AsyncGenerator[RandomWalk]:
    gates = Gates()
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(standing(folder, gates)) for _ in range(houses)]
        group = await stack.enter_async_context(anyio.create_task_group())
        walk = RandomWalk(opened, gates, seed, random.Random(seed), group)
        await walk.sit()
        yield walk
        for gate in tuple(gates.open.values()):
            gate.set()


def standing(folder: Path, gates: Gates) -> AbstractAsyncContextManager[App]:
    work, home = folder / "work", folder / "home"
    for one in (work, home):
        one.mkdir(parents=True, exist_ok=True)
    return house(work, home, pack(gates))


@dataclass
class Judge:
    """Reads the ledger from its beginning, and knows at each row what held."""

    policy: Any
    usual: Posture
    axes: dict[str, dict[str, Any]] = field(default_factory=lambda: {who: {} for who in PEOPLE})
    places: dict[str, str | None] = field(default_factory=dict[str, str | None])
    waits: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    trials: dict[str, str] = field(default_factory=dict[str, str])
    running: dict[str, set[int]] = field(default_factory=lambda: {who: set[int]() for who in PEOPLE})
    whose: dict[int, str] = field(default_factory=dict[int, str])
    calls: int = 0
    changes: int = 0
    faults: list[str] = field(default_factory=list[str])

    def take(self, row: Row) -> None:
        match row.kind:
            case "transition" if "event" in row.fields:
                self.turned(row)
            case "transition":
                self.places[row.fields["session"]] = row.fields["to"].get("mode")
            case "intent":
                self.called(row)
            case "outcome":
                self.running[self.whose[row.fields["intent"]]].discard(row.fields["intent"])
            case _:
                pass

    def turned(self, row: Row) -> None:
        """A choice of somebody's: its axes from here on, and whether its moment was the right one."""
        fields, who = row.fields, row.fields["principal"]
        event, change, scope = fields["event"], fields["change"], fields["scope"]
        self.changes += 1
        self.axes[who] = {axis: fields["to"][axis] for axis in AXES if axis in fields["to"]}
        if event == "asked" and scope == ChangeScope.AFTER_CURRENT_TOOL:
            self.waits[change] = set(self.running[who])
        if event == "in force" and (early := self.waits.pop(change, set()) & self.running[who]):
            self.faults.append(f"row {row.seq}: {change} came into force while {sorted(early)} ran")
        if event == "in force" and scope == ChangeScope.FOR_NEXT_UNIT:
            self.trials[change] = who
        if event == "reverted":
            self.trials.pop(change, None)

    def posture(self, who: str) -> Posture:
        chosen = {axis: AXES[axis](value) for axis, value in self.axes[who].items()}
        return replace(self.usual, **chosen)

    def called(self, row: Row) -> None:
        fields, who = row.fields, row.fields["principal"]
        self.whose[row.seq] = who
        self.running[who].add(row.seq)
        self.calls += 1
        held = self.posture(who)
        if any(fields[axis] != getattr(held, axis) for axis in AXES):
            self.faults.append(f"row {row.seq}: `{fields['tool']}` ran under another posture than held")
        tool = self.policy.tools[fields["tool"]]
        session = Session("", who, mode=fields["mode"], stage=None if tool.meta else Session("", "").stage)
        decision = decide(tool, Call(tool.name, None), session, held, self.policy)
        if decision.verdict is Verdict.DENY:
            self.faults.append(f"row {row.seq}: `{tool.name}` ran, and {decision.reason}")


def judged(one: App) -> Judge:
    judge = Judge(one.configuration.policy, one.configuration.posture)
    with Reader.open(one.settings.url, secrets=one.settings.secrets) as state:
        for row in state.read_rows():
            judge.take(row)
        report = state.verify()
    if not report.ok:
        judge.faults.append(f"the ledger: {report.faults[:3]}")
    return judge


async def walked(folder: Path, steps: int, seed: int) -> tuple[Judge, RandomWalk]:
    async with walking(folder, seed) as walk:
        await gone(walk, steps)
    return judged(walk.houses[0]), walk


async def gone(walk: RandomWalk, steps: int) -> RandomWalk:
    for _ in range(steps):
        await walk.step()
    return walk


async def alone(folder: Path, steps: int, seed: int) -> None:
    """One of several processes; what it did is read by somebody else."""
    async with walking(folder, seed, houses=1) as walk:
        await gone(walk, steps)
    print(f"{steps:,} steps with seed {seed}: {walk.counts}", flush=True)


def together(folder: Path, steps: int, seed: int) -> Judge:
    """Two processes, half of the steps each; the first fault in one of them is a fault of the walk."""
    about = [sys.executable, "-m", "tests.journeys.postures", "--folder", str(folder), "--steps", str(steps // 2)]
    walks = [subprocess.Popen([*about, "--seed", str(2 * seed + number)]) for number in range(2)]
    try:
        assert [walk.wait() for walk in walks] == [0, 0], "a walk did not come to its end"
    finally:
        for walk in walks:
            walk.kill()
    return asyncio.run(read(folder))


async def read(folder: Path) -> Judge:
    async with standing(folder, Gates()) as one:
        return judged(one)


def main() -> int:
    parser = argparse.ArgumentParser(description="Walk at random, then read whether anything ran that may not.")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="walk alone in a folder where another process does, and only walk")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        asyncio.run(alone(chosen.folder, chosen.steps, chosen.seed))
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        judge = together(Path(folder), chosen.steps, chosen.seed)
    print(f"{chosen.steps:,} steps of two processes with seed {chosen.seed} in {time.monotonic() - began:.0f} s")
    print(f"{judge.calls:,} calls ran, {judge.changes:,} transitions of posture, {len(judge.faults)} faults")
    for fault in judge.faults[:20]:
        print(fault)
    return 1 if judge.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
