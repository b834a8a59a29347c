"""Is what is in force after an edit the new file, or the last valid version of it?"""

from pathlib import Path

import pytest

from mcp_server.config.load import Configuration, load_configuration
from mcp_server.config.reload import list_sources, reload_configuration
from mcp_server.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "menugate.yaml").write_text("rules: {deny: [Write]}\n")
    return Settings(
        workspace=tmp_path, state=tmp_path / ".menugate", secrets=tmp_path / "keys", config=tmp_path / "menugate.yaml"
    )


@pytest.fixture
def current(settings: Settings) -> Configuration:
    loaded = load_configuration(settings, bare=True)
    assert isinstance(loaded, Configuration)
    return loaded


WRITTEN = {
    "rules: {deny: [Edit]}\n": ("Edit", ""),
    "rules: {deny: [": ("Write", "menugate.yaml:2"),
    "": ("Write", "the file is empty"),
    "rules: {deny: [Edit]}\nmcpServers: {a: {command: no-such-program-at-all}}\n": ("Edit", ""),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_wrong_file_keeps_its_last_valid_version(text: str, settings: Settings, current: Configuration) -> None:
    assert settings.config is not None
    settings.config.write_text(text)
    renewed = reload_configuration(current, settings)
    rule, fault = WRITTEN[text]
    assert [one.text for one in renewed.configuration.library.config.rules] == [rule]
    assert fault in renewed.fault and bool(fault) == bool(renewed.fault)


def test_a_new_server_makes_another_version(settings: Settings, current: Configuration) -> None:
    assert list_sources(reload_configuration(current, settings).configuration) == list_sources(current)
    assert settings.config is not None
    settings.config.write_text("rules: {deny: [Write]}\nmcpServers: {a: {url: 'http://127.0.0.1:9/mcp'}}\n")
    half = reload_configuration(current, settings, settled=False).configuration
    assert half.mounted is None or not half.mounted.mounts, "it may still be being written"
    whole = reload_configuration(half, settings).configuration
    assert whole.mounted is not None and [mount.name for mount in whole.mounted.mounts] == ["a"]
    assert list_sources(whole) != list_sources(half)
