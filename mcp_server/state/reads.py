"""Which files has a session read, and how did they look then?"""

from mcp_server.model.files import Stamp
from mcp_server.model.text import escape_for_model
from mcp_server.state.engine.transaction import Transaction, View


def remember_seen(tx: Transaction, session_id: str, path: str, stamp: Stamp) -> None:
    tx.run(
        "INSERT INTO seen (session, path, size, mtime_ns, digest) VALUES (:session, :path, :size, :mtime_ns, :digest)"
        " ON CONFLICT (session, path) DO UPDATE SET"
        " size = excluded.size, mtime_ns = excluded.mtime_ns, digest = excluded.digest",
        session=escape_for_model(session_id),
        path=escape_for_model(path),
        size=stamp.size,
        mtime_ns=stamp.mtime_ns,
        digest=stamp.digest,
    )


def recall_seen(view: View, session_id: str, path: str) -> Stamp | None:
    row = view.fetch_one(
        "SELECT size, mtime_ns, digest FROM seen WHERE session = :session AND path = :path",
        session=escape_for_model(session_id),
        path=escape_for_model(path),
    )
    return Stamp(**row) if row else None
