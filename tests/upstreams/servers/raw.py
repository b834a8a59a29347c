"""A server in plain JSON-RPC, of the older revisions, with one way to misbehave, named by its first word."""

import json
import os
import subprocess
import sys
import time
from typing import Any

HOW = sys.argv[1] if len(sys.argv) > 1 else ""
STATE = sys.argv[2] if len(sys.argv) > 2 else ""
TOOLS = [{"name": name, "inputSchema": {"type": "object"}, "vendor": {"kept": True}} for name in ("one", "two")]

VISITED: list[str] = []


def send(message: dict[str, Any]) -> None:
    write(json.dumps(message).encode() + b"\n")


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def answer(id: Any, result: dict[str, Any]) -> None:
    send({"jsonrpc": "2.0", "id": id, "result": result})


def refuse(id: Any, code: int, message: str, data: Any = None) -> None:
    send({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}})


def request(id: int | str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Ask, and serve what else comes until the reply."""
    send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    while True:
        message = json.loads(sys.stdin.readline())
        if "method" not in message and message["id"] == id:
            return message
        handle(message)


def text(words: str, **more: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def changed() -> None:
    send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


def updated(uri: str) -> None:
    send({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})


def initialize(id: Any) -> None:
    capabilities: dict[str, Any] = {"tools": {"listChanged": True}}
    if HOW in ("no_resources", "subscribe"):
        capabilities["resources"] = {"subscribe": True, "listChanged": True}
    answer(
        id,
        {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "raw", "version": "1"}},
    )


def list_tools(id: Any, params: dict[str, Any]) -> None:
    runs = count("lists")
    if HOW == "cursor_loop":
        answer(id, {"tools": TOOLS, "nextCursor": "again"})
    elif HOW == "endless_pages":
        answer(id, {"tools": TOOLS, "nextCursor": str(int(params.get("cursor", "0")) + 1)})
    elif HOW == "empty_on_reconnect" and runs > 1:
        answer(id, {"tools": []})
    elif HOW == "not_a_list":
        answer(id, {"tools": {"one": 1}})
    elif HOW == "twice":
        answer(id, {"tools": [*TOOLS, TOOLS[0], 5, None, "tool"]})
    else:
        answer(id, {"tools": TOOLS})


def count(what: str) -> int:
    """How often this happened, over all starts of the server."""
    if not STATE:
        return 0
    with open(f"{STATE}.{what}", "a+") as file:
        file.write(".")
        file.flush()
        return file.tell()


def call(id: int, params: dict[str, Any]) -> None:
    name = params.get("name")
    if name == "two":
        # The tool that always works, where anything does.
        return answer(id, text("fine"))
    match HOW:
        case "crash":
            os._exit(3)
        case "hang":
            time.sleep(600)
        case "garbage":
            write(b'{]\nhello\n\x00\x01\n[1,2]\n"text"\n{"jsonrpc":"2.0"}\n')
            answer(id, text("after garbage"))
        case "bad_utf8":
            write(b"\xff\xfe\xfa\n")
            write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\xffb"}]}}\n' % id)
        case "huge_line":
            write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % id)
            for _ in range(50):
                write(b"x" * (1 << 20))
            write(b'"}]}}\n')
        case "endless_line":
            while True:
                write(b"x" * (1 << 16))
        case "wrong_id":
            answer(id + 1000, text("wrong"))
            answer(str(id), text("wrong"))
            answer(float(id) + 0.5, text("wrong"))
            answer(None, text("wrong"))
            answer(id, text("right"))
        case "duplicate_id":
            answer(id, text("first"))
            answer(id, text("second"))
        case "bad_result":
            send({"jsonrpc": "2.0", "id": id, "result": "text"})
        case "notices":
            for number in range(20_000):
                send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": number}})
            answer(id, text("after the flood"))
        case "stderr":
            for _ in range(300):
                sys.stderr.buffer.write(b"e" * (1 << 16) + b"\n")
            answer(id, text("after the flood"))
        case "subscribe":
            updated("memo://notes")  # even to who watches no more
            answer(id, text("fine"))
        case "list_changed":
            for _ in range(50):
                changed()
            answer(id, text("changed"))
        case "drip":
            for number in range(600):
                send({"jsonrpc": "2.0", "method": "notifications/progress",
                      "params": {"progressToken": params["_meta"]["progressToken"], "progress": number}})  # fmt: skip
                time.sleep(0.05)
        case "daemon":
            subprocess.Popen(
                ["/bin/sh", "-c", f"setsid sh -c 'setsid sleep {STATE} & setsid sleep {STATE} &' &"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            ).wait()
            answer(id, text("forked"))
        case "environment":
            answer(id, text(json.dumps(dict(os.environ))))
        case "big":
            answer(id, text("y" * (10 << 20)))
        case "ask":
            schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
            question = {"message": "Which colour?", "requestedSchema": schema}
            reply = request("q1", "elicitation/create", question)
            answer(id, text(json.dumps(reply.get("result", reply.get("error")))))
        case "ask_url":
            question = {"mode": "url", "message": "Log in", "url": "https://a.example/in", "elicitationId": "e1"}
            request("q1", "elicitation/create", question)
            done = {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "e1"}}
            if params.get("arguments", {}).get("later"):
                answer(id, text("asked"))
                time.sleep(0.1)
                send(done)
            else:
                send(done)
                answer(id, text("asked"))
        case "visit":
            if VISITED:
                return answer(id, text("fine"))
            asked = {"mode": "url", "message": "Log in", "url": "https://a.example/in", "elicitationId": "e1"}
            refuse(id, -32042, "log in first", {"elicitations": [asked]})
            if not params.get("arguments", {}).get("never"):
                time.sleep(0.1)
                VISITED.append("e1")
                done = {"elicitationId": "e1"}
                send({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": done})
        case "other_requests":
            replies: list[Any] = []
            for number, method in enumerate(("sampling/createMessage", "roots/list", "ping", "nonsense")):
                reply = request(100 + number, method, {})
                replies.append([method, reply.get("result", reply.get("error", {}).get("code"))])
            answer(id, text(json.dumps(replies)))
        case _:
            answer(id, text("fine"))


def handle(message: dict[str, Any]) -> None:
    method, id = message.get("method"), message.get("id")
    params: dict[str, Any] = message.get("params") or {}
    if id is None:
        if method == "notifications/cancelled":
            print("cancelled", params.get("requestId"), file=sys.stderr, flush=True)
        return
    if method == "initialize":
        initialize(id)
    elif method == "tools/list":
        list_tools(id, params)
    elif method == "tools/call":
        call(id, params)
    elif method == "resources/subscribe":
        answer(id, {})
        updated(params["uri"])
    elif HOW == "ignores" and method == "server/discover":
        return
    else:
        refuse(id, -32601, f"there is no {method}")


BEGUN = not STATE or os.path.exists(STATE)
"""With a file as second word, it misbehaves at the start only once the file is there."""
if HOW == "dead" and BEGUN:
    sys.exit("cannot start")
if HOW == "hang_at_start" and BEGUN:
    time.sleep(600)
if HOW == "banner":
    write(b"Welcome to the server!\n\n")
if HOW == "crash_at_start" and count("starts") == 1:
    sys.exit(7)
for line in sys.stdin:
    handle(json.loads(line))
