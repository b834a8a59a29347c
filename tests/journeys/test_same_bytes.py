"""Is the list that must not change the same to the byte, and does it say what hosts go by?"""

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.config.faults import ConfigFaults
from mcp_server.config.load import load_configuration
from mcp_server.model.menus import CARRIERS, META_TOOLS, Menus, Mode
from mcp_server.settings import read_settings
from mcp_server.wire.instructions import format_endpoint_instructions, format_mode_words
from mcp_server.wire.translate import describe_tool
from tests.clients.clients import MODERN
from tests.clients.pipe import pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import Served, environment, served
from tests.config.samples import mode_text, opened
from tests.sizes import scale

ROUNDS = scale(100)
HINTS = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bytes")
    for name in ("work", "home"):
        (folder / name).mkdir()
    return folder


@pytest.fixture(scope="module")
def here(place: Path) -> Generator[Served]:
    with served(place / "work", place / "home") as one:
        yield one


def list_bytes(one: RawClient) -> bytes:
    """The answer to `tools/list` without its id, which is the client's."""
    _, stream = one.send("tools/list")
    body = stream.answer.read()
    stream.close()
    return body.partition(b'"result":')[2]


@pytest.mark.heavy
def test_over_modern_http_a_hundred_rounds_a_second_process_and_a_restart_change_no_byte(
    place: Path, here: Served
) -> None:
    with raw(here, era=MODERN) as one, raw(here, era=MODERN, name="") as nobody:
        first = list_bytes(one)
        assert [tool["name"] for tool in tools(first)] == [*META_TOOLS, *CARRIERS]
        for _ in range(ROUNDS):
            menu = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
            assert list_bytes(one) == first
            assert not one.call("menu_exit", menu=menu)["isError"]
            assert list_bytes(one) == first
        assert list_bytes(nobody) == first
    for listing in ("auto", "masked", "carried", "stable"):
        with served(place / "work", place / "home", "--listing", listing) as again, raw(again, era=MODERN) as one:
            assert list_bytes(one) == first


def tools(listed: bytes) -> list[dict[str, Any]]:
    return json.loads(listed.removesuffix(b"}"))["tools"]


@pytest.mark.parametrize("path", ["", "/swe", "/data"])
def test_a_modern_list_says_how_long_it_may_be_kept(here: Served, path: str) -> None:
    with raw(here, era=MODERN, path=path) as one:
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            result = one.request(method)["result"]
            assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (0, "private", "complete")


@pytest.mark.parametrize("era", ["legacy", MODERN])
@pytest.mark.parametrize("path", ["", "/swe", "/data"])
def test_every_tool_says_what_it_does_to_the_world(here: Served, era: str, path: str) -> None:
    with raw(here, era=era, path=path, name="mcp") as one:
        for tool in one.request("tools/list")["result"]["tools"]:
            assert set(tool["annotations"]) >= HINTS, tool["name"]
            assert all(isinstance(tool["annotations"][hint], bool) for hint in HINTS)
            assert len(tool["description"].encode()) <= 1024
            assert tool["title"]
            always = tool.get("_meta", {}).get("anthropic/alwaysLoad")
            assert always is (True if tool["name"] in (*META_TOOLS, *CARRIERS) else None)


def test_over_a_pipe_too_a_legacy_client_is_told_that_lists_change(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        assert one.hello()["result"]["capabilities"]["tools"]["listChanged"] is True


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01"])
def test_every_revision_is_greeted_with_what_the_model_has_to_know(here: Served, version: str) -> None:
    with raw(here) as one:
        one.session = None
        about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        hello = one.request("initialize", about)["result"]
        assert hello["protocolVersion"] == (version if version > "2000" else "2025-11-25")
        assert hello["capabilities"]["tools"]["listChanged"] is True
        assert "menu_enter" in hello["instructions"]
        with raw(here, era=MODERN) as modern:
            assert modern.request("server/discover")["result"]["instructions"] == hello["instructions"]


# What a host shows of it.


def words(home: Path, *menus: Path) -> tuple[str, str, list[str], list[str]]:
    """The instructions, what `menu_enter` says, and of each mode its name and the words a model would look for."""
    work = home / "work"
    work.mkdir(exist_ok=True)
    found = load_configuration(
        read_settings({"workspace": str(work), "menus": ":".join(map(str, menus))}, environment(home)), bare=True
    )
    assert not isinstance(found, ConfigFaults), str(found)
    entering = describe_tool(found.policy.tools["menu_enter"], found.policy.menus)
    modes = list(found.policy.menus)
    return (
        format_endpoint_instructions(found, None),
        entering,
        [mode.name for mode in modes],
        [mode.triggers[0] for mode in modes],
    )


def test_what_hosts_cut_off_stands_behind_what_a_model_looks_for(home: Path) -> None:
    said, entering, names, triggers = words(home)
    assert len(said.encode()) <= 2048
    for word in (*names, *triggers):
        assert word in said[:240], word
        assert word in entering[:150], word


PLANNED = {
    "library": "[docs, documentation, books]",
    "browser": "[web page, click, screenshot]",
    "search": "[web, internet, news]",
    "git": "[commit, branch, pull request]",
    "deploy": "[ship, release]",
    "ai": "[ask, todo, second opinion]",
    "integrations": "[mcp, secrets]",
}


def test_nine_modes_too_are_found_by_what_is_shown_of_them(home: Path, tmp_path: Path) -> None:
    shipped = {mode.name for mode in opened().menus}
    for number, (name, triggers) in enumerate(PLANNED.items()):
        if name in shipped:
            continue
        text = mode_text(name=name, title=f"Mode {number}", triggers=triggers, when=f"to do what {name} is good for")
        (tmp_path / f"{name}.yaml").write_text(text + f"order: {100 + number}\n")
    said, entering, names, triggers = words(home, tmp_path)
    assert set(names) == {*shipped, *PLANNED}
    assert len(said.encode()) <= 2048
    assert len(entering.encode()) <= 1024
    for word in (*names, *triggers):
        assert word in said[:240], word
    for name in names:
        assert name in entering[:150], name


@given(
    st.lists(st.lists(st.text("abcdefgh", min_size=1, max_size=12), max_size=5, unique=True), min_size=1, max_size=14)
)
def test_words_are_left_out_before_names_and_from_the_end(triggers: list[list[str]]) -> None:
    menus = Menus(tuple(mode(f"mode_{number}", words) for number, words in enumerate(triggers)))
    names = ", ".join(one.name for one in menus)
    for most in (0, 100, 190, 10_000):
        said = format_mode_words(menus, most)
        assert len(said) <= max(most, len(names) + 1)
        for one in menus:
            shown = re.search(rf"\b{one.name}(?: \(([^)]*)\))?[,.]", said)
            assert shown is not None
            kept = shown[1].split(", ") if shown[1] else []
            assert kept == list(one.triggers[: len(kept)])
            assert most < 10_000 or kept == list(one.triggers)


def mode(name: str, triggers: list[str]) -> Mode:
    return Mode(name, name, "role", "goal", "offers", "when", "remember", ("grep",), tuple(triggers))
