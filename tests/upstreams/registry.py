"""A package registry on this machine, as npm and PyPI are, with packages that hold an MCP server."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

PYTHON = '''
"""A server that offers what its package says, and can say where it runs."""
import json, os, pathlib, socket, sys

OFFERED = {offered}


def look(where):
    """What of the machine can it reach?"""
    try:
        return sorted(os.listdir(where))
    except OSError as error:
        return error.strerror


def write(path):
    try:
        pathlib.Path(path).write_text("x")
        return "written"
    except OSError as error:
        return error.strerror


def reach(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 3).close()
        return "reached"
    except OSError as error:
        return error.strerror or "not reached"


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError as error:
        return error.strerror


DEEDS = {{"look": look, "read": read, "write": write, "reach": reach, "variable": os.environ.get}}


def answer(method, params):
    if method == "initialize":
        return {{
            "protocolVersion": params["protocolVersion"],
            "capabilities": {{"tools": {{}}}},
            "serverInfo": {{"name": {name!r}, "version": {version!r}}},
        }}
    if method == "tools/list":
        return {{"tools": OFFERED}}
    if method == "tools/call":
        deed, words = DEEDS.get(params["name"]), params.get("arguments") or {{}}
        said = deed(words["what"]) if deed else [*sys.argv[1:], {version!r}]
        return {{"content": [{{"type": "text", "text": json.dumps(said)}}]}}
    return {{}} if method == "ping" else None


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {{}})
        error = {{"error": {{"code": -32601, "message": "no such method"}}}}
        reply = error if result is None else {{"result": result}}
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **reply}}), flush=True)


if __name__ == "__main__":
    main()
'''
NODE = """#!/usr/bin/env node
const OFFERED = {offered};
function answer(method, params) {{
  if (method === "initialize") {{
    const server = {{name: {name}, version: {version}}};
    return {{protocolVersion: params.protocolVersion, capabilities: {{tools: {{}}}}, serverInfo: server}};
  }}
  if (method === "tools/list") return {{tools: OFFERED}};
  if (method === "tools/call") {{
    return {{content: [{{type: "text", text: JSON.stringify([...process.argv.slice(2), {version}])}}]}};
  }}
  return method === "ping" ? {{}} : undefined;
}}
require("readline").createInterface({{input: process.stdin}}).on("line", (line) => {{
  const {{id, method, params}} = JSON.parse(line);
  if (id === undefined) return;
  const result = answer(method, params || {{}});
  const reply = result === undefined ? {{error: {{code: -32601, message: "no such method"}}}} : {{result}};
  console.log(JSON.stringify({{jsonrpc: "2.0", id, ...reply}}));
}});
"""
TOOL: Mapping[str, Any] = {"name": "hello", "description": "Says hello.", "inputSchema": {"type": "object"}}
WHAT: Mapping[str, Any] = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
DEEDS = tuple(
    {"name": name, "description": f"Tries {name}.", "inputSchema": WHAT}
    for name in ("look", "read", "write", "reach", "variable")
)
PUBLISHED = "2026-03-01T10:00:00.000Z"


@dataclass
class Registry:
    """What was published so far. Every file has its hash; nothing else answers."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    npm: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    pypi: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    pages: dict[str, Any] = field(default_factory=dict[str, Any])
    """Other answers, by path."""
    asked: list[str] = field(default_factory=list[str])
    """The path of every request."""

    def publish_npm(self, name: str, version: str, tools: tuple[Mapping[str, Any], ...] = (TOOL,), **more: Any) -> None:
        words = {"offered": json.dumps(tools), "name": json.dumps(name), "version": json.dumps(version)}
        bare = name.rpartition("/")[2]
        about = {key: value for key, value in more.items() if key != "dist"}
        package = {"name": name, "version": version, "bin": {bare: "server.js"}, **about}
        data = pack_tar({"package.json": json.dumps(package), "server.js": NODE.format(**words)})
        path = f"/files/{bare}-{version}.tgz"
        self.files[path] = data
        digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
        facts = self.npm.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}, "time": {}})
        dist = {"tarball": self.url + path, "integrity": f"sha512-{digest}", **more.get("dist", {})}
        facts["versions"][version] = {**package, "dist": dist}
        facts["dist-tags"]["latest"] = version
        facts["time"][version] = PUBLISHED

    def publish_wheel(
        self, name: str, version: str, tools: tuple[Mapping[str, Any], ...] = (TOOL,), **more: Any
    ) -> None:
        module = name.replace("-", "_")
        code = PYTHON.format(offered=repr(list(tools)), name=name, version=version)
        info = f"{module}-{version}.dist-info"
        data = pack_zip(
            {
                f"{module}.py": code,
                f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
                f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {module}:main\n",
            },
            f"{info}/RECORD",
        )
        file = f"{module}-{version}-py3-none-any.whl"
        self.files[f"/files/{file}"] = data
        entry = {
            "filename": file,
            "url": f"{self.url}/files/{file}",
            "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
            "upload-time": PUBLISHED,
            **more,
        }
        self.pypi.setdefault(name, []).append(entry)

    def configure(self, home: Path) -> None:
        """Point npm, pip and uv of an account to this registry, as a person would."""
        (home / ".npmrc").write_text(f"registry={self.url}/npm/\ncache={home}/npm-cache\n")
        for folder, name, text in (
            (".config/pip", "pip.conf", f"[global]\nindex-url = {self.url}/simple/\n"),
            (".config/uv", "uv.toml", f'[[index]]\nurl = "{self.url}/simple/"\ndefault = true\n'),
        ):
            (home / folder).mkdir(parents=True, exist_ok=True)
            (home / folder / name).write_text(text)

    def find_answer(self, path: str) -> tuple[str, bytes] | None:
        self.asked.append(path)
        kind, _, name = unquote(path).lstrip("/").partition("/")
        if path in self.files:
            return "application/octet-stream", self.files[path]
        if path in self.pages:
            return "application/json", json.dumps(self.pages[path]).encode()
        if kind == "npm" and name in self.npm:
            return "application/json", json.dumps(self.npm[name]).encode()
        if kind == "simple" and name.rstrip("/") in self.pypi:
            name = name.rstrip("/")
            page = {"meta": {"api-version": "1.1"}, "name": name, "files": self.pypi[name], "versions": []}
            return "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()
        return None


def pack_tar(files: Mapping[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(text.encode()), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def pack_zip(files: Mapping[str, str], record: str) -> bytes:
    packed = io.BytesIO()
    lines: list[str] = []
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
            lines.append(f"{name},sha256={digest},{len(text.encode())}")
        archive.writestr(record, "\n".join([*lines, f"{record},,", ""]))
    return packed.getvalue()


@contextmanager
def serve_registry() -> Generator[Registry]:
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = registry.find_answer(self.path)
            self.send_response(200 if found else 404)
            kind, body = found or ("application/json", b"{}")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
