"""Which values of `CFLAGS` and the like only say how to compile?"""

import pytest

from tools.shell.compiler_flags import holds_plain_flags


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("CFLAGS", "-O2 -Wall -Iinclude -DX=1", True),
        ("CXXFLAGS", "-std=c++20 -fsanitize=address,undefined", True),
        ("LDFLAGS", "-Llib -lm", True),
        ("CFLAGS", "", True),
        ("CFLAGS", "-fplugin=x.so", False),
        ("CFLAGS", "-mllvm -load=x.so", False),
        ("CFLAGS", "-wrapper x", False),
        ("CFLAGS", "-O2; x", False),
        ("CFLAGS", "$(x)", False),
        ("LDFLAGS", "-Wl,-plugin,x", False),
        ("MAKEFLAGS", "-k", False),
        ("RUSTFLAGS", "-O2", False),
    ],
)
def test_flags_are_a_closed_list(name: str, value: str, plain: bool) -> None:
    assert holds_plain_flags(name, value) is plain
