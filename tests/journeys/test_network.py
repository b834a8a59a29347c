"""Does a command get out of its sandbox to the places the operator listed, through the whole gate, and to no other?"""

from pathlib import Path

import pytest

from tests.clients.pipe import pipe
from tests.guards.network.site import site

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


LINE = "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET http://127.0.0.1:{port}/ HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3"


@pytest.mark.heavy
async def test_what_is_listed_is_reached_at_trusted(workspace: Path, home: Path) -> None:
    from anyio import to_thread

    async with site() as one:
        said = await to_thread.run_sync(asked, workspace, home, "trusted", one.port, one.port)
        assert "200 OK" in said
        assert one.connections == 1
        said = await to_thread.run_sync(asked, workspace, home, "trusted", one.port, one.port + 1)
        assert "403 Not in network.allow of menugate.yaml" in said
        said = await to_thread.run_sync(asked, workspace, home, "normal", one.port, one.port)
        assert "200 OK" not in said
        assert one.connections == 1


def asked(workspace: Path, home: Path, profile: str, port: int, listed: int) -> str:
    config = home / "menugate.yaml"
    allow = "rules: {allow: [bash]}\n"
    config.write_text(f"profile: {profile}\nnetwork:\n  allow: ['127.0.0.1:{listed}']\n{allow}")
    with pipe(workspace, home, "--config", str(config)) as client:
        client.hello("mcp")
        client.call("menu_enter", mode="swe")
        said = str(client.call("bash", command=LINE.format(port=port)))
        assert client.bye() == 0
    return said
