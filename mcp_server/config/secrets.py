"""What does `${secret:NAME}` stand for? A value in the store of this account, opened when one is needed."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from mcp_server.model.results import Refusal
from mcp_server.model.secrets import SecretUnavailable

if TYPE_CHECKING:
    from mcp_server.settings import Settings
    from mcp_server.state.secrets import SecretStore


def open_secret_store(settings: "Settings") -> "SecretStore | None":
    """None if no folder can keep anything for this account."""
    if settings.secrets is None:
        return None
    from mcp_server.guards.keyring import find_keyring
    from mcp_server.state.secrets import SecretStore

    keyring = find_keyring(settings.search_path, settings.workspace, dict(settings.keyring_variables))
    return SecretStore(settings.secrets, keyring)


def build_secret_finder(settings: "Settings") -> Callable[[str], str]:
    """The function that finds the value of a secret for servers of this workspace, or raises `SecretUnavailable`. It
    may wait for the keyring, at most once."""

    @cache
    def get_store() -> "SecretStore | None":
        return open_secret_store(settings)

    def find_secret(name: str) -> str:
        store = get_store()
        if store is None:
            raise SecretUnavailable("no folder on this machine can keep secrets for this account.")
        try:
            return store.find_value(name, str(settings.workspace))
        except Refusal as refused:
            raise SecretUnavailable(f"{refused.problem.message} {refused.problem.way_out}") from None

    return find_secret
