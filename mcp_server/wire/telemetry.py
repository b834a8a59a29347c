"""Spans and metrics by the names of OpenTelemetry's conventions. Where telemetry is off, not a line of it is loaded."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mcp_server.wire.spans import Telemetry


class TelemetryUnavailable(Exception):
    """Telemetry is asked for and cannot be had; the message says what to do."""


class TelemetrySettings(NamedTuple):
    """What the operator asks for: an exporter for spans and one for metrics, `otlp`, `console` or nothing."""

    traces: str
    metrics: str
    workspace: str


@dataclass(frozen=True)
class TelemetryHandle:
    telemetry: "Telemetry"
    stop: Callable[[], None]
    """Hand over what was gathered, and end. May wait for the collector, for a bounded time."""


def start_telemetry(
    wish: TelemetrySettings, tools: frozenset[str], prompts: frozenset[str], owner: str
) -> TelemetryHandle | None:
    if not (wish.traces or wish.metrics):
        return None
    from mcp_server.wire.spans import SpanNames
    from mcp_server.wire.telemetry_export import start_exporters

    return start_exporters(wish, SpanNames(tools, prompts, owner))
