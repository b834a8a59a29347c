"""Does the bench measure real servers, and notice when what it measures is broken? Against the bare server."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from bench import catalogue, load, messages, sides
from bench.pipes import ServerFault, ServerPipe
from bench.processes import find_free_port, list_family, measure_memory, run_listening
from bench.sockets import HttpConnection, parse_length


def bare(folder: Path, count: int = 3) -> list[str]:
    tools = folder / "tools.json"
    tools.write_text(json.dumps(catalogue.build_listed_tools(count)))
    return [sys.executable, "-m", "bench.bare", "--tools", str(tools)]


def test_a_pipe_times_both_eras_and_weighs_the_process(tmp_path: Path) -> None:
    for modern in (False, True):
        with ServerPipe(bare(tmp_path), tmp_path / "log") as pipe:
            if not modern:
                pipe.open()
            took, reply = pipe.ask(messages.build_request(pipe.next_number(), "tools/list", modern=modern))
            assert 0 < took < pipe.age()
            assert [tool["name"] for tool in reply["result"]["tools"]] == catalogue.list_names(3)
            pipe.ask(messages.build_call(pipe.next_number(), catalogue.NOTHING, {"text": "x"}, modern=modern))
            assert measure_memory(pipe.process.pid) > 10e6
            assert pipe.process.pid in list_family(pipe.process.pid)
            with pytest.raises(ServerFault, match="answered with an error"):
                pipe.ask(messages.build_request(pipe.next_number(), "no/such/method", modern=modern))
        assert pipe.process.returncode is not None


def test_a_server_that_goes_away_is_told_with_its_log(tmp_path: Path) -> None:
    with (
        ServerPipe([sys.executable, "-c", "pass"], tmp_path / "log") as pipe,
        pytest.raises(ServerFault, match="the server exited"),
    ):
        pipe.open()


def test_a_server_that_does_not_come_up_is_told_with_its_words(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "raise SystemExit('no such house')"]
    address = ("127.0.0.1", find_free_port())
    with pytest.raises(RuntimeError, match="no such house"), run_listening(argv, address, tmp_path / "log"):
        pass


def test_lines_and_storms_are_answered_over_http(tmp_path: Path) -> None:
    address = ("127.0.0.1", find_free_port())
    argv = [*bare(tmp_path), "--http", f"{address[0]}:{address[1]}"]
    with run_listening(argv, address, tmp_path / "log"):
        line = HttpConnection(address)
        took, reply = line.ask(messages.build_request(1, "tools/list", modern=True))
        assert took > 0
        assert len(reply["result"]["tools"]) == 3
        with pytest.raises(ServerFault, match="404"):
            line.ask(messages.build_request(2, "no/such/method", modern=True))
        line.close()
        good = messages.build_post(address, messages.build_call(3, catalogue.NOTHING, {"text": "x"}, modern=True))
        tally = asyncio.run(load.run_load(address, good, 5, 0.2))
        assert tally.waits
        assert (tally.refused, tally.lost) == (0, 0)
        refused = asyncio.run(load.run_load(address, good.replace(b"Mcp-Name: do", b"Mcp-Name: no"), 2, 0.1))
        assert refused.refused
        assert not refused.waits


def test_a_reply_without_a_length_is_not_mistaken_for_an_empty_one() -> None:
    assert parse_length(b"HTTP/1.1 200 OK\r\ncontent-length: 12") == 12
    with pytest.raises(ServerFault, match="no length"):
        parse_length(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked")


@pytest.mark.parametrize("count", [1, 30, 494])
def test_the_catalogue_and_its_menu_hold_the_same_distinct_names(count: int) -> None:
    names = catalogue.list_names(count)
    assert len(set(names)) == count
    assert [tool.name for tool in catalogue.build_tools(count)] == names
    assert [entry[4:] for entry in catalogue.render_menu(count).splitlines() if entry.startswith("  - ")] == names
    assert max(map(len, names)) <= 40


def test_more_tools_than_there_are_words_for_are_refused() -> None:
    with pytest.raises(ValueError, match="has names for"):
        catalogue.list_names(600)


def test_both_sides_are_started_by_one_shape_of_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "WORK", tmp_path)
    ours = sides.OURS.argv(36, ("127.0.0.1", 1))
    assert ours[ours.index("--count") + 1] == "30"
    assert ours[-3:] == ["--http", "127.0.0.1:1", "--no-auth"]
    assert sides.BARE.argv(36)[-1] == str(tmp_path / "tools-36.json")
