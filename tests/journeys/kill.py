"""Does everything a client was told survive `kill -9`? `python -m tests.journeys.kill --kills 500 --seed 1`

Two real servers work on one workspace over stdio, with several calls in flight each; after a pseudo-random number of
answers one of them is killed, and one that was started meanwhile takes its place. Whatever was answered has to be in
the ledger and on the disk, the chain has to hold, and every session has to stand where its last transition put it.
"""

import argparse
import json
import os
import random
import selectors
import statistics
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mcp_server.calls.ledger import measure_arguments
from mcp_server.state.engine.rows import Row
from mcp_server.state.reader import Reader
from tests.clients import warm
from tests.clients.served import command, environment

IN_FLIGHT = 6
MOST_ANSWERS = 120
PATIENCE = 60.0
LINES = 400
EVERY = 25
"""Rounds between two looks at the whole chain and at all sessions; the rows of the killed are looked at every time."""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}


@dataclass(frozen=True)
class Deed:
    tool: str
    arguments: dict[str, Any]

    @property
    def moves(self) -> bool:
        return self.tool in ("menu_enter", "menu_exit")


@dataclass
class KillSite:
    work: Path
    home: Path

    def prepare(self) -> None:
        for made in (self.work, self.home):
            made.mkdir()
        (self.work / "lines.txt").write_text("".join(f"line {number}\n" for number in range(1, LINES + 1)))

    def reader(self) -> Reader:
        secrets = self.home / ".local" / "state" / "menugate"
        return Reader.open(f"sqlite:///{self.work / '.menugate' / 'state.db'}", secrets=secrets)


