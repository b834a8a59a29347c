"""Does `version` name the same menugate to a person and to a program?"""

import json
import platform
import sys

import mcp_server
from tests.cli.conftest import Type


def test_a_person_and_a_program_read_the_same(menugate: Type) -> None:
    facts = json.loads(menugate("version --json").out)
    assert facts["version"] == mcp_server.__version__
    assert facts["python"] == platform.python_version()
    assert facts["interpreter"] == sys.executable
    shown = menugate("version").out
    assert shown.startswith(f"menugate {facts['version']}\n")
    for fact in ("python", "interpreter", "platform", "installed"):
        assert facts[fact] in shown
