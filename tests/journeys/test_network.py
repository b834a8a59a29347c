"""Does a command get out of its sandbox to the places the operator listed, through the whole gate, and to no other?"""

import json
import sys
from pathlib import Path

import pytest

from tests.clients import warm
from tests.clients.pipe import pipe
from tests.clients.served import command, environment
from tests.clients.tuned import tuned
from tests.guards.network.site import pages, site

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


CANARY = "Canary-0f3b9a41c7"


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_tools_reach_what_the_operator_lets_them_and_the_record_says_where(
    workspace: Path, home: Path, era: str
) -> None:
    from anyio import to_thread

    async with pages() as one, pages() as other:
        one.add("/", b"the page")
        one.redirect("/away", f"http://127.0.0.1:{other.port}/")
        await to_thread.run_sync(fetch_around, workspace, home, one.port, other.port, era)
        assert other.heard == []
        assert [heard.line for heard in one.heard] == ["GET / HTTP/1.1", "GET /away HTTP/1.1"]


def fetch_around(workspace: Path, home: Path, port: int, asked: int, era: str) -> None:
    config, here = home / "menugate.yaml", f"http://127.0.0.1:{port}"
    config.write_text(
        f"web:\n  allow: ['127.0.0.1:{port}', '127.0.0.1:{asked}']\n  ask: ['127.0.0.1:{asked}']\n"
        "  deny: [closed.example]\nrules:\n  deny: ['lab_fetch(domain:ruled.example)']\n"
    )
    run = ("/usr/bin/env", f"LAB_TOKEN={CANARY}", *tuned())
    with pipe(workspace, home, "--config", str(config), run=run) as client:
        client.hello("mcp", era)
        client.call("menu_enter", mode="lab")

        def fetch(url: str) -> str:
            return json.dumps(client.call("lab_fetch", url=url))

        assert "the page" in fetch(f"{here}/")
        for url, says in (
            (f"http://127.0.0.1:{asked}/", "APPROVAL_REQUIRED"),
            ("http://closed.example/", "RULE_DENIED"),
            ("https://ruled.example:8443/", "RULE_DENIED"),
            (f"{here}/away", "only with the user's approval"),
            (f"{here}/?q={CANARY.lower()}", "contains a secret"),
            ("http://169.254.169.254/", "NETWORK_REFUSED"),
            # Where this leads cannot be said, so a rule that denies some hosts applies.
            (f"http://2130706433:{port}/", "RULE_DENIED"),
        ):
            assert says in fetch(url), url
        assert client.bye() == 0
    ledger = warm.run([*command("audit", "export"), "--workspace", str(workspace)], environment(home), text=True).stdout
    rows = [json.loads(line) for line in ledger.splitlines()]
    hosts = [row["hosts"] for row in rows if row.get("hosts")]
    assert hosts == [[f"127.0.0.1:{port}"]] * 2 + [["169.254.169.254:80"]]
    assert CANARY.lower() not in ledger.lower()


NOTING = """
import atexit, sys
from pathlib import Path
atexit.register(lambda: Path(sys.argv[1]).write_text(" ".join(sys.modules)))
from mcp_server.cli.main import main
sys.exit(main(["serve", *sys.argv[2:]]))
"""
OUTWARD = {"httpcore2", "h11", "lxml", "PIL", "pypdfium2"}
"""Not `httpx2`, which the MCP SDK loads with itself, and which loads `brotli` and `idna`."""


def test_a_server_that_reaches_nothing_loads_nothing_that_could(workspace: Path, home: Path) -> None:
    (workspace / "a.txt").write_text("a")
    run = (sys.executable, "-c", NOTING, str(home / "modules"))
    with pipe(workspace, home, run=run) as client:
        client.hello("mcp")
        client.names()
        client.call("menu_enter", mode="swe")
        assert not client.call("Read", file_path="a.txt").get("isError")
        assert client.bye() == 0
    names = (home / "modules").read_text().split()
    assert "mcp_server.guards.network.network" in names
    assert "mcp_server.guards.network.http" not in names
    assert sorted(OUTWARD & {name.partition(".")[0] for name in names}) == []
