"""Does an option win over a variable, and that over what is usual, and is what cannot be meant refused?"""

from pathlib import Path

import pytest

from mcp_server.model.menus import Listing
from mcp_server.model.posture import Profile
from mcp_server.settings import (
    STATE_FOLDER,
    Settings,
    SettingsError,
    is_loopback,
    may_use_colours,
    read_columns,
    read_settings,
    read_variable,
)
from tests.clients.served import environment


def read(workspace: Path, home: Path, flags: dict[str, str | bool | None] | None = None, **variables: str) -> Settings:
    return read_settings({"workspace": str(workspace), **(flags or {})}, {**environment(home), **variables})


def test_options_win_over_variables_and_those_over_what_is_usual(workspace: Path, home: Path) -> None:
    assert read(workspace, home).profile is None
    assert read(workspace, home, MENUGATE_PROFILE="trusted").profile is Profile.TRUSTED
    assert read(workspace, home, {"profile": "normal"}, MENUGATE_PROFILE="trusted").profile is Profile.NORMAL
    assert read(workspace, home, {"listing": "flat"}).listing is Listing.FLAT
    assert read(workspace, home, {"listing": "auto"}).listing is None


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"workspace": "/nowhere/at/all"}, "--workspace"),
        ({"config": "/nowhere/menugate.yaml"}, "--config"),
        ({"http": "nonsense"}, "HOST:PORT"),
        ({"http": "127.0.0.1:99999"}, "HOST:PORT"),
        ({"profile": "superuser"}, "superuser"),
        ({"http": "0.0.0.0:80", "no_auth": True}, "--no-auth"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_write(
    flags: dict[str, str | bool | None], named: str, workspace: Path, home: Path
) -> None:
    with pytest.raises(SettingsError) as refused:
        read(workspace, home, flags)
    assert named in str(refused.value)


def test_keys_in_the_workspace_are_refused(workspace: Path, home: Path) -> None:
    with pytest.raises(SettingsError):
        read(workspace, home, MENUGATE_STATE_HOME=str(workspace / "keys"))


def test_what_is_ours_is_out_of_every_tools_reach(workspace: Path, home: Path) -> None:
    settings = read(workspace, home)
    assert settings.state == workspace / STATE_FOLDER
    assert settings.state in settings.protected_inside_workspace
    assert settings.secrets in settings.protected_places
    assert settings.database.parent == settings.state
    assert settings.url == f"sqlite:///{settings.database}"


def test_secrets_of_the_environment_are_known_by_their_names(workspace: Path, home: Path) -> None:
    settings = read(workspace, home, MY_API_KEY="a-long-secret", SHORT_TOKEN="x", PLAIN="not-a-secret-at-all")
    assert settings.secret_values == ("a-long-secret",)
    names = dict(settings.variables)
    assert "MY_API_KEY" not in names
    assert names["HOME"] == str(home)


def test_addresses_and_colours_and_columns() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "example.org")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    assert may_use_colours({})
    assert not may_use_colours({"NO_COLOR": "1"})
    assert not may_use_colours({"TERM": "dumb"})
    assert [read_columns({"COLUMNS": one}) for one in ("80", "", "wide", "-1", "999999", "٣")] == [80, 0, 0, 0, 0, 0]
    assert read_variable("KEY", {"KEY": " x\n"}) == "x"
    assert read_variable("KEY", {}) == ""
