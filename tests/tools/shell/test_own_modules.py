"""Which names of Python modules belong to the workspace?"""

import pytest

from tools.shell.own_modules import is_own_module
from tools.shell.surroundings import Surroundings

HELD = {
    "a.py": "file",
    "b/__main__.py": "program",
    "src/c.py": "file",
    "json.py": "file",
    "pip.py": "file",
    "d": "directory",
}
AROUND = Surroundings(lambda _: True, lambda path: HELD.get(path, ""))


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("a", True),
        ("b", True),
        ("c", True),
        ("d", False),
        ("json", False),
        ("pip", False),
        ("b/../a", False),
        ("", False),
    ],
)
def test_what_python_or_a_package_brings_is_judged_by_name(name: str, own: bool) -> None:
    assert is_own_module(name, ".", AROUND) is own
