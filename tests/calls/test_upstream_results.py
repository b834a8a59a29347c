"""Does another server's result reach the client as it was sent, without secrets, and never longer than it can take?"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from mcp_server.calls.results import ResultFilter
from mcp_server.calls.upstreams import read_result
from mcp_server.guards.redaction import REDACTED, Redactor
from mcp_server.guards.spill import Spill
from mcp_server.model.results import Ending, Refusal, Relayed
from mcp_server.model.tools import Tool
from mcp_server.wire.translate import result_from_ending
from tests.config.samples import made

SECRET = "hunter2-hunter2"
CONTENT: list[dict[str, Any]] = [
    {"type": "text", "text": "first\x1b", "annotations": {"audience": ["user"], "priority": 0.5}},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "memo://a", "name": "a", "_meta": {"k": [1, None]}},
    {"type": "resource", "resource": {"uri": "memo://b", "text": "b\u200b", "mimeType": "text/plain"}},
    {"type": "resource", "resource": {"uri": "memo://c", "blob": "aGk="}},
    {"type": "text", "text": ""},
]
WHOLE: dict[str, Any] = {
    "content": CONTENT,
    "structuredContent": {"a": [1.5, {"b": None}]},
    "isError": True,
    "_meta": {"x/y": {"z": 1}},
}


async def show(result: dict[str, Any], folder: Path, tool: Tool | None = None, transport: str = "") -> Ending:
    (folder / "state").mkdir(mode=0o700)
    shown = ResultFilter(Redactor([SECRET]), Spill(folder / "state" / "spill"))
    return await shown.filter_ending(read_result("server", result), tool or made("server_tool"), transport)


@pytest.mark.anyio
async def test_everything_comes_out_as_it_was_sent(tmp_path: Path) -> None:
    sent = result_from_ending(await show(WHOLE, tmp_path))
    assert {key: sent[key] for key in WHOLE} == WHOLE
    assert json.dumps(sent["content"]) == json.dumps(CONTENT)


@pytest.mark.anyio
async def test_secrets_are_removed_everywhere(tmp_path: Path) -> None:
    result = {
        "content": [
            {"type": "text", "text": f"key {SECRET}"},
            {"type": "resource_link", "uri": f"memo://{SECRET}", "name": "a"},
            {"type": "resource", "resource": {"uri": "memo://b", "text": SECRET}},
        ],
        "structuredContent": {"a": [SECRET]},
        "_meta": {"b": SECRET},
    }
    shown = json.dumps(result_from_ending(await show(result, tmp_path)))
    assert SECRET not in shown and shown.count(REDACTED) == 5


@pytest.mark.anyio
async def test_a_long_text_goes_to_a_file(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "line\n" * 20_000}, {"type": "text", "text": "x" * 3_000}]
    shown = await show({"content": content}, tmp_path, made("server_tool", max_result_chars=5_000))
    assert len(shown.text) < 8_000 and shown.text.count("Continue with Read") == 2
    assert len(list((tmp_path / "state" / "spill").iterdir())) == 2


PICTURE = {"type": "image", "data": base64.b64encode(bytes(600_000)).decode(), "mimeType": "image/png"}
SOUND = {"type": "audio", "data": PICTURE["data"], "mimeType": "audio/x-own"}
BLOB = {"type": "resource", "resource": {"uri": "memo://c", "blob": PICTURE["data"], "mimeType": "application/pdf"}}


@pytest.mark.anyio
@pytest.mark.parametrize(("transport", "kept"), [("stdio", 3), ("", 3), ("http", 1), ("sse", 1)])
async def test_bytes_that_no_longer_fit_go_to_files(tmp_path: Path, transport: str, kept: int) -> None:
    """A client over HTTP takes no event above a megabyte."""
    shown = await show({"content": [PICTURE, SOUND, BLOB]}, tmp_path, transport=transport)
    assert isinstance(shown, Relayed)
    assert list(shown.blocks[:kept]) == [PICTURE, SOUND, BLOB][:kept]
    spilled = sorted((tmp_path / "state" / "spill").glob("*"))
    assert [path.suffix for path in spilled] == [".bin", ".pdf"][: 3 - kept]
    assert all(path.read_bytes() == bytes(600_000) and str(path) in repr(shown.blocks) for path in spilled)
    if kept == 1:
        assert shown.blocks[1]["type"] == "text"
        resource = shown.blocks[2]["resource"]
        assert resource["uri"] == "memo://c" and resource["mimeType"] == "text/plain" and "blob" not in resource
    assert len(json.dumps(shown.blocks)) < (1 << 20) or transport in ("stdio", "")


@pytest.mark.anyio
async def test_bytes_leave_room_for_the_rest(tmp_path: Path) -> None:
    words = {"type": "text", "text": "\u4e2d" * 100_000}
    tool = made("server_tool", max_result_chars=200_000)
    shown = await show({"content": [words, PICTURE]}, tmp_path, tool, transport="http")
    assert isinstance(shown, Relayed) and shown.blocks[0] == words and shown.blocks[1]["type"] == "text"


@pytest.mark.anyio
async def test_bytes_that_are_no_base64_are_kept_as_they_came(tmp_path: Path) -> None:
    await show({"content": [{**PICTURE, "data": "\u00e4" * 6_000_000}]}, tmp_path)
    (kept,) = (tmp_path / "state" / "spill").iterdir()
    assert kept.suffix == ".png" and kept.read_text() == "\u00e4" * 6_000_000


@pytest.mark.anyio
async def test_long_structured_content_does_not_come_back_beside_its_text(tmp_path: Path) -> None:
    data = {"rows": ["x" * 100] * 1_000}
    result = {"content": [{"type": "text", "text": json.dumps(data)}], "structuredContent": data}
    shown = await show(result, tmp_path)
    assert isinstance(shown, Relayed) and shown.data is None and not shown.failed


@pytest.mark.anyio
async def test_a_client_that_checks_structured_content_gets_it_or_a_failure(tmp_path: Path) -> None:
    tool = made("server_tool", result={"type": "object"})
    middle, huge = {"a": "x" * 100_000}, {"a": "x" * 300_000}
    shown = await show({"content": [], "structuredContent": middle}, tmp_path, tool)
    assert isinstance(shown, Relayed) and shown.data == middle
    (tmp_path / "more").mkdir()
    shown = await show({"content": [], "structuredContent": huge}, tmp_path / "more", tool)
    assert isinstance(shown, Relayed) and shown.data is None and shown.failed and "Continue with Read" in shown.text


@pytest.mark.parametrize(
    "result", [{"content": "text"}, {"content": [5]}, {"content": [{"text": "a"}]}, {"content": [], "_meta": [1]}]
)
def test_what_is_no_result_is_a_fault_of_the_server(result: dict[str, Any]) -> None:
    with pytest.raises(Refusal, match="not MCP"):
        read_result("server", result)


def test_structured_content_of_another_type_becomes_text() -> None:
    assert read_result("server", {"structuredContent": [1, 2]}).text == "[1, 2]"
