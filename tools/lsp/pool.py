"""Is the server running and ready? It starts with the first question and stops once unused."""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio import to_thread
from msgspec import Struct

from mcp_server.model.context import Context
from mcp_server.model.processes import ChildProcess, Command
from tools.lsp.connection import CONNECTION_ENDED, LspConnection, RequestDeclined, ServerGone, ServerSilent
from tools.lsp.documents import OpenDocuments, survey_files
from tools.lsp.locations import uri_from_path
from tools.lsp.protocol import to_fields, to_number, to_text
from tools.lsp.servers import Language, LanguageServer
from tools.lsp.text import ENCODINGS

MAX_TASKS = 1000
MAX_CPU_SECONDS = 4 * 3600.0
"""In a server's whole life."""
SHUTDOWN_SECONDS = 2.0
CAPABILITIES: Mapping[str, Any] = {
    "window": {"workDoneProgress": True, "showDocument": {"support": False}},
    "workspace": {
        "applyEdit": False,
        "workspaceFolders": True,
        "configuration": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
    },
    "textDocument": {
        "synchronization": {"dynamicRegistration": False},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {"dynamicRegistration": False},
        "definition": {"linkSupport": True},
        "references": {},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "rename": {"prepareSupport": False},
    },
    "experimental": {"serverStatusNotification": True},
}


class Timeouts(Struct, frozen=True):
    """In seconds."""

    start: float = 30.0
    answer: float = 25.0
    indexing: float = 15.0
    diagnostics: float = 12.0
    idle: float = 600.0


class FileDiagnostics(Struct, frozen=True):
    """What a server last announced about one file."""

    received_at: int
    """The connection's `notification_count`."""
    version: int | None
    params: Any


@dataclass
class RunningServer:
    child: ChildProcess
    timeouts: Timeouts
    ready_pattern: str = ""
    """See `LanguageServer`."""
    connection: LspConnection = field(init=False)
    documents: OpenDocuments = field(init=False)
    encoding: str = "utf-16"
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tasks: set[str] = field(default_factory=set[str])
    """What the server says it is working on."""
    diagnostics: dict[str, FileDiagnostics] = field(default_factory=dict[str, FileDiagnostics])
    """By URI."""
    notified: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def has_ended(self) -> bool:
        return self.connection.end is not None or self.child.code is not None

    @property
    def is_busy(self) -> bool:
        return bool(self.tasks)

    def has_capability(self, capability: str) -> bool:
        """True if the server has the capability; its value is true or an object, even an empty one."""
        return self.capabilities.get(capability) not in (None, False)

    def handle_notification(self, method: str, params: Any) -> None:
        fields = to_fields(params)
        if method == "$/progress":
            token, kind = str(fields.get("token")), to_fields(fields.get("value")).get("kind")
            if kind == "end":
                self.tasks.discard(token)
            elif kind == "begin" and len(self.tasks) < MAX_TASKS:
                self.tasks.add(token)
        elif method == "experimental/serverStatus":
            (self.tasks.discard if fields.get("quiescent", True) else self.tasks.add)(method)
        elif method == "textDocument/publishDiagnostics":
            uri, version = to_text(fields.get("uri")), fields.get("version")
            if uri in {uri_from_path(self.documents.root, path) for path in self.documents.by_path}:
                self.diagnostics[uri] = FileDiagnostics(
                    self.connection.notification_count, to_number(version) if version else None, fields
                )
        elif method == "window/logMessage" and self.ready_pattern:
            if not re.search(self.ready_pattern, to_text(fields.get("message"))):
                return
            self.tasks.discard(self.ready_pattern)
        elif method != CONNECTION_ENDED:
            return
        self.notified.set()

    async def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            while not condition():
                if self.connection.end is not None:
                    raise ServerGone(self.connection.end)
                self.notified.clear()
                await self.notified.wait()
        return condition()

    async def request(self, method: str, params: Any) -> Any:
        return await self.connection.request(method, params, self.timeouts.answer)

    async def shut_down(self) -> None:
        """Ask the server to exit, as the protocol wants it, then make sure."""
        with anyio.CancelScope(shield=True), suppress(ServerGone, ServerSilent, RequestDeclined):
            await self.connection.request("shutdown", None, SHUTDOWN_SECONDS)
            await self.connection.notify("exit", None, SHUTDOWN_SECONDS)
        await self.stop()

    async def stop(self) -> None:
        with anyio.CancelScope(shield=True):
            await self.child.kill()
            await self.connection.close()


class ServerPool:
    """The place for one server of one session: at most one runs, and a call that finds it dead restarts it."""

    def __init__(self, server: LanguageServer, language: Language, timeouts: Timeouts) -> None:
        self.server, self.language, self.timeouts = server, language, timeouts
        self.lock = asyncio.Lock()
        """Hold it for a whole question, so that no other call changes the open documents meanwhile."""
        self.closed = False
        self._running: RunningServer | None = None

    @property
    def is_initialized(self) -> bool:
        return self._running is not None and bool(self._running.capabilities)

    async def ensure_running(self, ctx: Context, program: str) -> RunningServer:
        """Return the server, started if necessary. The caller holds the lock."""
        if self._running is not None and self._running.has_ended:
            await self.drop()
        if self._running is None:
            self._running = await self._start(ctx, program)
        return self._running

    async def close(self) -> None:
        """Shut the server down for good."""
        async with self.lock:
            self.closed = True
            running, self._running = self._running, None
            if running is not None:
                await running.shut_down()

    async def drop(self) -> str:
        """Kill the server, and return the end of its stderr."""
        running, self._running = self._running, None
        if running is None:
            return ""
        await running.stop()
        return running.child.last_words

    async def _start(self, ctx: Context, program: str) -> RunningServer:
        root = ctx.files.root
        # Survey before the start: the server reads the files as they are then, and we announce every later change.
        survey, _ = await to_thread.run_sync(survey_files, ctx.files, self.language)
        argv = (program, *self.server.argv[1:])
        command = Command(argv, env=self.server.env, seconds=MAX_CPU_SECONDS, read_only=True, apart=True)
        child = await ctx.processes.start(command)
        running = self._running = RunningServer(child, self.timeouts, self.server.ready_pattern)
        running.tasks.update({self.server.ready_pattern} - {""})
        folder = {"uri": uri_from_path(root, ""), "name": root.rpartition("/")[2] or "workspace"}
        running.connection = LspConnection(child, folder, self.server.settings, running.handle_notification)
        running.documents = OpenDocuments(root, self.language, running.connection, survey)
        try:
            await self._initialize(running, root, folder)
        except (ServerGone, ServerSilent, RequestDeclined):
            raise  # the caller drops the server, and reports the end of its stderr
        except BaseException:
            await self.drop()
            raise
        return running

    async def _initialize(self, running: RunningServer, root: str, folder: Mapping[str, str]) -> None:
        params = {
            "processId": None,
            "clientInfo": {"name": "menugate"},
            "rootUri": folder["uri"],
            "rootPath": root,
            "workspaceFolders": [folder],
            "capabilities": {**CAPABILITIES, "general": {"positionEncodings": list(self.server.encodings)}},
            "initializationOptions": dict(self.server.options),
        }
        answer = await running.connection.request("initialize", params, self.timeouts.start)
        running.capabilities = to_fields(to_fields(answer).get("capabilities"))
        encoding = to_text(running.capabilities.get("positionEncoding"))
        running.encoding = encoding if encoding in ENCODINGS else "utf-16"
        await running.connection.notify("initialized", {})
