"""What do the clients send? JSON-RPC lines and HTTP requests of both eras, as bytes."""

import json
from collections.abc import Mapping
from typing import Any

LEGACY, MODERN = "2025-11-25", "2026-07-28"
CLIENT = {"name": "bench", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def build_request(number: int, method: str, params: Mapping[str, Any] | None = None, *, modern: bool = False) -> bytes:
    body = dict(params or {})
    if modern:
        body["_meta"] = ENVELOPE
    return _compact({"jsonrpc": "2.0", "id": number, "method": method, "params": body})


def build_handshake() -> tuple[bytes, bytes]:
    """Build the request that opens a legacy connection, and the notification that it is open."""
    opening = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
    return build_request(0, "initialize", opening), _compact({"jsonrpc": "2.0", "method": "notifications/initialized"})


def build_call(number: int, tool: str, arguments: Mapping[str, Any], *, modern: bool = False) -> bytes:
    return build_request(number, "tools/call", {"name": tool, "arguments": arguments}, modern=modern)


def build_post(address: tuple[str, int], body: bytes) -> bytes:
    """Build a modern request as one keep-alive POST, with the headers that mirror its body."""
    message = json.loads(body)
    name = message["params"].get("name")
    head = [
        "POST /mcp HTTP/1.1",
        f"Host: {address[0]}:{address[1]}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {MODERN}",
        f"Mcp-Method: {message['method']}",
        *([f"Mcp-Name: {name}"] if name else []),
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


def find_fault(reply: Mapping[str, Any]) -> str | None:
    """Explain why this is not a successful answer; a benchmark of refusals would look fast."""
    if "error" in reply:
        return json.dumps(reply["error"])
    if reply.get("result", {}).get("isError"):
        return json.dumps(reply["result"].get("content"))
    return None


def _compact(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
