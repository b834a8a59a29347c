"""How much may a child use, and is it never more than we may ourselves?"""

import os
import resource
import subprocess
import sys

from mcp_server.guards.sandbox.limits import apply_resource_limits, build_resource_limits
from mcp_server.model.processes import ProcessLimits

LIMITS = ProcessLimits()


def test_every_limit_is_one_of_the_kernels_and_none_is_endless() -> None:
    found = build_resource_limits(LIMITS, 10)
    assert found[resource.RLIMIT_CORE] == 0
    assert found[resource.RLIMIT_FSIZE] == LIMITS.file
    assert found[resource.RLIMIT_NPROC] == LIMITS.processes
    assert all(most >= 0 for most in found.values())


def test_the_processor_is_limited_by_the_time_a_call_may_take() -> None:
    short, long = (build_resource_limits(LIMITS, seconds)[resource.RLIMIT_CPU] for seconds in (1, 100))
    assert short < long
    assert short >= (os.cpu_count() or 1)


def test_they_hold_for_a_process_that_waits() -> None:
    program = "import resource, sys; sys.stdin.read(); print(resource.getrlimit(resource.RLIMIT_FSIZE)[0])"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    apply_resource_limits(child.pid, {resource.RLIMIT_FSIZE: 12_345})
    assert child.communicate()[0].strip() == b"12345"


def test_no_limit_goes_beyond_our_own() -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        resource.prlimit(child.pid, resource.RLIMIT_NOFILE, (50, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        apply_resource_limits(child.pid, {resource.RLIMIT_NOFILE: hard + 1})
        assert resource.prlimit(child.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        child.communicate()
