"""What is measured, how often, and within which limit? Every case runs both sides in turn, round by round."""

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
from bench.processes import measure_memory
from bench.ratios import Limit, Ratio, compare
from bench.sides import WORK, Side, prepare
from bench.sockets import HttpConnection

FEW, MANY = 36, 500
CONNECTIONS = 100
ARGUMENTS = {"text": "nothing"}


class TimedClient(Protocol):
    """A client over a pipe or a socket that measures how long each answer takes."""

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


def measure_in_turns(samples: tuple[Sample, Sample], rounds: int) -> Ratio:
    """Measure one figure of each side per round; the sides alternate in going first. The first round is a warm-up."""
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


def _sample_request(where: TimedClient, ask: Callable[[int], bytes], times: int) -> Sample:
    def sample() -> float:
        return median(where.ask(ask(where.next_number()))[0] for _ in range(times))

    return sample


def measure_over_pipe(
    ask: Callable[[int, bool], bytes], modern: bool, times: int
) -> Callable[[Case, Sides, int], Ratio]:
    def run(case: Case, sides: Sides, rounds: int) -> Ratio:
        with ExitStack() as running:
            samples: list[Sample] = []
            for side in sides:
                pipe = running.enter_context(side.pipe(case.listed))
                if not modern:
                    pipe.open()
                samples.append(_sample_request(pipe, lambda number: ask(number, modern), times))
            return measure_in_turns((samples[0], samples[1]), rounds)

    return run


def measure_over_http(ask: Callable[[int, bool], bytes], times: int) -> Callable[[Case, Sides, int], Ratio]:
    def run(case: Case, sides: Sides, rounds: int) -> Ratio:
        with ExitStack() as running:
            samples: list[Sample] = []
            for side in sides:
                line = HttpConnection(running.enter_context(side.served(case.listed)))
                running.callback(line.close)
                samples.append(_sample_request(line, lambda number: ask(number, True), times))
            return measure_in_turns((samples[0], samples[1]), rounds)

    return run


def measure_under_load(case: Case, sides: Sides, rounds: int) -> Ratio:
    with ExitStack() as running:
        samples = [_sample_load(running.enter_context(side.served(case.listed)), 2.0) for side in sides]
        return measure_in_turns((samples[0], samples[1]), rounds)


def _sample_load(address: tuple[str, int], seconds: float) -> Sample:
    wire = WORK / f"request-{address[1]}"
    wire.write_bytes(messages.build_post(address, _build_call(1, True)))
    command = [sys.executable, "-m", "bench.load", "--http", f"{address[0]}:{address[1]}", "--request", str(wire)]
    command += ["--connections", str(CONNECTIONS), "--seconds", str(seconds)]

    def sample() -> float:
        figures = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
        if figures["refused"] or figures["lost"] or not figures["per_second"]:
            raise RuntimeError(f"the server did not answer every call under load: {figures}")
        return float(figures["per_second"])

    return sample


def measure_start(case: Case, sides: Sides, rounds: int) -> Ratio:
    return measure_in_turns((_sample_start(sides[0], case.listed), _sample_start(sides[1], case.listed)), rounds)


def _sample_start(side: Side, listed: int) -> Sample:
    def sample() -> float:
        with side.pipe(listed) as pipe:
            pipe.open()
            pipe.ask(_build_list(1, False))
            return pipe.age()

    return sample


SETTLED_SECONDS = 2.0


def measure_memory_held(case: Case, sides: Sides, rounds: int) -> Ratio:
    return measure_in_turns((_sample_memory(sides[0], case.listed), _sample_memory(sides[1], case.listed)), rounds)


def _sample_memory(side: Side, listed: int) -> Sample:
    def sample() -> float:
        with side.pipe(listed) as pipe:
            pipe.open()
            pipe.ask(_build_list(1, False))
            # Our server loads its state engine only after the first list.
            time.sleep(SETTLED_SECONDS)
            return measure_memory(pipe.process.pid)

    return sample


def _build_list(number: int, modern: bool) -> bytes:
    return messages.build_request(number, "tools/list", modern=modern)


def _build_call(number: int, modern: bool) -> bytes:
    return messages.build_call(number, catalogue.NOTHING, ARGUMENTS, modern=modern)


def _build_list_cases() -> Iterable[Case]:
    stdio, http = Limit(0.7), Limit(0.8)
    for listed, rounds, times in ((FEW, 60, 5), (MANY, 40, 2)):
        for era, where, limit, run in (
            ("legacy", "stdio, 2025-11-25", stdio, measure_over_pipe(_build_list, False, times)),
            ("modern", "stdio, 2026-07-28", stdio, measure_over_pipe(_build_list, True, times)),
            ("http", "HTTP, 2026-07-28", http, measure_over_http(_build_list, times)),
        ):
            what = f"`tools/list`, {listed} tools, {where}"
            yield Case(f"list-{listed}-{era}", what, "ms", 1e3, limit, listed, rounds, run)


IDLE_CALL = measure_over_pipe(_build_call, False, 10)
CASES: tuple[Case, ...] = (
    *_build_list_cases(),
    Case("call", "a call that does nothing, one stdio client", "ms", 1e3, Limit(1.6), FEW, 80, IDLE_CALL),
    Case(
        "load",
        "calls a second over HTTP, 100 connections",
        "/s",
        1,
        Limit(0.8, at_least=True),
        FEW,
        8,
        measure_under_load,
    ),
    Case("start", "from spawn to the first `tools/list`, stdio", "s", 1, Limit(1.35), FEW, 14, measure_start),
    Case(
        "crowd",
        crowd.WHAT,
        "ms",
        1e3,
        Limit(2),
        FEW,
        10,
        lambda _case, _sides, rounds: crowd.measure_reads_in_company(rounds),
    ),
    Case("memory", "memory held after `tools/list`, stdio", "MB", 1e-6, Limit(1.35), FEW, 5, measure_memory_held),
)
