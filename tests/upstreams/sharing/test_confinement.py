"""Is a process that may do less than another told apart from it, and is its like not?"""

import shutil
import subprocess
import sys

import pytest

from mcp_server.upstreams.sharing.confinement import describe_confinement

SHOW = "from mcp_server.upstreams.sharing.confinement import describe_confinement as d; print(d())"
LESS = "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)"
"""PR_SET_NO_NEW_PRIVS, as every sandbox sets it."""


def describe(*words: str, first: str = "pass") -> str:
    command = [*words, sys.executable, "-c", f"{first}; {SHOW}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_like_of_a_process_looks_the_same() -> None:
    assert describe() == describe() == str(describe_confinement())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has it")
@pytest.mark.parametrize("first", [LESS, "import os; os.umask(0o7)"])
def test_a_process_that_may_do_less_does_not(first: str) -> None:
    assert describe(first=first) != describe()


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs a sandbox to look out of")
def test_a_process_in_a_sandbox_does_not() -> None:
    assert describe("bwrap", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc") != describe()
