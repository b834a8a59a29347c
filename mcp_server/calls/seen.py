"""What has a session read? It changes nothing it has not seen as it is now."""

from dataclasses import dataclass

from mcp_server.model.files import Stamp
from mcp_server.state import Store


@dataclass(frozen=True)
class SeenBy:
    store: Store
    session: str

    def remember(self, path: str, stamp: Stamp) -> None:
        self.store.remember_seen(self.session, path, stamp)

    def recall(self, path: str) -> Stamp | None:
        return self.store.recall_seen(self.session, path)


class Unseen:
    """Before a call is granted anything, nobody has seen anything."""

    def remember(self, path: str, stamp: Stamp) -> None:
        return None

    def recall(self, path: str) -> Stamp | None:
        return None
