"""Are modes proposed with their price, and written only as you accept them?"""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Type
from tests.upstreams.ground import SERVERS
from tests.yaml_text import load_yaml

TOOLS = [
    {"name": f"{word}_{thing}", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": word == "get"}}
    for word in ("get", "set")
    for thing in ("order", "price", "stock", "image", "page", "user", "tax")
]


@pytest.fixture
def shop(home: Path, place: Path, tmp_path: Path, menugate: Type) -> Path:
    """A server with fourteen approved tools, and one with two."""
    config = home / ".config" / "menugate" / "menugate.yaml"
    config.parent.mkdir(parents=True)
    servers: dict[str, object] = {}
    for name, tools in (("shop", TOOLS), ("clock", TOOLS[:2])):
        (tmp_path / f"{name}.json").write_text(json.dumps({"tools": tools}))
        servers[name] = {
            "command": sys.executable,
            "args": [str(SERVERS / "described.py"), str(tmp_path / f"{name}.json")],
        }
    config.write_text(f"# mine\nprofile: trusted\nmcpServers: {json.dumps(servers)}\n")
    for name in servers:
        digest = json.loads(menugate(f"upstreams approve {name} --json").out)["digest"]
        menugate(f"upstreams approve {name} --digest {digest}")
    return config


def test_modes_are_proposed_with_their_price(shop: Path, menugate: Type) -> None:
    before = shop.read_text()
    said = menugate("menus propose")
    assert said.code == 0, said.err
    for words in ("shop_reads", "shop_changes", "clock", "at most 10 tools", "Nothing was written"):
        assert words in said.out, said.out
    facts = json.loads(menugate("menus propose --json").out)
    by_name = {one["mode"]: one for one in facts["proposed"]}
    assert {name: len(one["tools"]) for name, one in by_name.items()} == {
        "shop_reads": 7,
        "shop_changes": 7,
        "clock": 2,
    }
    assert 0 < by_name["shop_reads"]["tokens"] < facts["now"]["shop"]
    assert facts["root"]["now"] > 0 < facts["root"]["proposed"]
    assert shop.read_text() == before and not (shop.parent / "menus").exists()


def test_only_what_you_accept_is_written(shop: Path, menugate: Type) -> None:
    said = menugate("menus propose shop_reads")
    assert said.code == 0, said.err
    left = {one["mode"]: len(one["tools"]) for one in json.loads(menugate("menus propose --json").out)["proposed"]}
    assert left == {"shop": 7, "clock": 2}, "the rest of the server is proposed again"
    (shop.parent / "menus" / "shop_reads.yaml").unlink()
    said = menugate("menus propose shop_reads shop_changes")
    assert said.code == 0, said.err
    assert sorted(path.name for path in (shop.parent / "menus").iterdir()) == ["shop_changes.yaml", "shop_reads.yaml"]
    assert load_yaml(shop.read_text())["menus"] == ["menus"] and shop.read_text().startswith("# mine\n")
    modes = {one["mode"]: one for one in json.loads(menugate("menus --json").out)["modes"]}
    assert (modes["shop_reads"]["tools"], modes["clock"]["tools"], "shop" in modes) == (7, 2, False)
    assert [one["mode"] for one in json.loads(menugate("menus propose --json").out)["proposed"]] == ["clock"]
    again = menugate("menus propose clock")
    assert again.code == 0 and len(list((shop.parent / "menus").iterdir())) == 3
    assert "nothing to propose" in menugate("menus propose").out


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("menus propose shop_read", 1, "did you mean `shop_reads`?"),
        ("menus propose zzz", 1, "shows those there are"),
        ("menus swe git", 2, "name one mode"),
    ],
)
def test_a_wrong_name_writes_nothing(line: str, code: int, words: str, shop: Path, menugate: Type) -> None:
    said = menugate(line)
    assert (said.code, words in said.err) == (code, True), said.err
    assert not (shop.parent / "menus").exists()


def test_a_file_that_is_there_is_not_replaced(shop: Path, menugate: Type) -> None:
    (shop.parent / "menus").mkdir()
    (shop.parent / "menus" / "shop_reads.yaml").write_text("mine")
    before = shop.read_text()
    said = menugate("menus propose shop_reads")
    assert (said.code, "Nothing was written" in said.err) == (1, True)
    assert (shop.parent / "menus" / "shop_reads.yaml").read_text() == "mine" and shop.read_text() == before
