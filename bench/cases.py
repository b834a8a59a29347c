"""What is measured, how often, and how much may it cost? Every case runs both sides in turns, round by round."""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

from bench import catalogue, crowd, messages
from bench.processes import memory
from bench.ratios import Limit, Ratio, compare
from bench.sides import WORK, Side, prepare
from bench.sockets import HttpConnection

FEW, MANY = 36, 500
CONNECTIONS = 100
ARGUMENTS = {"text": "nothing"}


class TimedClient(Protocol):
    """A pipe or a line: something that answers and says how long that took."""

    def next_number(self) -> int: ...

    def ask(self, line: bytes, /) -> tuple[float, Mapping[str, Any]]: ...


Sides = tuple[Side, Side]
Sample = Callable[[], float]


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    name: str
    what: str
    unit: str
    scale: float
    limit: Limit
    listed: int
    rounds: int
    run: "Callable[[Case, Sides, int], Ratio]"

    def measure(self, sides: Sides, quick: bool) -> Ratio:
        prepare(sides[0], self.listed)
        rounds = max(3, self.rounds // 5) if quick else self.rounds
        return self.run(self, sides, rounds)


def turns(samples: tuple[Sample, Sample], rounds: int) -> Ratio:
    """One figure of each side per round, the first of the two changing places. The first round only warms up."""
    figures: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    gc.disable()
    try:
        for index in range(rounds + 1):
            order = (0, 1) if index % 2 else (1, 0)
            for side in order:
                figure = samples[side]()
                if index:
                    figures[side].append(figure)
    finally:
        gc.enable()
    return compare(*figures)


def _asking(where: TimedClient, ask: Callable[[int], bytes], times: int) -> Sample:
    def sample() -> float:
        return median(where.ask(ask(where.next_number()))[0] for _ in range(times))

    return sample


def over_pipe(ask: Callable[[int, bool], bytes], modern: bool, times: int) -> Callable[[Case, Sides, int], Ratio]:
    def run(case: Case, sides: Sides, rounds: int) -> Ratio:
        with ExitStack() as running:
            samples: list[Sample] = []
            for side in sides:
                pipe = running.enter_context(side.pipe(case.listed))
                if not modern:
                    pipe.open()
                samples.append(_asking(pipe, lambda number: ask(number, modern), times))
            return turns((samples[0], samples[1]), rounds)

    return run


def over_http(ask: Callable[[int, bool], bytes], times: int) -> Callable[[Case, Sides, int], Ratio]:
    def run(case: Case, sides: Sides, rounds: int) -> Ratio:
        with ExitStack() as running:
            samples: list[Sample] = []
            for side in sides:
                line = HttpConnection(running.enter_context(side.served(case.listed)))
                running.callback(line.close)
                samples.append(_asking(line, lambda number: ask(number, True), times))
            return turns((samples[0], samples[1]), rounds)

    return run


def under_load(case: Case, sides: Sides, rounds: int) -> Ratio:
    with ExitStack() as running:
        samples = [_storming(running.enter_context(side.served(case.listed)), 2.0) for side in sides]
        return turns((samples[0], samples[1]), rounds)


def _storming(address: tuple[str, int], seconds: float) -> Sample:
    wire = WORK / f"request-{address[1]}"
    wire.write_bytes(messages.posted(address, _call(1, True)))
    command = [sys.executable, "-m", "bench.load", "--http", f"{address[0]}:{address[1]}", "--request", str(wire)]
    command += ["--connections", str(CONNECTIONS), "--seconds", str(seconds)]

    def sample() -> float:
        told = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
        if told["refused"] or told["lost"] or not told["per_second"]:
            raise RuntimeError(f"the server did not answer every call under load: {told}")
        return float(told["per_second"])

    return sample


def started(case: Case, sides: Sides, rounds: int) -> Ratio:
    return turns((_starting(sides[0], case.listed), _starting(sides[1], case.listed)), rounds)


def _starting(side: Side, listed: int) -> Sample:
    def sample() -> float:
        with side.pipe(listed) as pipe:
            pipe.open()
            pipe.ask(_list(1, False))
            return pipe.age()

    return sample


SETTLED_SECONDS = 2.0


def held(case: Case, sides: Sides, rounds: int) -> Ratio:
    return turns((_holding(sides[0], case.listed), _holding(sides[1], case.listed)), rounds)


def _holding(side: Side, listed: int) -> Sample:
    def sample() -> float:
        with side.pipe(listed) as pipe:
            pipe.open()
            pipe.ask(_list(1, False))
            # Ours loads the engine of its state only now, with the list out of the way.
            time.sleep(SETTLED_SECONDS)
            return memory(pipe.process.pid)

    return sample


def _list(number: int, modern: bool) -> bytes:
    return messages.request(number, "tools/list", modern=modern)


def _call(number: int, modern: bool) -> bytes:
    return messages.call(number, catalogue.NOTHING, ARGUMENTS, modern=modern)


def _lists() -> Iterable[Case]:
    stdio, http = Limit(0.7), Limit(0.8)
    for listed, rounds, times in ((FEW, 60, 5), (MANY, 40, 2)):
        for door, where, limit, run in (
            ("legacy", "stdio, 2025-11-25", stdio, over_pipe(_list, False, times)),
            ("modern", "stdio, 2026-07-28", stdio, over_pipe(_list, True, times)),
            ("http", "HTTP, 2026-07-28", http, over_http(_list, times)),
        ):
            what = f"`tools/list`, {listed} tools, {where}"
            yield Case(f"list-{listed}-{door}", what, "ms", 1e3, limit, listed, rounds, run)


IDLE_CALL = over_pipe(_call, False, 10)
CASES: tuple[Case, ...] = (
    *_lists(),
    Case("call", "a call that does nothing, one stdio client", "ms", 1e3, Limit(1.6), FEW, 80, IDLE_CALL),
    Case("load", "calls a second over HTTP, 100 connections", "/s", 1, Limit(0.8, at_least=True), FEW, 8, under_load),
    Case("start", "from spawn to the first `tools/list`, stdio", "s", 1, Limit(1.35), FEW, 14, started),
    Case("crowd", crowd.WHAT, "ms", 1e3, Limit(2), FEW, 10, lambda _case, _sides, rounds: crowd.late(rounds)),
    Case("memory", "memory held after `tools/list`, stdio", "MB", 1e-6, Limit(1.35), FEW, 5, held),
)
