"""How long does a server take to answer over stdio? A raw pipe, so that hardly any of the time is the client's."""

import json
import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from bench import messages
from bench.processes import build_environment, stop

PATIENCE = 30.0


class ServerFault(Exception):
    """The server exited, stopped answering, or answered with an error."""


class ServerPipe:
    """One server process and the client's ends of its streams."""

    def __init__(self, argv: Sequence[str], log: Path) -> None:
        self.log = log
        self._born = perf_counter()
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                env=build_environment(log.parent),
            )
        if self.process.stdin is None or self.process.stdout is None:
            raise ServerFault("the server has no standard streams")
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._rest = b""
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop(self.process)

    def open(self) -> None:
        """The legacy handshake."""
        opening, opened = messages.build_handshake()
        self.ask(opening)
        self._write(opened)

    def age(self) -> float:
        """Seconds since the server was spawned."""
        return perf_counter() - self._born

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def ask(self, line: bytes) -> tuple[float, Mapping[str, Any]]:
        """Return the seconds until the whole reply arrived, and the reply. It is parsed after the clock stops."""
        started = perf_counter()
        self._write(line)
        return self._reply(started)

    def ask_all(self, lines: Sequence[bytes]) -> list[Mapping[str, Any]]:
        """Send all at once; yield the replies as they arrive."""
        for line in lines:
            self._write(line)
        return [self._reply(0.0)[1] for _ in lines]

    def _reply(self, started: float) -> tuple[float, Mapping[str, Any]]:
        while True:
            reply = self._line()
            took = perf_counter() - started
            message = json.loads(reply)
            if "id" not in message:
                continue
            if trouble := messages.find_fault(message):
                raise ServerFault(f"the server answered with an error: {trouble}")
            return took, message

    def _write(self, line: bytes) -> None:
        data = memoryview(line + b"\n")
        try:
            while data:
                data = data[os.write(self._in, data) :]
        except OSError as error:
            raise ServerFault(f"the server exited; its log is {self.log}") from error

    def _line(self) -> bytes:
        pieces = [self._rest]
        while b"\n" not in pieces[-1]:
            if not select.select([self._out], [], [], PATIENCE)[0]:
                raise ServerFault(f"no answer within {PATIENCE:.0f} s; the server's log is {self.log}")
            piece = os.read(self._out, 1 << 20)
            if not piece:
                raise ServerFault(f"the server exited; its log is {self.log}")
            pieces.append(piece)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line
