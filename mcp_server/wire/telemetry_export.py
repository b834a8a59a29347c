"""How is telemetry started? With the SDK of the extra `otel` and the standard OTEL_* variables, and never on stdout.

The SDK reads these variables itself, except which exporters to use: that is one of our settings.
"""

import sys
import threading
from typing import TYPE_CHECKING

from mcp_server import __version__
from mcp_server.wire.spans import SpanNames, Telemetry
from mcp_server.wire.telemetry import TelemetryHandle, TelemetrySettings, TelemetryUnavailable

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

FLUSH_MS = 2_000


def start_exporters(settings: TelemetrySettings, names: SpanNames) -> TelemetryHandle:
    try:
        tracing, metering = _build_providers(settings)
    except ImportError as missing:
        raise TelemetryUnavailable(
            f"an OTEL_ variable turns telemetry on, but `{missing.name}` is not installed; install"
            " menugate[otel], or unset the variable."
        ) from None

    def flush_and_shut_down() -> None:
        tracing.force_flush(FLUSH_MS)
        metering.force_flush(FLUSH_MS)
        tracing.shutdown()
        metering.shutdown(FLUSH_MS)

    def stop() -> None:
        # The exporters may retry for ever; a daemon thread ends with the process.
        thread = threading.Thread(target=flush_and_shut_down, name="menugate-telemetry", daemon=True)
        thread.start()
        thread.join(FLUSH_MS / 1000)

    tracer, meter = tracing.get_tracer("menugate", __version__), metering.get_meter("menugate", __version__)
    telemetry = Telemetry(tracer, meter, names)
    return TelemetryHandle(telemetry, stop)


def _build_providers(settings: TelemetrySettings) -> "tuple[TracerProvider, MeterProvider]":
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = _build_resource(settings.workspace)
    tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
    if settings.traces:
        tracing.add_span_processor(BatchSpanProcessor(_make_span_exporter(settings.traces)))
    readers = [PeriodicExportingMetricReader(_make_metric_exporter(settings.metrics))] if settings.metrics else []
    return tracing, MeterProvider(readers, resource=resource, shutdown_on_exit=False)


def _build_resource(workspace: str) -> "Resource":
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    ours = {"service.name": "menugate", "service.version": __version__, "menugate.workspace": workspace}
    # The operator's OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
    return Resource(ours).merge(OTELResourceDetector().detect())


def _make_span_exporter(name: str) -> "SpanExporter":
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)
    _check_exporter(name)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _make_metric_exporter(name: str) -> "MetricExporter":
    if name == "console":
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter

        return ConsoleMetricExporter(out=sys.stderr)
    _check_exporter(name)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OTLPMetricExporter()


def _check_exporter(name: str) -> None:
    if name != "otlp":
        raise TelemetryUnavailable(
            f"`{name[:40]}` is not a supported exporter; set OTEL_*_EXPORTER to otlp, console or none."
        )
