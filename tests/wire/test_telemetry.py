"""Are spans and metrics sent by the standard names, only when asked for, and without a word that a caller wrote?"""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_server.settings import read_settings
from tests.clients import pipe as pipes
from tests.clients import served
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import PATIENCE
from tests.wire.collector import Collector, attributes, collecting

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@contextmanager
def told(monkeypatch: pytest.MonkeyPatch, **more: str) -> Generator[Collector, None, None]:
    """Servers started here send what they see to a collector."""
    usual = served.environment
    with collecting() as collector:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **more}

        def environment(home: Path) -> dict[str, str]:
            return usual(home) | variables

        monkeypatch.setattr(pipes, "environment", environment)
        monkeypatch.setattr(served, "environment", environment)
        yield collector


def spoken(line: Pipe, era: str) -> None:
    line.hello("mcp", era)
    line.call("menu_enter", mode="data")
    line.request("tools/list")
    line.call("fs_read_file", path="canary-a1b2.txt")
    line.call("fs_delete", path="notes.md")
    line.request("tools/call", {"name": "canary-c3d4", "arguments": {}})
    line.request("canary/e5f6")
    line.request("prompts/get", {"name": "words", "arguments": {"key": "base/system"}})
    line.bye()


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_each_request_is_a_span_by_the_standard_names(
    era: str, workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with told(monkeypatch, OTEL_SERVICE_NAME="mine") as collector:
        with pipe(workspace, home) as line:
            spoken(line, era)
        spans, metrics = collector.spans(), collector.metrics()
        everything = b"".join(body for _, body in collector.bodies)
    named = {span.name: attributes(span) for span in spans}
    assert {"tools/list", "tools/call fs_read_file", "tools/call fs_delete", "prompts/get words"} <= set(named)
    assert {"tools/call", "_OTHER"} <= set(named), "what nobody registered has no name of its own"
    read_file = named["tools/call fs_read_file"]
    assert read_file | {"jsonrpc.request.id": ""} == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-11-25" if era == "legacy" else era,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "fs_read_file",
        "network.transport": "pipe",
        "jsonrpc.request.id": "",
        "error.type": "tool_error",
        "menugate.mode": "data",
        "menugate.stage": "act",
        "menugate.profile": "normal",
        "menugate.decision": "allow",
        "menugate.tool": "fs_read_file",
    }
    assert named["tools/call fs_delete"]["menugate.decision"] == "deny"
    assert named["tools/call fs_delete"]["menugate.code"] == "PROFILE_TOO_LOW"
    assert {span.kind for span in spans} == {2}, "server"
    (operation,) = [metrics["mcp.server.operation.duration"]]
    assert operation.unit == "s"
    measured = {attributes(point).get("gen_ai.tool.name"): point.count for point in operation.histogram.data_points}
    assert measured["fs_delete"] == 1
    assert ("mcp.server.session.duration" in metrics) is (era == "legacy")
    assert collector.resources()[0]["service.name"] == "mine"
    assert collector.resources()[0]["menugate.workspace"] == "work"
    assert b"canary" not in everything


def test_a_trace_of_the_persons_own_process_goes_on(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with told(monkeypatch) as collector:
        with pipe(workspace, home) as line:
            line.hello("mcp")
            meta = {"traceparent": TRACEPARENT}
            line.request("tools/call", {"name": "menu_list", "arguments": {}, "_meta": meta})
            line.request("tools/call", {"name": "think", "arguments": {"content": "x"}, "_meta": {"traceparent": "x"}})
            line.request("tools/call", {"name": "menu_exit", "arguments": {}, "_meta": {"traceparent": 7}})
            line.bye()
        spans = {span.name: span for span in collector.spans()}
    assert spans["tools/call menu_list"].trace_id.hex() == TRACE
    assert spans["tools/call menu_list"].parent_span_id.hex() == PARENT
    for name in ("tools/call think", "tools/call menu_exit"):
        assert spans[name].parent_span_id == b"" and spans[name].trace_id.hex() != TRACE


@pytest.mark.heavy
def test_a_trace_from_elsewhere_is_linked_and_no_more(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpx2

    with told(monkeypatch) as collector:
        with served.served(workspace, home) as house:
            meta: dict[str, Any] = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "traceparent": TRACEPARENT,
            }
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            headers = house.headers | {
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
                "Mcp-Name": "menu_list",
            }
            asked = body | {"params": {"name": "menu_list", "arguments": {}, "_meta": meta}}
            assert httpx2.post(house.url, json=asked, headers=headers, timeout=PATIENCE).status_code == 200
        (span,) = [span for span in collector.spans() if span.name == "tools/call menu_list"]
    assert span.trace_id.hex() != TRACE and span.parent_span_id == b""
    assert [link.trace_id.hex() for link in span.links] == [TRACE]
    assert attributes(span)["network.transport"] == "tcp"


@pytest.mark.parametrize(
    ("variables", "finds"),
    [
        ({}, ("", "")),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, ("otlp", "otlp")),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, ("otlp", "")),
        ({"OTEL_TRACES_EXPORTER": "console"}, ("console", "")),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_METRICS_EXPORTER": "none"}, ("otlp", "")),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "TRUE"}, ("", "")),
        ({"OTEL_SERVICE_NAME": "x"}, ("", "")),
    ],
)
def test_the_standard_variables_turn_it_on(variables: dict[str, str], finds: tuple[str, str], workspace: Path) -> None:
    settings = read_settings({"workspace": str(workspace)}, {"HOME": str(workspace), **variables})
    assert (settings.traces, settings.metrics) == finds


def test_off_nothing_of_it_is_loaded(workspace: Path, home: Path) -> None:
    code = (
        "import asyncio, sys; from mcp_server.compose import build_app; from mcp_server.settings import read_settings\n"
        f"settings = read_settings({{'workspace': {str(workspace)!r}}}, {served.environment(home)!r})\n"
        "async def main():\n house = build_app(settings)\n assert house.stop_telemetry is None\n return house\n"
        "house = asyncio.run(main())\n"
        "assert len(house.server.middleware) == 3, house.server.middleware\n"
        "loaded = ('opentelemetry.sdk', 'mcp_server.wire.spans', 'mcp_server.wire.telemetry_export')\n"
        "assert [name for name in sys.modules if name.startswith(loaded)] == []\n"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(
        run, env=served.environment(home), cwd=served.ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr


def test_an_exporter_nobody_knows_is_refused_at_the_start(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with told(monkeypatch, OTEL_TRACES_EXPORTER="zipkin"), pipe(workspace, home) as line:
        assert line.process.wait(served.PATIENCE) == 1
        assert line.process.stderr is not None
        said = line.process.stderr.read().decode()
    assert "`zipkin` is not a supported exporter" in said and "Traceback" not in said


@pytest.mark.heavy  # as long as it is waited for
def test_a_collector_that_is_away_costs_nobody_a_call(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with told(monkeypatch, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9"), pipe(workspace, home) as line:
        line.hello("mcp")
        assert line.call("menu_list")["isError"] is False
        assert line.bye() == 0
