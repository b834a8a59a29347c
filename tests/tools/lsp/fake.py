"""A language server that does what a script says: by itself it finds every place where the asked name stands.

It is copied behind a line `SCRIPT = {...}` and run as a program of its own, with nothing but Python's own library. By
method, a script has steps: `answer` and `error` end the answer; `ask` asks the client and waits for its reply, `say`
announces, `raw` sends bytes as they are, `complain` writes to the errors, `end` ends the program, `silent` never
answers, and `heard` answers with everything the client has sent so far.
"""

import json
import os
import re
import sys
from typing import Any

WIDE = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}
SCRIPT: dict[str, Any] = {}  # left out of the copy, which begins with a value of its own
LINE_END: re.Pattern[str] = re.compile(r"\r\n|\n|\r")
heard: list[Any] = []
texts: dict[str, str] = {}


def read() -> Any:
    length = 0
    while (line := sys.stdin.buffer.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    if not length:
        sys.exit(0)
    message = json.loads(sys.stdin.buffer.read(length))
    heard.append(message)
    return message


def raw(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(**message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)


def width() -> tuple[str, int]:
    return WIDE[SCRIPT.get("encoding") or "utf-16"]


def lines(text: str) -> list[str]:
    found: list[str] = LINE_END.split(text)
    return found


def name_at(text: str, position: Any) -> str:
    """The name there, found by counting in this server's own units."""
    codec, size = width()
    line: str = lines(text)[int(position["line"])]
    at = len(line.encode(codec)[: position["character"] * size].decode(codec))
    found = re.match(r"\w+", line[at:])
    return found[0] if found else ""


def places(name: str) -> list[Any]:
    codec, size = width()
    found: list[Any] = []
    for uri, text in texts.items():
        for number, line in enumerate(lines(text)):
            for match in re.finditer(rf"\b{re.escape(name)}\b", line):
                start, end = (len(line[:at].encode(codec)) // size for at in match.span())
                span = {"start": {"line": number, "character": start}, "end": {"line": number, "character": end}}
                found.append({"uri": uri, "range": span})
    return found


def usual(method: str, params: Any) -> Any:
    """What is answered where the script says nothing."""
    if method == "initialize":
        able = dict.fromkeys(["definition", "references", "hover", "rename", "documentSymbol", "workspaceSymbol"], True)
        chosen = {"positionEncoding": SCRIPT["encoding"]} if SCRIPT.get("encoding") else {}
        pull: dict[str, Any] = {"diagnosticProvider": {}} if SCRIPT.get("pull", True) else {}
        return {"capabilities": {f"{name}Provider": yes for name, yes in able.items()} | chosen | pull}
    if "position" not in (params or {}):
        return None
    name = name_at(texts[params["textDocument"]["uri"]], params["position"])
    if method == "textDocument/rename":
        changes: dict[str, list[Any]] = {}
        for place in places(name):
            changes.setdefault(place["uri"], []).append({"range": place["range"], "newText": params["newName"]})
        return {"changes": changes}
    return {"contents": name} if method == "textDocument/hover" else places(name)


def step(number: Any, what: str, *given: Any) -> bool:
    """Does what it says; was that the answer?"""
    match what:
        case "answer":
            send(id=number, result=given[0])
        case "error":
            send(id=number, error={"code": given[0], "message": given[1]})
        case "heard":
            send(id=number, result={"contents": {"kind": "plaintext", "value": json.dumps(heard)}})
        case "ask":
            send(id=f"ask-{len(heard)}", method=given[0], params=given[1])
            while "method" in read():
                pass
            return False
        case "say":
            send(method=given[0], params=given[1])
            return False
        case "raw":
            raw(given[0].encode())
            return False
        case "complain":
            print(given[0], file=sys.stderr, flush=True)
            return False
        case "end":
            os._exit(given[0])
        case _:
            assert what == "silent", what
    return True


def keep(method: str, params: Any) -> None:
    if method == "textDocument/didOpen":
        texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]
    elif method == "textDocument/didChange":
        texts[params["textDocument"]["uri"]] = params["contentChanges"][0]["text"]
    elif method == "textDocument/didClose":
        del texts[params["textDocument"]["uri"]]


def main() -> None:
    while (message := read()).get("method") != "exit":
        method, params, number = message.get("method", ""), message.get("params"), message.get("id")
        keep(method, params)
        for one in SCRIPT.get("on", {}).get(method, []):
            if step(number, *one):
                break
        else:
            if number is not None and method:
                send(id=number, result=usual(method, params))


if __name__ == "__main__":
    main()
