"""Does a container get what it needs, and does nothing else change?"""

import shlex

import pytest

from mcp_server.policy.upstream_containers import add_options, is_container

LINES = {
    "docker run x": "docker run --rm -i --init --label menugate.start=s x",
    "/usr/bin/docker run -e A --rm=false x y": (
        "/usr/bin/docker run --rm -i --init --label menugate.start=s -e A --rm=false x y"
    ),
    "podman run -i x": "podman run --rm -i --label menugate.start=s -i x",
    "docker ps": "docker ps",
    "docker": "docker",
    "npx run": "npx run",
    "node docker run": "node docker run",
}


@pytest.mark.parametrize("line", LINES)
def test_what_is_started(line: str) -> None:
    argv = shlex.split(line)
    assert add_options(argv, "s") == tuple(shlex.split(LINES[line]))
    assert is_container(argv) is (LINES[line] != line)
