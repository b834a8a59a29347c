"""Spans and metrics by the names of OpenTelemetry's conventions. Nothing here is loaded where telemetry is off."""
