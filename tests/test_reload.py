"""Does a change to the files wait for slow readers without holding anybody up, and is nothing lost meanwhile?"""

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from mcp_server import reload
from mcp_server.config.load import Configuration
from mcp_server.config.reload import RenewedConfiguration, reload_configuration
from mcp_server.settings import Settings
from tests.clients.within import house

pytestmark = pytest.mark.anyio


class SlowKeyring:
    """Stands for a secret in a keyring that takes its time."""

    def __init__(self) -> None:
        self.asked, self.answers = threading.Event(), threading.Event()
        self.reads = 0

    def reload(self, held: Configuration, settings: Settings, settled: bool) -> RenewedConfiguration:
        self.reads += 1
        self.asked.set()
        assert self.answers.wait(30), "the event loop is blocked"
        return reload_configuration(held, settings, settled)


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> SlowKeyring:
    slow = SlowKeyring()
    monkeypatch.setattr(reload, "reload_configuration", slow.reload)
    return slow


def make_folders(folder: Path) -> tuple[Path, Path, Path]:
    for name in ("work", "home"):
        (folder / name).mkdir()
    config = folder / "config.yaml"
    config.write_text("rules: {deny: [Write]}\n")
    return folder / "work", folder / "home", config


def list_rules(one: Any) -> list[str]:
    return [rule.text for rule in one.core.current_policy.policy.rules.every]


async def test_others_go_on_while_a_secret_is_read(tmp_path: Path, keyring: SlowKeyring) -> None:
    work, home, config = make_folders(tmp_path)
    async with house(work, home, config=str(config)) as one:
        config.write_text("rules: {deny: [Edit]}\n")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.reload.renew)
            with anyio.fail_after(10):
                while not keyring.asked.is_set():
                    await anyio.sleep(0.01)
            for _ in range(20):
                await anyio.sleep(0)  # the loop runs
            assert list_rules(one) == ["Write"], "a decision waits"
            keyring.answers.set()
        assert "Edit" in list_rules(one)


async def test_what_changed_while_the_files_were_read_is_kept(tmp_path: Path, keyring: SlowKeyring) -> None:
    work, home, config = make_folders(tmp_path)
    async with house(work, home, config=str(config)) as one:
        config.write_text("rules: {deny: [Edit]}\n")
        reads = 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.reload.renew)
            with anyio.fail_after(10):
                while not keyring.asked.is_set():
                    await anyio.sleep(0.01)
            # As when a server says what it offers.
            one.reload.held = replace(one.reload.held, trusted=one.reload.held.trusted)
            reads = keyring.reads
            keyring.answers.set()
        assert keyring.reads > reads and "Edit" in list_rules(one)


async def test_a_call_that_is_cancelled_leaves_the_change_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, home, config = make_folders(tmp_path)
    async with house(work, home, config=str(config)) as one:
        config.write_text("rules: {deny: [Edit]}\n")
        with anyio.CancelScope() as scope, monkeypatch.context() as patch:

            async def cancel() -> None:
                scope.cancel()

            patch.setattr(one.reload.secrets, "catch_up", cancel)
            await one.reload.renew()
        await one.reload.renew()
        assert "Edit" in list_rules(one)
