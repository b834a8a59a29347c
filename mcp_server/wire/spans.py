"""What does telemetry record of a request? One span, and one measurement of its duration.

Names follow the conventions for MCP and generative AI; our own start with `menugate.`. Nothing that a caller wrote is
included: names of tools, prompts and methods only if we know them; no arguments, results or error texts.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from msgspec import Struct
from opentelemetry import trace
from opentelemetry.context import Context as Around
from opentelemetry.metrics import Histogram, Meter
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mcp_server.state.engine.rows import Judged
from mcp_server.wire.caller import Caller, Context, identify_caller, keep_for_connection

BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
METHODS = frozenset(
    (
        *("initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get"),
        *("resources/list", "resources/templates/list", "resources/read", "resources/subscribe"),
        *("resources/unsubscribe", "completion/complete", "logging/setLevel", "subscriptions/listen"),
        *("notifications/initialized", "notifications/cancelled", "notifications/progress"),
        *("notifications/roots/list_changed", "tasks/get", "tasks/cancel", "tasks/list", "tasks/result"),
    )
)
OTHER = "_OTHER"
OURS = "menugate://run/"
MEASURED = ("mcp.method.name", "gen_ai.tool.name", "error.type", "network.transport", "mcp.protocol.version")
_W3C = TraceContextTextMapPropagator()


class SpanNames(Struct, frozen=True):
    """The names that may appear in a span: our own."""

    tools: frozenset[str]
    prompts: frozenset[str]
    owner: str
    """The person who runs this process; only their traces continue in ours."""


@dataclass
class Telemetry:
    tracer: Tracer
    meter: Meter
    known: SpanNames
    operation: Histogram = field(init=False)
    session: Histogram = field(init=False)

    def __post_init__(self) -> None:
        self.operation = self._make_histogram("mcp.server.operation.duration", "How long a request took.")
        self.session = self._make_histogram("mcp.server.session.duration", "How long a connection lasted.")

    def _make_histogram(self, name: str, description: str) -> Histogram:
        return self.meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=BUCKETS)

    async def watch_request(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Measure a request; the outermost middleware, so that it sees what the client gets."""
        who = identify_caller(ctx, self.known.owner)
        if who.protocol.connects:
            self._measure_connection(ctx, who)
        attributes = self._build_attributes(ctx, who)
        parent, links = self._read_trace(ctx, who)
        name = " ".join(str(attributes[key]) for key in NAMING if key in attributes)
        start = time.perf_counter()
        with self.tracer.start_as_current_span(
            name,
            context=parent,
            kind=SpanKind.SERVER,
            attributes=attributes,
            links=links,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await call_next(ctx)
                error = "tool_error" if _is_error(result) else ""
            except MCPError as mcp_error:
                error = str(mcp_error.error.code)
                span.set_attribute("rpc.response.status_code", error)
                self._end_span(span, attributes, error, start)
                raise
            except BaseException:
                self._end_span(span, attributes, OTHER, start)
                raise
            self._end_span(span, attributes, error, start)
            return result

    def note_decision(self, judgement: Judged) -> None:
        """Put the decision on the span of the request it was made for."""
        decision = judgement.decision
        trace.get_current_span().set_attributes(
            {
                "menugate.mode": judgement.session.mode or "ROOT",
                "menugate.stage": str(judgement.session.stage),
                "menugate.profile": str(judgement.posture.profile),
                "menugate.decision": str(decision.verdict),
                **({"menugate.layer": str(decision.layer)} if decision.layer else {}),
                **({"menugate.code": str(decision.code)} if decision.code else {}),
                **({"menugate.rule": decision.rule} if decision.rule else {}),
                # A carrier's span names the carried tool, once that is known to be ours.
                **({"menugate.tool": judgement.tool} if judgement.tool in self.known.tools else {}),
            }
        )

    def _end_span(self, span: Span, attributes: Mapping[str, Any], error: str, start: float) -> None:
        if error:
            span.set_attribute("error.type", error)
            span.set_status(StatusCode.ERROR)
        measured = dict(attributes) | ({"error.type": error} if error else {})
        self.operation.record(time.perf_counter() - start, {key: measured[key] for key in MEASURED if key in measured})

    def _build_attributes(self, ctx: Context, who: Caller) -> dict[str, Any]:
        params = cast(Mapping[str, Any], ctx.params or {})
        name, method = params.get("name"), ctx.method if ctx.method in METHODS else OTHER
        attributes: dict[str, Any] = {
            "mcp.method.name": method,
            "mcp.protocol.version": ctx.protocol_version,
            "network.transport": "pipe" if who.transport == "stdio" else "tcp",
        }
        if isinstance(ctx.request_id, int):
            attributes["jsonrpc.request.id"] = str(ctx.request_id)
        if method == "tools/call":
            attributes["gen_ai.operation.name"] = "execute_tool"
            if name in self.known.tools:
                attributes["gen_ai.tool.name"] = name
        elif method == "prompts/get" and name in self.known.prompts:
            attributes["gen_ai.prompt.name"] = name
        elif isinstance(uri := params.get("uri"), str) and uri.startswith(OURS):
            # Leave out the run: a caller may write anything there.
            attributes["mcp.resource.uri"] = f"{OURS}{{run}}/summary"
        return attributes

    def _read_trace(self, ctx: Context, who: Caller) -> tuple[Around | None, list[Link]]:
        """Read the client's trace. Anyone can claim one, so ours continues it only for the person's own process, and
        only links to others."""
        meta = dict(ctx.meta or {})
        try:
            parent = _W3C.extract(meta)
        except (TypeError, ValueError, AttributeError):
            return None, []
        theirs = trace.get_current_span(parent).get_span_context()
        if not theirs.is_valid:
            return None, []
        if who.transport == "stdio" and who.principal == self.known.owner:
            return parent, []
        return None, [Link(theirs)]

    def _measure_connection(self, ctx: Context, who: Caller) -> None:
        transport = {"network.transport": "pipe" if who.transport == "stdio" else "tcp"}

        def record_length(began: float) -> None:
            self.session.record(time.perf_counter() - began, transport)

        keep_for_connection(ctx, "menugate connected", time.perf_counter, record_length)


NAMING = ("mcp.method.name", "gen_ai.tool.name", "gen_ai.prompt.name")


def _is_error(result: object) -> bool:
    if isinstance(result, Mapping):
        return cast(Mapping[str, Any], result).get("isError") is True
    return getattr(result, "is_error", False) is True
