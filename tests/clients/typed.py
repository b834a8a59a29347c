"""The person's commands, typed in this process: the same code as at a terminal, without the second a process costs."""

import contextlib
import io
import os
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from mcp_server.cli.main import main
from tests.clients.served import environment


@dataclass
class Typed:
    code: int
    out: str
    err: str


Answer = str | Callable[[io.StringIO], str] | None
"""What the person types at a terminal, perhaps only after a look at what is on it; None if there is no terminal."""


PROMPTS = ("[y/N] ", ": ")
"""How the text ends after which a command waits for you."""


def typed(workspace: Path, home: Path, *words: str, answer: Answer = None, ahead: str = "") -> Typed:
    """What a command says and how it ends; in a thread of its own, because a test may have a loop running.
    `ahead`: what was typed before it began."""
    found: list[Typed] = []

    def run() -> None:
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, environment(home), clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            at_terminal(answer, out, ahead),
        ):
            try:
                code = main([*words, "--workspace", str(workspace)])
            except SystemExit as ended:
                code = int(ended.code or 0)
        found.append(Typed(code, out.getvalue(), err.getvalue()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


@contextlib.contextmanager
def at_terminal(answer: Answer, out: io.StringIO, ahead: str) -> Generator[None]:
    """Standard input is a terminal where this is typed, or none at all."""
    if answer is None:
        with patch.object(sys, "stdin", io.StringIO()):
            yield
        return
    keyboard, screen = os.openpty()
    os.write(keyboard, ahead.encode())
    ended = threading.Event()

    def type_answer() -> None:
        # What is typed before the prompt stands there is no answer to it.
        while not out.getvalue().endswith(PROMPTS) and not ended.wait(0.01):
            pass
        os.write(keyboard, (answer(out) if callable(answer) else answer).encode() + b"\n")

    person = threading.Thread(target=type_answer)
    person.start()
    try:
        with open(screen, encoding="utf-8", closefd=False) as stdin, patch.object(sys, "stdin", stdin):
            yield
    finally:
        ended.set()
        person.join()
        os.close(keyboard)
        os.close(screen)
