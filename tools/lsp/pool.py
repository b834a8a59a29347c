"""Is there a server for this, and is it ready? Started when first asked, kept while it is used, gone when it is not."""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.processes import ChildProcess, Command
from tools.lsp.connection import OVER, LspConnection, RequestDeclined, ServerGone, ServerSilent
from tools.lsp.documents import OpenDocuments, survey_files
from tools.lsp.locations import uri_from_path
from tools.lsp.protocol import to_fields, to_number, to_text
from tools.lsp.servers import Language, LanguageServer
from tools.lsp.text import ENCODINGS

MOST_TASKS = 1000
COMPUTING = 4 * 3600.0
"""Seconds of a processor that one server may use up in its life."""
POLITELY = 2.0
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


@dataclass(frozen=True, slots=True)
class Patience:
    """How long, in seconds, each thing may take."""

    start: float = 30.0
    answer: float = 25.0
    indexing: float = 15.0
    diagnostics: float = 12.0
    idle: float = 600.0


@dataclass(frozen=True, slots=True)
class FileDiagnostics:
    """What it last announced about one file."""

    moment: int
    version: int | None
    params: Any


@dataclass
class RunningServer:
    """One server that runs."""

    child: ChildProcess
    patience: Patience
    ready: str = ""
    """What its log says once it has seen which files there are."""
    conversation: LspConnection = field(init=False)
    mirror: OpenDocuments = field(init=False)
    encoding: str = "utf-16"
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tasks: set[str] = field(default_factory=set[str])
    """What it says it is at work on."""
    published: dict[str, FileDiagnostics] = field(default_factory=dict[str, FileDiagnostics])
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        return self.conversation.end is not None or self.child.code is not None

    @property
    def is_busy(self) -> bool:
        return bool(self.tasks)

    def has_capability(self, capability: str) -> bool:
        """Options stand for a yes, even where there are none in them."""
        return self.capabilities.get(capability) not in (None, False)

    def handle_notification(self, method: str, params: Any) -> None:
        told = to_fields(params)
        if method == "$/progress":
            token, what = str(told.get("token")), to_fields(told.get("value")).get("kind")
            if what == "end":
                self.tasks.discard(token)
            elif what == "begin" and len(self.tasks) < MOST_TASKS:
                self.tasks.add(token)
        elif method == "experimental/serverStatus":
            (self.tasks.discard if told.get("quiescent", True) else self.tasks.add)(method)
        elif method == "textDocument/publishDiagnostics":
            uri, version = to_text(told.get("uri")), told.get("version")
            if uri in {uri_from_path(self.mirror.root, path) for path in self.mirror.opened}:
                self.published[uri] = FileDiagnostics(
                    self.conversation.said, to_number(version) if version else None, told
                )
        elif method == "window/logMessage" and self.ready and re.search(self.ready, to_text(told.get("message"))):
            self.tasks.discard(self.ready)
        elif method != OVER:
            return
        self.moved.set()

    async def wait_until(self, true: Callable[[], bool], seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            while not true():
                if self.conversation.end is not None:
                    raise ServerGone(self.conversation.end)
                self.moved.clear()
                await self.moved.wait()
        return true()

    async def request(self, method: str, params: Any) -> Any:
        return await self.conversation.request(method, params, self.patience.answer)

    async def shut_down(self) -> None:
        """First politely, as the protocol has it."""
        with anyio.CancelScope(shield=True), suppress(ServerGone, ServerSilent, RequestDeclined):
            await self.conversation.request("shutdown", None, POLITELY)
            await self.conversation.notify("exit", None, POLITELY)
        await self.stop()

    async def stop(self) -> None:
        with anyio.CancelScope(shield=True):
            await self.child.kill()
            await self.conversation.close()


class ServerPool:
    """One server of one session: at most one runs at a time, and a call that finds it dead starts it anew."""

    def __init__(self, server: LanguageServer, language: Language, patience: Patience) -> None:
        self.server, self.language, self.patience = server, language, patience
        self.lock = asyncio.Lock()
        """Who holds it alone speaks with the server: what is open must not change under a question."""
        self.closed = False
        self._running: RunningServer | None = None

    @property
    def is_greeted(self) -> bool:
        """Did it get as far as to say what it can do?"""
        return self._running is not None and bool(self._running.capabilities)

    async def ensure_running(self, ctx: Context, program: str) -> RunningServer:
        """Call it with the lock held."""
        if self._running is not None and self._running.is_over:
            await self.drop()
        if self._running is None:
            self._running = await self._start(ctx, program)
        return self._running

    async def close(self) -> None:
        """For good: nobody needs it any more."""
        async with self.lock:
            self.closed = True
            running, self._running = self._running, None
            if running is not None:
                await running.shut_down()

    async def drop(self) -> str:
        """It is of no use any more, so it gets no farewell; what it said last."""
        running, self._running = self._running, None
        if running is None:
            return ""
        await running.stop()
        return running.child.last_words

    async def _start(self, ctx: Context, program: str) -> RunningServer:
        root = ctx.files.root
        # What is seen before it starts is what it reads by itself; what changes from here on it is told.
        seen, _ = await to_thread.run_sync(survey_files, ctx.files, self.language)
        argv = (program, *self.server.argv[1:])
        command = Command(argv, env=self.server.env, seconds=COMPUTING, read_only=True, apart=True)
        child = await ctx.processes.start(command)
        running = self._running = RunningServer(child, self.patience, self.server.ready)
        running.tasks.update({self.server.ready} - {""})
        folder = {"uri": uri_from_path(root, ""), "name": root.rpartition("/")[2] or "workspace"}
        running.conversation = LspConnection(child, folder, self.server.settings, running.handle_notification)
        running.mirror = OpenDocuments(root, self.language, running.conversation, seen)
        try:
            await self._greet(running, root, folder)
        except (ServerGone, ServerSilent, RequestDeclined):
            raise
        except BaseException:
            await self.drop()
            raise
        return running

    async def _greet(self, running: RunningServer, root: str, folder: Mapping[str, str]) -> None:
        greeting = {
            "processId": None,
            "clientInfo": {"name": "menugate"},
            "rootUri": folder["uri"],
            "rootPath": root,
            "workspaceFolders": [folder],
            "capabilities": {**CAPABILITIES, "general": {"positionEncodings": list(self.server.encodings)}},
            "initializationOptions": dict(self.server.options),
        }
        answer = await running.conversation.request("initialize", greeting, self.patience.start)
        running.capabilities = to_fields(to_fields(answer).get("capabilities"))
        chosen = to_text(running.capabilities.get("positionEncoding"))
        running.encoding = chosen if chosen in ENCODINGS else "utf-16"
        await running.conversation.notify("initialized", {})
