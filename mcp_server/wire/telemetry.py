"""Is telemetry on? Spans and metrics follow OpenTelemetry's conventions; while it is off, none of it is loaded."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from mcp_server.wire.spans import Telemetry


class TelemetryUnavailable(Exception):
    """Telemetry was requested but is not available; the message says what to do."""


class TelemetrySettings(NamedTuple):
    """The exporters for spans and for metrics: `otlp`, `console`, or empty for none."""

    traces: str
    metrics: str
    workspace: str


class TelemetryHandle(Struct, frozen=True):
    telemetry: "Telemetry"
    stop: Callable[[], None]
    """Flush and shut down. May wait for the collector, but not for long."""


def start_telemetry(
    settings: TelemetrySettings, tools: frozenset[str], prompts: frozenset[str], owner: str
) -> TelemetryHandle | None:
    if not (settings.traces or settings.metrics):
        return None
    from mcp_server.wire.spans import SpanNames
    from mcp_server.wire.telemetry_export import start_exporters

    return start_exporters(settings, SpanNames(tools, prompts, owner))
