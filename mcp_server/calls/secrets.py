"""Which stored secrets does this process mask? Every one, whoever stores it and whenever."""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread
from msgspec import Struct

from mcp_server.config.secrets import open_secret_store
from mcp_server.model.results import Refusal
from mcp_server.settings import read_variable

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.model.secrets import SecretEntry
    from mcp_server.model.sessions import Session
    from mcp_server.settings import Settings
    from mcp_server.state.secrets import SecretStore

log = logging.getLogger("menugate")
STILL_NS = 150_000_000
"""A folder that changed so recently may change again within the same tick of its file system's clock."""


@dataclass
class KnownSecrets:
    """The stored secrets, as a running server knows them: masked in whatever it shows."""

    settings: "Settings"
    learn: Callable[[Iterable[str]], None]
    """Adds values to those that are never shown."""
    _stamp: tuple[int, int] | None = None
    _faults: set[str] = field(default_factory=set[str])

    @cached_property
    def folder(self) -> Path | None:
        """Where every change can be noticed."""
        return self.settings.secrets and self.settings.secrets / "secrets"

    @cached_property
    def _store(self) -> "SecretStore | None":
        return open_secret_store(self.settings)

    async def catch_up(self) -> None:
        """Learn the values that were stored since."""
        if self.folder is None or not self.folder.is_dir() or self._store is None:
            return
        stamp = self._store.get_stamp()
        if stamp is None or stamp == self._stamp:
            return
        # A keyring may take seconds, and other sessions must not wait for it.
        await to_thread.run_sync(self._learn_all)
        self._stamp = stamp if time.time_ns() - stamp[0] > STILL_NS else None

    def _learn_all(self) -> None:
        assert self._store is not None
        try:
            loaded = self._store.load_values()
        except Refusal as refused:
            self._warn(refused.problem.message)
            return
        self.learn(loaded.values)
        for fault in loaded.faults:
            self._warn(fault)

    def _warn(self, fault: str) -> None:
        if fault not in self._faults:
            self._faults.add(fault)
            log.warning("a stored secret cannot be read, so it is not masked either: %s", fault)


class UsableSecrets(Struct, frozen=True):
    """The secrets that servers of this workspace could use. Nobody but the account's owner learns their names."""

    settings: "Settings"
    session: "Session"

    def list_entries(self) -> "tuple[list[SecretEntry], int]":
        store = open_secret_store(self.settings) if self.session.principal == self.settings.person else None
        if store is None:
            return [], 0
        entries, faults = store.list_entries()
        here = str(self.settings.workspace)
        return [entry for entry in entries if entry.workspace in ("", here)], len(faults)


def load_secret_values(settings: "Settings") -> tuple[str, ...]:
    """Return every value that a command must not show."""
    if settings.secrets is None or not (settings.secrets / "secrets").is_dir():
        return settings.secret_values
    store = open_secret_store(settings)
    try:
        return (*settings.secret_values, *(store.load_values().values if store else ()))
    except Refusal:
        return settings.secret_values


def collect_secrets(configuration: "Configuration", settings: "Settings", token: str | None) -> tuple[str, ...]:
    """Collect the values that must never appear in any output."""
    review, upstreams = configuration.library.config.review, configuration.library.config.upstreams
    own = (token, read_variable(review.key) if review else "")
    return tuple(filter(None, (*settings.secret_values, *(upstreams.secrets if upstreams else ()), *own)))
