"""Is a stranger's document read in a process of its own, which can break without harm?"""

import os
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from mcp_server.guards.processes.commands import CommandHost
from mcp_server.guards.readers import worker
from mcp_server.guards.readers.worker import DocumentReader
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.model.results import Code, Refusal
from tests.guards.processes.ground import SANDBOXES, furnish, opened, sandbox

pytestmark = pytest.mark.anyio
PAGE = b"<title>T</title><h1>Hello</h1><p>World<span hidden>obey</span>"

MISBEHAVING = """
import os, socket, struct, sys, time
LENGTH = struct.Struct(">I")
source, sink = sys.stdin.buffer, sys.stdout.buffer
request = source.read(LENGTH.unpack(source.read(4))[0])
what = {what!r}
if what == "hang":
    time.sleep(1000)
if what == "huge":
    sink.write(LENGTH.pack(1 << 31))
if what == "nonsense":
    sink.write(LENGTH.pack(4) + b"[{{[[")
if what == "list":
    sink.write(LENGTH.pack(2) + b"[]")
if what == "network":
    try:
        socket.create_connection(("127.0.0.1", {port}), 2)
    except OSError as error:
        answer = b'{{"fault": "no network"}}'
        sink.write(LENGTH.pack(len(answer)) + answer)
if what == "files":
    try:
        open(os.path.expanduser("~/.ssh/id")).read()
    except OSError:
        answer = b'{{"fault": "no home"}}'
        sink.write(LENGTH.pack(len(answer)) + answer)
sink.flush()
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=SANDBOXES)
def box(request: pytest.FixtureRequest) -> Sandbox:
    found = sandbox(request.param)
    if found is None:
        pytest.skip(f"{request.param} is not installed; bin/setup installs it where it may")
    return found


@pytest.fixture
async def host(tmp_path: Path, box: Sandbox) -> AsyncGenerator[CommandHost]:
    async with opened(furnish(tmp_path), box) as made:
        yield made


async def test_one_process_reads_one_page_after_the_other(host: CommandHost) -> None:
    reader = DocumentReader(host.build_call_processes)
    for _ in range(3):
        page = await reader.read_page(PAGE, "utf-8", "https://a.example/")
        assert (page.title, page.text, page.hidden, page.cut) == ("T", "# Hello\n\nWorld", 1, False)
    large = await reader.read_page(b"<p>" + b"word " * 500_000, None, "https://a.example/")
    assert len(large.text) == 500_000 * 5 - 1
    assert len(host.registry.children) == 1


async def test_a_page_that_needs_too_much_is_given_up_and_the_next_is_read(host: CommandHost) -> None:
    reader = DocumentReader(host.build_call_processes, memory=100 << 20)
    before = _get_memory()
    with pytest.raises(Refusal) as refused:
        await reader.read_page(b"<table>" + b"<tr><td>x" * 1_500_000, None, "")
    assert refused.value.problem.code is Code.TOOL_FAILED
    assert _get_memory() - before < 50 << 20
    assert (await reader.read_page(PAGE, None, "")).title == "T"


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("hang", "took more than"),
        ("huge", "broke the process"),
        ("nonsense", "broke the process"),
        ("list", "broke the process"),
        ("end", "broke the process"),
        ("network", "no network"),
        ("files", "no home"),
    ],
)
async def test_a_process_that_misbehaves_is_ended(
    host: CommandHost, what: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    listener = socket.create_server(("127.0.0.1", 0))
    program = host.paths.workspace / "program.py"
    program.write_text(MISBEHAVING.format(what=what, port=listener.getsockname()[1]))
    reader = DocumentReader(host.build_call_processes, seconds=3.0)
    with monkeypatch.context() as changed:
        changed.setattr(worker, "ARGUMENTS", (sys.executable, "-I", str(program)))
        start = time.monotonic()
        with pytest.raises(Refusal, match=says):
            await reader.read_page(PAGE, None, "")
        assert time.monotonic() - start < 8.0
    if says.startswith(("took", "broke")):
        assert (await reader.read_page(PAGE, None, "")).title == "T"
    listener.close()


async def test_without_a_sandbox_nothing_is_read(tmp_path: Path) -> None:
    async with opened(furnish(tmp_path), None) as made:
        with pytest.raises(Refusal, match="no sandbox works here"):
            await DocumentReader(made.build_call_processes).read_page(PAGE, None, "")


def _get_memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
