"""Does each sandbox hold as well for a user who is nobody in particular as for root?"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.nobody import NOBODY, python
from tests.sizes import FULL

HERE = Path(__file__).parents[3]
GUARDS = HERE / "tests" / "guards"
WHOLE = ("processes/test_sandbox.py", "processes/test_child.py", "network/test_proxy_lane.py")
FEW = (
    "processes/test_sandbox.py::test_nothing_is_written_outside",
    "processes/test_sandbox.py::test_no_network_no_socket_and_no_other_program_is_reached",
    "processes/test_sandbox.py::test_secrets_our_state_and_the_home_are_out_of_sight",
)
"""What would be worst for somebody who is not root; all of it is run at full size."""


@pytest.mark.heavy
@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests here run as somebody already")
def test_the_walls_stand_for_nobody() -> None:
    program = python()
    if program is None:
        pytest.skip("there is no Python here that nobody may start")
    room = Path("/var/tmp") / f"menugate-{os.getpid()}"
    room.mkdir(mode=0o700)
    os.chown(room, NOBODY, NOBODY)
    words = [program, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rs", f"--basetemp={room}/t"]
    files = [str(GUARDS / name) for name in (WHOLE if FULL else FEW)]
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(room),
        "PYTHONPATH": os.pathsep.join(one for one in sys.path if one),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MENUGATE_TEST_PATH": os.environ.get("MENUGATE_TEST_PATH", ""),
    }
    try:
        said = subprocess.run(
            [*words, *files],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd=HERE,
            env=env,
            capture_output=True,
            text=True,
            timeout=600,
        )
    finally:
        shutil.rmtree(room, ignore_errors=True)
    assert said.returncode == 0, said.stdout[-4000:] + said.stderr[-1000:]
    assert "[100%]" in said.stdout
