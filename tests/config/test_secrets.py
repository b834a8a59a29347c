"""Does an entry get the secret that it names, and is a missing or unreadable one a fault of that entry alone?"""

from pathlib import Path

import pytest

from mcp_server.config.faults import ConfigFaults
from mcp_server.config.load import load_configuration
from mcp_server.model.upstreams import StdioTarget
from mcp_server.settings import Settings
from mcp_server.state.secrets import SecretStore
from tests.clients.secret_tool import write_program

VALUE = "canary-5up3r-secret"
TEXT = """\
mcpServers:
  github: {command: ./server, env: {GITHUB_TOKEN: "${secret:GITHUB_TOKEN}"}}
  other: {command: ./server}
"""


@pytest.fixture
def settings(tmp_path: Path, workspace: Path, home: Path) -> Settings:
    (workspace / "server").write_text("#!/bin/sh\n")
    (workspace / "server").chmod(0o755)
    config = tmp_path / "menugate.yaml"
    config.write_text(TEXT)
    return Settings(
        workspace=workspace,
        state=workspace / ".menugate",
        secrets=tmp_path / "keys",
        config=config,
        search_path=str(write_program(tmp_path / "bin")),
        keyring_variables=(("HOME", str(home)),),
    )


def read(settings: Settings) -> tuple[dict[str, str | None], list[str]]:
    """The value that each server gets, and what is wrong."""
    found = load_configuration(settings)
    assert not isinstance(found, ConfigFaults), str(found)
    upstreams = found.library.config.upstreams
    assert upstreams is not None
    targets = {mount.name: mount.target for mount in upstreams.mounts}
    values = {
        name: target.env.get("GITHUB_TOKEN") for name, target in targets.items() if isinstance(target, StdioTarget)
    }
    return values, [str(one.fault) for one in upstreams.faults]


def test_a_stored_secret_is_filled_in(settings: Settings) -> None:
    assert settings.secrets is not None
    SecretStore(settings.secrets).put("GITHUB_TOKEN", VALUE)
    assert read(settings) == ({"github": VALUE, "other": None}, [])
    SecretStore(settings.secrets).put("GITHUB_TOKEN", "only-for-this-folder", workspace=str(settings.workspace))
    assert read(settings)[0]["github"] == "only-for-this-folder"


def test_a_missing_one_leaves_out_its_server_alone(settings: Settings) -> None:
    assert settings.secrets is not None
    SecretStore(settings.secrets).put("GITHUB_TOKE", VALUE)
    values, (fault,) = read(settings)
    assert values == {"other": None}
    assert "menugate.yaml:2" in fault
    assert "there is no secret `GITHUB_TOKEN`; did you mean `GITHUB_TOKE`?" in fault
    assert "menugate secret set GITHUB_TOKEN" in fault


def test_a_locked_keyring_is_named(settings: Settings, home: Path) -> None:
    from mcp_server.config.secrets import open_secret_store

    store = open_secret_store(settings)
    assert store is not None
    assert store.put("GITHUB_TOKEN", VALUE).place == "keyring"
    assert read(settings) == ({"github": VALUE, "other": None}, [])
    (home / "mood").write_text("lock")
    values, (fault,) = read(settings)
    assert values == {"other": None}
    assert "needs the system keyring: it says: secret-tool: Cannot create an item in a locked collection" in fault
    assert VALUE not in fault