class LoadedServer:
    """One server under load, seen from its client."""

    def __init__(self, place: KillSite, number: int) -> None:
        started = command("serve", "--workspace", str(place.work), "--listing", "flat")
        self.born = time.monotonic()
        self.process = warm.start(
            started,
            environment(place.home),
            cwd=place.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.number = number
        self.ready: float | None = None
        self.handle = ""
        self.answered: list[Deed] = []
        self.failed: list[str] = []
        self._deeds = deeds(number)
        self._moves = moves()
        self._waiting: dict[int, Deed] = {}
        self._heard = b""
        self._next = 0
        self._send("initialize", HELLO)

    def work(self) -> None:
        """Keep several calls in flight, at most one of them a move: which of two came last nobody could say."""
        while len(self._waiting) < IN_FLIGHT:
            moving = any(deed.moves for deed in self._waiting.values())
            deed = next(self._deeds) if moving or self._next % 4 else self._move()
            self._waiting[self._next + 1] = deed
            self._send("tools/call", {"name": deed.tool, "arguments": deed.arguments})

    def _move(self) -> Deed:
        """By its handle, once it has one: without it a session gets further places."""
        move = next(self._moves)
        return replace(move, arguments={**move.arguments, "menu": self.handle}) if self.handle else move

    def listen(self) -> int:
        """Take in what has come; how many calls it answered."""
        assert self.process.stdout is not None
        with suppress(BlockingIOError):
            while chunk := os.read(self.process.stdout.fileno(), 1 << 16):
                self._heard += chunk
        # A line without its end was not said.
        *lines, self._heard = self._heard.split(b"\n")
        before = len(self.answered)
        for line in lines:
            self._take(json.loads(line))
        return len(self.answered) - before

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.listen()
        self.close()

    def leave(self) -> int:
        """Go the way a client goes."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        self.listen()
        self.close()
        return code

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()

    def _take(self, message: dict[str, Any]) -> None:
        if self.ready is None:
            assert "result" in message, message
            self.ready = time.monotonic() - self.born
            self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        elif "id" in message:
            deed = self._waiting.pop(message["id"])
            result = message.get("result")
            if result is None or result["isError"]:
                self.failed.append(f"{deed.tool}: {message}")
            else:
                self.answered.append(deed)
                if deed.tool == "menu_enter":
                    self.handle = result["structuredContent"]["menu"]

    def _send(self, method: str, params: dict[str, Any]) -> None:
        self._next += 1
        self._write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


def deeds(number: int) -> Iterator[Deed]:
    """Calls that are told apart by their arguments."""
    count = 0
    while True:
        count += 1
        yield Deed("think", {"content": f"{number}/{count}"})
        yield Deed("Read", {"file_path": "lines.txt", "offset": 1 + count % LINES, "limit": 1 + number})
        yield Deed("fs_write_file", {"path": f"written/{number}/{count}.txt", "content": f"{number}/{count}\n"})


def moves() -> Iterator[Deed]:
    """Each takes the session somewhere else, so that each answer is one transition."""
    while True:
        yield Deed("menu_enter", {"mode": "swe"})
        yield Deed("menu_enter", {"mode": "data"})
        yield Deed("menu_exit", {})


@dataclass
class Ledger:
    """What the rows say, read as they come."""

    place: KillSite
    head: int = 0
    intents: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    stands: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    moved: Counter[str] = field(default_factory=Counter[str])
    process_of: dict[str, str] = field(default_factory=dict[str, str])
    kinds: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def follow(self) -> None:
        with self.place.reader() as state:
            for row in state.read_rows(after=self.head):
                self.head = row.seq
                self._take(row)

    def _take(self, row: Row) -> None:
        self.kinds[row.kind] += 1
        process = str(row.fields["process"]).partition("-")[0]
        if row.kind == "intent":
            self.intents[process, row.fields["arguments_sha256"]] += 1
        elif row.kind == "transition" and "session" in row.fields:
            session = row.fields["session"]
            self.process_of[session] = process
            self.stands[session] = row.fields["to"]
            self.moved[process] += 1

    def check(self, server: LoadedServer, work: Path) -> None:
        """Of one that is dead: everything it answered is here."""
        process = str(server.process.pid)
        told = Counter((process, measure_arguments(deed.arguments)[0]) for deed in server.answered)
        assert told <= self.intents, f"answered and not on record: {told - self.intents}"
        moves = sum(deed.moves for deed in server.answered)
        assert moves <= self.moved[process] <= moves + 1, (moves, self.moved[process])
        for deed in server.answered:
            if deed.tool == "fs_write_file":
                assert (work / deed.arguments["path"]).read_text() == deed.arguments["content"]

    def check_all(self, living: set[str]) -> None:
        """The chain, beside servers that go on writing; and where the sessions stand that nobody moves any more."""
        with self.place.reader() as state:
            report = state.verify()
            assert report.ok, report.faults
            for kept in state.load_sessions():
                place = kept.session
                if self.process_of.get(place.id) in living or place.id not in self.stands:
                    continue
                stands = self.stands[place.id]
                assert {name: getattr(place, name) for name in stands} == stands, (place, stands)
                assert {"mode", "stage", "run", "pinned"} <= stands.keys()


class Journey:
    def __init__(self, place: KillSite, seed: int) -> None:
        self.place = place
        self.chance = random.Random(seed)
        self.ledger = Ledger(place)
        self.answers = 0
        self.starts: list[float] = []
        self._born = 0
        self.working = [self._start(), self._start()]
        self.spare = self._start()

    def _start(self) -> LoadedServer:
        self._born += 1
        (self.place.work / "written" / str(self._born)).mkdir(parents=True)
        return LoadedServer(self.place, self._born)

    def round(self) -> None:
        """Work until enough was answered, kill one, and look at what it left behind."""
        wanted = self.answers + self.chance.randrange(1, MOST_ANSWERS)
        victim = self.working[self.chance.randrange(2)]
        begun = time.monotonic()
        while self.answers < wanted:
            self.pump()
            assert time.monotonic() - begun < PATIENCE, "nobody answers"
        known = len(victim.answered)
        victim.kill()
        self.answers += len(victim.answered) - known
        self.working.remove(victim)
        self.working.append(self.spare)
        self.spare = self._start()
        self.ledger.follow()
        self.ledger.check(victim, self.place.work)
        assert not victim.failed, victim.failed

    def pump(self) -> None:
        with selectors.DefaultSelector() as waiting:
            for server in (*self.working, self.spare):
                waiting.register(server.process.stdout, selectors.EVENT_READ, server)  # pyright: ignore[reportArgumentType]  # a pipe of ours
            for key, _ in waiting.select(1.0):
                server: LoadedServer = key.data
                before = server.ready
                self.answers += server.listen()
                assert server.process.poll() is None, "a server ended by itself"
                if before is None and server.ready is not None:
                    self.starts.append(server.ready)
        for server in self.working:
            if server.ready is not None:
                server.work()

    def look(self) -> None:
        self.ledger.follow()
        self.ledger.check_all({str(server.process.pid) for server in (*self.working, self.spare)})

    def end(self) -> None:
        """The last ones leave in peace, and say so."""
        # One that has just taken a killed one's place has nothing to say before its first answer.
        while self.spare.ready is None or not all(server.answered for server in self.working):
            self.pump()
        for server in (*self.working, self.spare):
            assert server.leave() == 0
        self.ledger.follow()
        for server in self.working:
            self.ledger.check(server, self.place.work)
        self.ledger.check_all(set())

    def stop(self) -> None:
        for server in (*self.working, self.spare):
            server.process.kill()
            server.process.wait()
            server.close()


def journey(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    place = KillSite(folder / "work", folder / "home")
    place.prepare()
    begun = time.monotonic()
    one = Journey(place, seed)
    try:
        for number in range(1, kills + 1):
            one.round()
            if number % EVERY == 0:
                one.look()
        one.end()
    finally:
        one.stop()
    return {
        "kills": kills,
        "answered": one.answers,
        "rows": one.ledger.head,
        **one.ledger.kinds,
        "start_ms": round(statistics.median(one.starts) * 1000),
        "slowest_start_ms": round(max(one.starts) * 1000),
        "seconds": round(time.monotonic() - begun, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(journey(Path(folder), asked.kills, asked.seed)))
