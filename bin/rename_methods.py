"""Rename methods as tests/tables/method_names.tsv says: file, Class.method, new name. Pyright finds who uses them.

    .venv/bin/python bin/rename_methods.py [ROWS]

Takes the first ROWS lines (all without), asks for every edit first, makes them, and takes the lines out of the table.
What names a method in a string is not found: run the tests.
"""

import ast
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "tables" / "method_names.tsv"
USED_OFTEN = ROOT / "mcp_server" / "model" / "results.py"


class Pyright:
    """Its language server, asked over stdin and stdout."""

    def __init__(self) -> None:
        words = [str(ROOT / ".venv" / "bin" / "pyright-langserver"), "--stdio"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        self.numbers = itertools.count(1)
        self.opened = set[Path]()
        folder = {"uri": ROOT.as_uri(), "name": ROOT.name}
        edits = {"workspaceEdit": {"documentChanges": True}, "configuration": True}
        about = {"processId": None, "rootUri": folder["uri"], "workspaceFolders": [folder]}
        self.ask("initialize", {**about, "capabilities": {"workspace": edits}})
        self.send({"method": "initialized", "params": {}})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        size = 0
        while line := self.process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            size = int(value) if name.lower() == b"content-length" else size
        return json.loads(self.process.stdout.read(size))

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        number = next(self.numbers)
        self.send({"id": number, "method": method, "params": params})
        while True:
            got = self.receive()
            if "method" not in got and got.get("id") == number:
                return got.get("result")
            if "method" in got and "id" in got:
                wanted = got["params"].get("items") if got["method"] == "workspace/configuration" else None
                self.send({"id": got["id"], "result": [{} for _ in wanted] if wanted else None})

    def at(self, path: Path, line: int, column: int) -> dict[str, Any]:
        if path not in self.opened:
            self.opened.add(path)
            document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": path.read_text()}
            self.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        return {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": column}}

    def wait_until_it_knows_all_files(self) -> None:
        lines = USED_OFTEN.read_text().splitlines()
        line = next(number for number, text in enumerate(lines) if text.startswith("class Problem"))
        before = -1
        while True:
            about = self.at(USED_OFTEN, line, len("class ")) | {"context": {"includeDeclaration": True}}
            found = len(self.ask("textDocument/references", about) or ())
            if found == before and found > 200:
                return
            before = found
            time.sleep(2)


def find_definition(path: Path, name: str) -> tuple[int, int] | None:
    node: ast.AST = ast.parse(path.read_text())
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = [one for one in ast.iter_child_nodes(node) if isinstance(one, kinds) and one.name == part]
        if not found:
            return None
        node = found[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    text = path.read_text().splitlines()[node.lineno - 1]
    return node.lineno - 1, text.index(node.name, text.index("def ") + 4)


def main(most: int | None) -> None:
    lines = TABLE.read_text().splitlines()
    server = Pyright()
    server.wait_until_it_knows_all_files()
    edits: dict[Path, dict[tuple[int, int, int], str]] = {}
    for line in lines[:most]:
        where, name, new = line.split("\t")
        place = find_definition(ROOT / where, name)
        answer = place and server.ask("textDocument/rename", server.at(ROOT / where, *place) | {"newName": new})
        if not answer:
            sys.exit(f"{where}: {name} cannot be renamed")
        for change in answer["documentChanges"]:
            path = Path(unquote(urlparse(change["textDocument"]["uri"]).path))
            for edit in change["edits"]:
                start, end = edit["range"]["start"], edit["range"]["end"]
                edits.setdefault(path, {})[start["line"], start["character"], end["character"]] = edit["newText"]
    server.process.kill()
    for path, found in edits.items():
        text = path.read_text().split("\n")
        for (line, start, end), new in sorted(found.items(), reverse=True):
            text[line] = text[line][:start] + new + text[line][end:]
        path.write_text("\n".join(text))
    TABLE.write_text("".join(f"{line}\n" for line in lines[len(lines[:most]) :]))


main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
