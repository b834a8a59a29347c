"""Records what the servers of the search tasks offer: run each once, by hand, and keep what it lists.

    python tests/upstreams/record_catalogues.py FOLDER

FOLDER holds the npm packages in `node_modules` and a virtual environment with the PyPI packages in `py`. Tests read
only what was recorded, so they need neither the packages nor a network.
"""

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "catalogues"
ABILITIES: dict[str, dict[str, Any]] = {
    "roots": {"listChanged": True},
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
}
QUIET_SECONDS = 3
"""Some servers list more once they know the client's roots. After this long without a message, nothing more comes."""
LISTS = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resources/templates": "resourceTemplates"}
NPM = "node_modules/.bin/"
SERVERS: dict[str, tuple[str, list[str]]] = {
    "everything": ("npm @modelcontextprotocol/server-everything", [NPM + "mcp-server-everything"]),
    "filesystem": ("npm @modelcontextprotocol/server-filesystem", [NPM + "mcp-server-filesystem", "."]),
    "memory": ("npm @modelcontextprotocol/server-memory", [NPM + "mcp-server-memory"]),
    "playwright": ("npm @playwright/mcp", [NPM + "playwright-mcp"]),
    "git": ("PyPI mcp-server-git", ["py/bin/mcp-server-git"]),
    "fetch": ("PyPI mcp-server-fetch", ["py/bin/mcp-server-fetch"]),
    "time": ("PyPI mcp-server-time", ["py/bin/mcp-server-time", "--local-timezone", "UTC"]),
}


class Conversation:
    """One server's standard input and output, one JSON message a line."""

    def __init__(self, argv: list[str], folder: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, cwd=folder, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.count = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("method") == "roots/list":
                self._send({"id": message["id"], "result": {"roots": []}})
            else:
                self.answers.put(message)

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def notify(self, method: str) -> None:
        self._send({"method": method})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        self._send({"id": self.count, "method": method, "params": params})
        while True:
            answer = self.answers.get(timeout=60)
            if answer.get("id") == self.count:
                return answer.get("result", {})

    def wait_until_quiet(self) -> None:
        try:
            while True:
                self.answers.get(timeout=QUIET_SECONDS)
        except queue.Empty:
            return


def list_everything(conversation: Conversation, method: str) -> list[Any]:
    entries: list[Any] = []
    cursor: dict[str, Any] = {}
    while True:
        page = conversation.ask(f"{method}/list", cursor)
        entries += page.get(LISTS[method], [])
        if not page.get("nextCursor"):
            return entries
        cursor = {"cursor": page["nextCursor"]}


def record(name: str, folder: Path) -> None:
    package, argv = SERVERS[name]
    conversation = Conversation([str(folder / argv[0]), *argv[1:]], folder)
    hello = conversation.ask(
        "initialize",
        {
            "protocolVersion": "2025-11-25",
            "capabilities": ABILITIES,
            "clientInfo": {"name": "recorder", "version": "1"},
        },
    )
    conversation.notify("notifications/initialized")
    conversation.wait_until_quiet()
    kept = {
        "package": package,
        "server": hello["serverInfo"],
        "protocol": hello["protocolVersion"],
        "capabilities": hello["capabilities"],
        "instructions": hello.get("instructions", ""),
        **{LISTS[method]: list_everything(conversation, method) for method in LISTS},
    }
    conversation.process.terminate()
    conversation.process.wait()
    (DATA / f"{name}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for server in SERVERS:
        record(server, Path(sys.argv[1]).resolve())
