"""Where does the value of a `${secret:NAME}` come from? From this account's own store."""

from collections.abc import Callable
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


def build_secret_finder(settings: "Settings") -> Callable[[str, str], str]:
    """Build the function that returns the value of a secret for a server, or raises `SecretUnavailable`."""

    def find_secret(name: str, server: str) -> str:
        store = open_secret_store(settings)
        if store is None:
            raise SecretUnavailable("no folder on this machine can keep secrets for this account.")
        try:
            return store.find_value(name, str(settings.workspace), server)
        except Refusal as refused:
            raise SecretUnavailable(f"{refused.problem.message} {refused.problem.way_out}") from None

    return find_secret
