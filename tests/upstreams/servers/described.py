"""A server that offers what a JSON file says, read anew at every list: `tools`, `prompts` and `instructions`."""

import json
import sys
from pathlib import Path
from typing import Any


def answer(message: dict[str, Any], offered: dict[str, Any]) -> dict[str, Any] | None:
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}, "prompts": {}},
                "serverInfo": {"name": "described", "version": offered.get("version", "1.0")},
                "instructions": offered.get("instructions", ""),
            }
        case "tools/list":
            return {"tools": offered.get("tools", [])}
        case "prompts/list":
            return {"prompts": offered.get("prompts", [])}
        case "ping":
            return {}
        case _:
            return None


def main(path: Path) -> None:
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message, json.loads(path.read_text()))
        reply = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
