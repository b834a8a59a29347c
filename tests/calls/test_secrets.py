"""Does a running process mask every stored value, whoever stored it and whenever?"""

import logging
from pathlib import Path

import pytest

from mcp_server.calls.secrets import KnownSecrets, load_secret_values
from mcp_server.config.secrets import build_secret_finder, open_secret_store
from mcp_server.guards.redaction import Redactor
from mcp_server.model.secrets import SecretUnavailable
from mcp_server.settings import Settings
from mcp_server.state.secrets import SecretStore
from tests.clients.secret_tool import write_program

VALUE = "canary-5up3r-secret"
pytestmark = pytest.mark.anyio


@pytest.fixture
def settings(tmp_path: Path, workspace: Path, home: Path) -> Settings:
    return Settings(
        workspace=workspace,
        state=workspace / ".menugate",
        secrets=tmp_path / "keys",
        search_path=str(write_program(tmp_path / "bin")),
        keyring_variables=(("HOME", str(home)),),
        secret_values=("a-value-of-the-environment",),
    )


def store_of(settings: Settings) -> SecretStore:
    """Another process's."""
    assert settings.secrets is not None
    return SecretStore(settings.secrets)


async def test_what_another_process_stores_is_masked_from_then_on(settings: Settings) -> None:
    redactor = Redactor()
    known = KnownSecrets(settings, redactor.learn)
    await known.catch_up()
    assert redactor.redact(VALUE) == VALUE
    store_of(settings).put("TOKEN", VALUE)
    await known.catch_up()
    assert redactor.redact(f"it is {VALUE}!") == "it is [redacted]!"
    store_of(settings).put("TOKEN", "the-value-after-it")
    await known.catch_up()
    store_of(settings).remove("TOKEN")
    await known.catch_up()
    assert redactor.redact(f"{VALUE} the-value-after-it") == "[redacted] [redacted]", "an old one may still be in use"


async def test_one_for_another_folder_is_masked_here_too(settings: Settings) -> None:
    redactor = Redactor()
    store_of(settings).put("TOKEN", VALUE, workspace="/elsewhere")
    known = KnownSecrets(settings, redactor.learn)
    await known.catch_up()
    assert VALUE not in redactor.redact(VALUE)
    with pytest.raises(SecretUnavailable, match="there is no secret `TOKEN`"):
        build_secret_finder(settings)("TOKEN")


async def test_what_cannot_be_read_is_warned_about_once(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    store = store_of(settings)
    store.put("TOKEN", VALUE)
    next(iter(store.folder.iterdir())).chmod(0o644)
    known = KnownSecrets(settings, Redactor().learn)
    with caplog.at_level(logging.WARNING, "menugate"):
        await known.catch_up()
        store.put("OTHER", VALUE)
        await known.catch_up()
        store.folder.chmod(0o755)
        await known.catch_up()
        with pytest.raises(SecretUnavailable, match="Other accounts may use"):
            build_secret_finder(settings)("OTHER")
    assert [record.message.partition(": ")[0] for record in caplog.records] == [
        "a stored secret cannot be read, so it is not masked either"
    ] * 2
    assert VALUE not in caplog.text


async def test_nothing_is_looked_for_where_nothing_can_be_kept(settings: Settings) -> None:
    from msgspec.structs import replace

    nowhere = replace(settings, secrets=None)
    known = KnownSecrets(nowhere, Redactor().learn)
    await known.catch_up()
    with pytest.raises(SecretUnavailable, match="no folder"):
        build_secret_finder(nowhere)("TOKEN")
    assert load_secret_values(nowhere) == settings.secret_values


async def test_a_command_masks_them_as_well(settings: Settings) -> None:
    assert load_secret_values(settings) == settings.secret_values
    store_of(settings).put("TOKEN", VALUE)
    assert load_secret_values(settings) == (*settings.secret_values, VALUE)


async def test_a_value_behind_the_keyring_is_masked_too(settings: Settings, home: Path) -> None:
    store = open_secret_store(settings)
    assert store is not None
    assert store.put("TOKEN", VALUE).place == "keyring"
    redactor = Redactor()
    await KnownSecrets(settings, redactor.learn).catch_up()
    assert VALUE not in redactor.redact(VALUE)
    assert VALUE not in (home / "seen").read_text()
