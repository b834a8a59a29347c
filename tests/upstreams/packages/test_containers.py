"""Is a container gone when its server was stopped, although killing the program that started it does not end it?"""

import sys
from pathlib import Path

import pytest

from mcp_server.model.upstreams import Mount, StdioTarget
from tests.upstreams.ground import SERVERS, caller, grounded

DOCKER = f"""#!/bin/sh
# Like the client of a daemon: what it runs stays, until somebody removes it.
folder=$(dirname "$0")
echo "$@" >> "$folder/asked"
case $1 in
run) echo "$@" > "$folder/container"; exec {sys.executable} {SERVERS / "described.py"} "$folder/offered.json" ;;
ps) for last; do :; done
    grep -q -- "--label ${{last#label=}}" "$folder/container" 2>/dev/null && echo abc123; exit 0 ;;
rm) [ "$3" = abc123 ] && rm "$folder/container" ;;
esac
"""


@pytest.mark.anyio
async def test_a_container_is_removed_with_its_server(tmp_path: Path) -> None:
    program = tmp_path / "docker"
    program.write_text(DOCKER)
    program.chmod(0o755)
    (tmp_path / "offered.json").write_text('{"tools": [{"name": "one", "inputSchema": {"type": "object"}}]}')
    mount = Mount("box", "box", StdioTarget((str(program), "run", "image")))
    async with grounded(tmp_path, mount) as ground:
        assert len((await ground.servers.get_catalogue("box", caller())).tools) == 1
        started = (tmp_path / "container").read_text()
        assert started.startswith("run --rm -i --init --label menugate.start=") and started.endswith("image\n")
    assert not (tmp_path / "container").exists()
    assert [line.split()[0] for line in (tmp_path / "asked").read_text().splitlines()] == ["run", "ps", "rm"]
