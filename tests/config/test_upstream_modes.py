"""Does every server that no menu names get a mode that can be entered?"""

import pytest

from mcp_server.config.upstream_modes import build_server_modes
from mcp_server.model.menus import Menus
from mcp_server.model.upstreams import Mount, StdioTarget
from mcp_server.policy.router import Route, route
from tests.config.samples import opened

SHIPPED = opened().menus


def modes(*names: str) -> list[tuple[str, str]]:
    mounts = [Mount(name, name.lower(), StdioTarget(("x",))) for name in names]
    return [(mode.name, mode.title) for mode in build_server_modes(mounts, SHIPPED, {})]


@pytest.mark.parametrize(
    ("server", "mode"),
    [
        ("github", "github"),
        ("My-Server", "my_server"),
        ("git", "git_server"),
        ("2nd", "server_2nd"),
        ("a.b_c", "a_b_c"),
    ],
)
def test_a_mode_has_its_servers_name_unless_one_of_ours_has_it(server: str, mode: str) -> None:
    assert [name for name, _ in modes(server)] == [mode]


def test_every_name_and_title_is_another() -> None:
    made = modes("a-b", "a.b", "A_B", "git", "git_server")
    assert len({name for name, _ in made}) == 5 and len({title for _, title in made}) == 5


def test_each_can_be_entered_by_its_name() -> None:
    mounts = [Mount(name, name, StdioTarget(("x",))) for name in ("git", "search", "notion")]
    more = build_server_modes(mounts, SHIPPED, {})
    menus = Menus((*SHIPPED.modes, *more))
    for mode in more:
        found = route(mode.name, menus)
        assert isinstance(found, Route) and found.mode == mode.name


def test_it_says_why_a_server_has_no_tools() -> None:
    mounts = [Mount(name, name, StdioTarget(("x",))) for name in ("notion", "linear")]
    more = build_server_modes(mounts, SHIPPED, {"linear": "Nobody approved it."})
    assert [mode.offers for mode in more] == ["These are the tools of notion.", "Nobody approved it."]
