"""Does a line that runs unasked do no more than it was taken for? By real bash, which runs thousands of random lines.

All programs are stubs that record their name, except those that start others, which are real. What stubs print, and
what variables, files and their names contain, tries to become a command, an option or code.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from random import Random

import pytest

from tests.sizes import scale
from tests.tools.shell.line_grammar import BUILDERS, CANARIES, HOSTILE_TEXT, READERS, LineGrammar
from tools.shell.classify import classify_line
from tools.shell.judged_programs import SHELLS
from tools.shell.known_commands import BUILDS, READS
from tools.shell.starters import STARTERS
from tools.shell.verdicts import CommandKind

LINES = 5_000
"""How many lines run. About five times as many are asked about."""
COUNTING = ("wc", "seq", "nproc", "id", "date")
"""What they print is a number, and counts as one."""
REAL = (*COUNTING, "timeout", "nice", "env", "xargs", "find", "stdbuf", "awk", "sed", "bash", "sh")
NAMES = ("a.txt", "src/a", "canary", "-exec", "-delete", "$(canary)", "a[$(canary)]", "-i", ".env", "-o fired")
PRINTED = "\n".join(HOSTILE_TEXT)
STUB = f"""#!/bin/sh
echo "${{0##*/}}" >> "$RECORD"
echo '{PRINTED}'
"""
TEMPORARY = """#!/bin/sh
echo "$TEMPORARY/tmp.own"
"""
RM = """#!/bin/sh
for one; do case $one in -*|"$TEMPORARY"/tmp.own|"$TEMPORARY"/tmp.own/*) ;; *) echo rm >> "$RECORD";; esac; done
"""
"""Deleting what the line itself has made is no loss."""
MAY_RUN = {"mktemp", "yes"} | READS.keys() | BUILDS.keys() | STARTERS.keys() | SHELLS


class Scratch:
    """A folder with hostile names in it, and programs that record that they ran."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.work, self.record = folder / "programs", folder / "outer" / "work", folder / "record"
        self.programs.mkdir()
        for name in {*READERS, *BUILDERS, *CANARIES, *READS, *BUILDS} - {*REAL}:
            if "/" not in name and name not in (".", "..", "[", "[["):
                (self.programs / name).write_text(STUB)
                (self.programs / name).chmod(0o755)
        for name, text in (("mktemp", TEMPORARY), ("rm", RM)):
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)
        (folder / "temporary").mkdir()
        for name in REAL:
            (self.programs / name).symlink_to(shutil.which(name) or "/nowhere")
        self.outer = self.work.parent
        self.env = {
            "PATH": str(self.programs),
            "RECORD": str(self.record),
            "TEMPORARY": str(folder / "temporary"),
            "x": "a[$(canary)]",
            "HOME": str(self.outer),
        }
        self.fill()

    def fill(self) -> None:
        shutil.rmtree(self.outer, ignore_errors=True)
        for name in NAMES:
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).write_text(f"{PRINTED}\n")

    def look(self) -> dict[str, bytes]:
        return {str(one): one.read_bytes() if one.is_file() else b"" for one in sorted(self.outer.rglob("*"))}

    def run(self, line: str) -> set[str]:
        """Run it and return the programs that ran."""
        self.record.write_text("")
        with subprocess.Popen(
            ["/bin/bash", "--noprofile", "--norc", "-c", f"{line}\nwait", "bash", *HOSTILE_TEXT],
            cwd=self.work,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as child:
            try:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(20)
            finally:
                # What waits for ever is stopped: what it has started is on record.
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
        return set(self.record.read_text().split())


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return Scratch(tmp_path_factory.mktemp("lines"))


def find_unasked_lines() -> Iterator[tuple[str, CommandKind]]:
    for seed in count():
        line = LineGrammar(Random(f"line {seed}")).line()  # a test that repeats itself
        if (kind := classify_line(line).kind) is not CommandKind.ASKED:
            yield line, kind


@pytest.mark.heavy
def test_an_unasked_line_runs_only_known_programs_and_writes_only_where_it_may(scratch: Scratch) -> None:
    before = scratch.look()
    kinds = dict.fromkeys(CommandKind, 0)
    for line, kind in islice(find_unasked_lines(), scale(LINES)):
        kinds[kind] += 1
        ran = scratch.run(line)
        assert ran <= MAY_RUN, f"{ran - MAY_RUN} ran: {line!r}"
        after = scratch.look()
        if after != before:
            changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
            assert kind is CommandKind.BUILDS, f"{changed} changed: {line!r}"
            inside = [name for name in changed if name.startswith(f"{scratch.work}/")]
            assert len(inside) == len(changed), f"{changed} changed: {line!r}"
            assert not any(name.endswith((".mcp.json", ".env")) for name in changed), line
            scratch.fill()
    assert min(kinds[CommandKind.READS], kinds[CommandKind.BUILDS]) > scale(LINES) // 20, f"one-sided: {kinds}"
