"""What do the checks say of a copy of this tree, in each of several states? Run as a program, in the copy.

Whatever is slow to import is imported once; each state is then looked at in a fork of its own, for half a second. On
stdin comes a list of states, each with the text of the files in which it differs from the copy; on stdout goes what
the checks said of each. What is generated comes out of the first state, and the others have it as it is there.
"""

import json
import os
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

SLOW = ("anyio.to_thread", "hypothesis", "jsonschema_rs", "mcp.server", "pydantic", "pytest", "regex", "yaml")
GENERATED = "make check"
QUIET = (
    "-p",
    "no:cacheprovider",
    "-o",
    "verbosity_assertions=2",
    "--tb=short",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)


@dataclass(frozen=True)
class State:
    files: Mapping[str, str]
    checks: Sequence[str]
    """What pytest is given, and `make check` for whether everything generated is up to date."""
    generated: bool = True


@dataclass(frozen=True)
class ScratchResult:
    good: bool
    said: str


@contextmanager
def changed(files: Mapping[str, str]) -> Generator[None]:
    before = {name: Path(name).read_text() if Path(name).exists() else None for name in files}
    try:
        for name, text in files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
        yield
    finally:
        for name, text in before.items():
            Path(name).unlink() if text is None else Path(name).write_text(text)


def forked(work: Any, *given: Any) -> ScratchResult:
    """Run it in a process that ends with it, and has imported nothing of the copy before."""
    with tempfile.TemporaryFile() as heard:
        child = os.fork()
        if child == 0:
            os.dup2(heard.fileno(), 1)
            os.dup2(heard.fileno(), 2)
            code = 1
            try:
                code = work(*given)
            except BaseException as fault:
                print(f"{type(fault).__name__}: {fault}")
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        heard.seek(0)
        return ScratchResult(os.waitstatus_to_exitcode(status) == 0, heard.read().decode(errors="replace"))


def generate() -> int:
    """What `make generate` would write, by file."""
    found = import_module("bench.generated").list_files()
    print(json.dumps({name: text for name, text in found if not Path(name).exists() or Path(name).read_text() != text}))
    return 0


def is_stale() -> bool:
    sys.argv = ["generated", "--check"]
    return bool(import_module("bench.generated").main())


def check(checks: Sequence[str]) -> int:
    stale = GENERATED in checks and is_stale()
    tests = [name for name in checks if name != GENERATED]
    return int(bool(stale or (tests and import_module("pytest").main([*QUIET, *tests]))))


def judge(states: Sequence[State]) -> Iterator[ScratchResult]:
    made: dict[str, str] = {}
    for number, state in enumerate(states):
        if number == 0:
            with changed(state.files):
                found = forked(generate)
            if not found.good:
                yield found
                return
            made = json.loads(found.said)
        with changed({**state.files, **(made if state.generated else {})}):
            found = forked(check, state.checks)
        yield found
        if number == 0 and not found.good:
            return


def main() -> int:
    sys.path.insert(0, os.getcwd())
    states = [State(**one) for one in json.load(sys.stdin)]
    for name in SLOW:
        import_module(name)
    json.dump([asdict(verdict) for verdict in judge(states)], sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
