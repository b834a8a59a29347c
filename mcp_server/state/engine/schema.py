"""Which tables are in the state file, and how did they get there?

The schema is a numbered list of steps; never edit a step. The ledger stores each row as the text that was hashed. Its
search columns are computed from that text, so that no copy can contradict what the chain covers; `{session}` and the
like stand for the dialect's expression.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_server.state.engine.sqlite import Database

SEARCHED = ("kind", "session", "tool", "code", "at", "run")

STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE workspace (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            schema_version INTEGER NOT NULL,
            changes INTEGER NOT NULL,
            lost TEXT NOT NULL)""",
        "INSERT INTO workspace VALUES (1, 0, 0, '')",
        """CREATE TABLE ledger (
            seq INTEGER PRIMARY KEY,
            body TEXT NOT NULL,
            hash TEXT NOT NULL,
            kind TEXT GENERATED ALWAYS AS ({kind}),
            session TEXT GENERATED ALWAYS AS ({session}),
            tool TEXT GENERATED ALWAYS AS ({tool}),
            code TEXT GENERATED ALWAYS AS ({code}),
            at BIGINT GENERATED ALWAYS AS ({at}))""",
        """CREATE TABLE checkpoints (
            number INTEGER PRIMARY KEY, seq INTEGER NOT NULL, hash TEXT NOT NULL, at BIGINT NOT NULL,
            key TEXT NOT NULL, signature TEXT NOT NULL)""",
        """CREATE TABLE posture (
            principal TEXT PRIMARY KEY, axes TEXT NOT NULL, epoch INTEGER NOT NULL, mac TEXT NOT NULL)""",
        """CREATE TABLE sessions (
            id TEXT PRIMARY KEY,
            principal TEXT NOT NULL,
            mode TEXT,
            stage TEXT,
            run TEXT NOT NULL,
            steps INTEGER NOT NULL,
            version INTEGER NOT NULL,
            pinned INTEGER NOT NULL,
            handle_digest TEXT,
            created BIGINT NOT NULL,
            used BIGINT NOT NULL)""",
        "CREATE UNIQUE INDEX sessions_by_handle ON sessions (handle_digest)",
        """CREATE TABLE messages (
            number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, read INTEGER NOT NULL DEFAULT 0,
            body TEXT NOT NULL)""",
        """CREATE TABLE seen (
            session TEXT NOT NULL, path TEXT NOT NULL, size BIGINT NOT NULL, mtime_ns BIGINT NOT NULL,
            digest TEXT NOT NULL, PRIMARY KEY (session, path))""",
    ),
    (
        """CREATE TABLE records (
            number INTEGER PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, mark TEXT NOT NULL,
            version INTEGER NOT NULL, body TEXT NOT NULL, made BIGINT NOT NULL, changed BIGINT NOT NULL,
            UNIQUE (owner, kind, id))""",
        "CREATE INDEX records_by_mark ON records (owner, kind, mark)",
    ),
    ("ALTER TABLE sessions ADD COLUMN phase TEXT",),
    (
        "ALTER TABLE sessions ADD COLUMN reasoned INTEGER NOT NULL DEFAULT 0",
        """CREATE TABLE approvals (
            id TEXT PRIMARY KEY, principal TEXT NOT NULL, asked BIGINT NOT NULL, expires BIGINT NOT NULL,
            body TEXT NOT NULL, mac TEXT NOT NULL)""",
        """CREATE TABLE holds (
            principal TEXT NOT NULL, session TEXT NOT NULL, at BIGINT NOT NULL, body TEXT NOT NULL,
            PRIMARY KEY (principal, session))""",
        """CREATE TABLE thoughts (
            number INTEGER PRIMARY KEY, session TEXT NOT NULL, run TEXT NOT NULL, at BIGINT NOT NULL,
            body TEXT NOT NULL)""",
        """CREATE TABLE reports (
            number INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, principal TEXT NOT NULL, session TEXT NOT NULL,
            at BIGINT NOT NULL, body TEXT NOT NULL)""",
    ),
    (
        # A transition from one run to the next belongs to the run that it ends.
        "ALTER TABLE ledger ADD COLUMN run TEXT GENERATED ALWAYS AS (coalesce({run}, {from_run}))",
        "CREATE INDEX ledger_by_run ON ledger (run) WHERE run IS NOT NULL",
        """CREATE TABLE notes (
            number INTEGER PRIMARY KEY, run TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL,
            kind TEXT NOT NULL, text TEXT NOT NULL)""",
        "CREATE INDEX notes_by_run ON notes (run)",
    ),
    (
        "ALTER TABLE messages ADD COLUMN reply TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE messages ADD COLUMN delivered INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX replies_to_deliver ON messages (number) WHERE reply <> '' AND delivered = 0",
        "CREATE TABLE glances (seq INTEGER PRIMARY KEY, at BIGINT NOT NULL, line TEXT NOT NULL)",
    ),
    ("ALTER TABLE sessions ADD COLUMN added TEXT NOT NULL DEFAULT ''",),
)
CURRENT = len(STEPS)
READABLE = 5
"""The oldest layout that a command can read as it is: later steps only add what a reader can do without. A server
brings it up to date."""


def read_schema_version(link: "Database") -> int | None:
    """Return the schema step of the file; 0 if it is empty, None if it is not ours."""
    tables = link.tables()
    if not tables:
        return 0
    if "workspace" not in tables:
        return None
    row = link.cursor.execute("SELECT schema_version FROM workspace").fetchone()
    return row[0] if row else None


def migrate(link: "Database", found: int) -> None:
    """Bring the file up to date, inside the caller's transaction."""
    columns = {name: link.format_field_expression(name) for name in SEARCHED} | {
        "from_run": link.format_field_expression("from.run")
    }
    for step in STEPS[found:]:
        for statement in step:
            link.cursor.execute(statement.format(**columns) if "{" in statement else statement)
    if found < CURRENT:
        link.cursor.execute(f"UPDATE workspace SET schema_version = {CURRENT}")  # noqa: S608  # our own number
