"""A collector on loopback that keeps what it is sent, and says what was in it."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Collector:
    url: str = ""
    bodies: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])

    def spans(self) -> list[Any]:
        found: list[Any] = []
        for path, body in self.bodies:
            if path == "/v1/traces":
                request = ExportTraceServiceRequest.FromString(body)
                found += [span for one in request.resource_spans for two in one.scope_spans for span in two.spans]
        return found

    def metrics(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path, body in self.bodies:
            if path == "/v1/metrics":
                request = ExportMetricsServiceRequest.FromString(body)
                for one in request.resource_metrics:
                    found |= {each.name: each for two in one.scope_metrics for each in two.metrics}
        return found

    def resources(self) -> list[dict[str, str]]:
        requests = [ExportTraceServiceRequest.FromString(body) for path, body in self.bodies if path == "/v1/traces"]
        return [attributes(one.resource) for request in requests for one in request.resource_spans]


def attributes(node: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in node.attributes}


@contextmanager
def collecting() -> Generator[Collector, None, None]:
    collector = Collector()

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            collector.bodies.append((self.path, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
