"""Does what a server logs reach the client under the server's name, without secrets, and at a bearable length?"""

from typing import Any

import pytest

from mcp_server.calls.upstream_client import MAX_LOG_CHARS, ServerClient
from mcp_server.guards.redaction import REDACTED, Redactor
from tests.upstreams.ground import Recorder

pytestmark = pytest.mark.anyio
SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("plain", "plain"),
        ({"a": [f"key {SECRET}"]}, {"a": [f"key {REDACTED}"]}),
        ({"password": "short"}, {"password": REDACTED}),
    ],
)
async def test_a_log_message_has_no_secrets(data: Any, shown: Any) -> None:
    client = Recorder()
    await ServerClient(client, "server", Redactor([SECRET])).log("info", data)
    assert client.logged == [("info", shown)]


async def test_a_long_log_message_is_cut() -> None:
    client = Recorder()
    await ServerClient(client, "server", Redactor(())).log("info", ["x" * 100_000])
    assert len(client.logged[0][1]) == MAX_LOG_CHARS + 1
