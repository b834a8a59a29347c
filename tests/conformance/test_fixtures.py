"""Do the fixtures hold together, and does each do what the suite documents? Without the suite, which needs Node."""

import base64
import io
import wave
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from mcp_server.config.faults import FaultCollector
from mcp_server.config.menu_coverage import validate_tool_coverage
from mcp_server.config.menus import load_mode_drafts
from mcp_server.model.context import Client, Context
from mcp_server.model.results import Code, Done, Ending, Picture, Problem, Raw
from tests.conformance.contents import PNG, WAV
from tests.conformance.fixtures import FIXTURES, MODE
from tests.yaml_text import load_yaml

TOOLS = {tool.name: tool for tool in FIXTURES.tools}


@dataclass
class Friend:
    """A client that answers everything, and remembers what it was told."""

    able: frozenset[str] = frozenset({"elicitation", "sampling", "roots"})
    told: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    name: str = "friend"

    def can(self, what: str) -> bool:
        return what in self.able

    async def request(self, key: str, method: str, params: Mapping[str, Any], note: str = "") -> Mapping[str, Any]:
        return (await self.request_all({key: (method, params)}))[key]

    async def request_all(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> Mapping[str, Mapping[str, Any]]:
        self.told.append(("asked", *(f"{key}:{method}" for key, (method, _) in questions.items())))
        return {key: self._answer(method) for key, (method, _) in questions.items()}

    def _answer(self, method: str) -> Mapping[str, Any]:
        if method == "sampling/createMessage":
            return {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
        if method == "roots/list":
            return {"roots": [{"uri": "file:///here"}]}
        return {"action": "accept", "content": {"name": "Alice", "context": "a garden"}}

    async def announce_change(self, what: str, uri: str = "") -> None:
        self.told.append(("changed", what))

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        self.told.append(("log", level))

    async def end_elicitation(self, elicitation: str) -> None:
        self.told.append(("ended", elicitation))


@dataclass
class Room:
    """As much of a context as the fixtures look at."""

    client: Friend = field(default_factory=Friend)

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        self.client.told.append(("progress", done, total))


async def run(name: str, room: Room, arguments: Mapping[str, Any] | None = None) -> Ending:
    return await TOOLS[name].run(cast("Context", room), arguments or {})


def test_the_menu_holds_every_tool_of_the_pack_once() -> None:
    text = Path(FIXTURES.menus[0], f"{MODE}.yaml").read_text()
    listed = load_yaml(text)["tools"]
    assert sorted(listed) == sorted(TOOLS)
    assert len(listed) == len(FIXTURES.tools)


def test_names_longer_than_hosts_allow_pass_on_the_word_of_their_pack_alone() -> None:
    drafts = load_mode_drafts([Path(folder) for folder in FIXTURES.menus], FaultCollector())
    assert validate_tool_coverage(TOOLS, drafts, FIXTURES.longest_name) == []
    refused = validate_tool_coverage(TOOLS, drafts)
    assert sorted(len(fault.key) for fault in refused) == [41, 42]


def test_the_picture_and_the_sound_are_whole() -> None:
    start = PNG.index(b"IDAT") + 4
    assert zlib.decompress(PNG[start : PNG.index(b"IEND") - 8]) == b"\x00\xff\x00\x00"
    with wave.open(io.BytesIO(WAV)) as sound:
        assert (sound.getnchannels(), sound.getframerate(), sound.getnframes()) == (1, 8000, 0)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("test_simple_text", []),
        ("test_image_content", ["image/png"]),
        ("test_audio_content", ["audio"]),
        ("test_embedded_resource", ["resource"]),
        ("test_multiple_content_types", ["image/png", "resource"]),
    ],
)
async def test_content_comes_in_the_kinds_the_suite_looks_for(name: str, kinds: list[str]) -> None:
    done = await run(name, Room())
    assert isinstance(done, Done)
    assert done.text
    assert [block.media_type if isinstance(block, Picture) else block.block["type"] for block in done.blocks] == kinds
    for block in done.blocks:
        if isinstance(block, Raw) and "data" in block.block:
            assert base64.b64decode(block.block["data"]) == WAV


@pytest.mark.anyio
async def test_the_failing_tool_fails_by_value() -> None:
    ended = await run("test_error_handling", Room())
    assert isinstance(ended, Problem)
    assert ended.code is Code.TOOL_FAILED


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("test_tool_with_logging", [("log", "info")] * 3),
        ("test_tool_with_progress", [("progress", 0, 100), ("progress", 50, 100), ("progress", 100, 100)]),
        ("test_trigger_tool_change", [("changed", "tools")]),
        ("test_trigger_prompt_change", [("changed", "prompts")]),
        ("test_missing_capability", [("asked", "answer:sampling/createMessage")]),
        ("test_input_required_result_elicitation", [("asked", "user_name:elicitation/create")]),
        ("test_input_required_result_sampling", [("asked", "capital_question:sampling/createMessage")]),
        ("test_input_required_result_list_roots", [("asked", "client_roots:roots/list")]),
        (
            "test_input_required_result_multi_round",
            [("asked", "step1:elicitation/create"), ("asked", "step2:elicitation/create")],
        ),
        (
            "test_input_required_result_multiple_inputs",
            [("asked", "user_name:elicitation/create", "greeting:sampling/createMessage", "client_roots:roots/list")],
        ),
    ],
)
async def test_what_is_told_and_asked_is_what_the_suite_documents(name: str, told: list[tuple[Any, ...]]) -> None:
    room = Room()
    assert isinstance(await run(name, room), Done)
    assert room.client.told == told


@pytest.mark.anyio
async def test_only_what_a_client_can_do_is_asked_of_it() -> None:
    room = Room(Friend(able=frozenset({"sampling"})))
    assert isinstance(await run("test_input_required_result_capabilities", room), Done)
    assert room.client.told == [("asked", "greeting:sampling/createMessage")]
    assert isinstance(await run("test_elicitation", room, {"message": "?"}), Problem)
    assert isinstance(await run("test_sampling", Room(Friend(able=frozenset())), {"prompt": "?"}), Problem)


@pytest.mark.anyio
async def test_prompts_say_what_they_were_given() -> None:
    prompts = {prompt.name: prompt for prompt in FIXTURES.prompts}
    said = prompts["test_prompt_with_arguments"].render({"arg1": "hello", "arg2": "world"})
    assert said[0]["content"]["text"] == "Prompt with arguments: arg1='hello', arg2='world'"
    asking = prompts["test_input_required_result_prompt"]
    assert asking.ask is not None
    answers = await asking.ask(cast("Client", Friend()), {})
    assert "a garden" in asking.render(answers)[0]["content"]["text"]


def test_resources_and_templates_read_as_the_suite_documents() -> None:
    read = {resource.uri: resource.read() for resource in FIXTURES.resources}
    assert read["test://static-text"] == "This is the content of the static text resource."
    assert read["test://static-binary"] == PNG
    assert '"123"' in str(FIXTURES.templates[0].read({"id": "123"}))
