"""What does the person see of the state? Reads from any process, beside any number of running servers."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_server.model.approvals import Approval
from mcp_server.model.documents import Document
from mcp_server.model.memory import MemoryEntry
from mcp_server.model.posture import PostureChoice
from mcp_server.model.reports import RunReport as QaReport
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.sessions import Hold
from mcp_server.model.text import escape_surrogates
from mcp_server.state import approval_questions, documents, messages, posture, runs, sessions, summaries, verify
from mcp_server.state import memory as state_memory
from mcp_server.state.engine.chain import LedgerKey
from mcp_server.state.engine.rows import LedgerFilter, Message, Row, RowKind, StoredSession
from mcp_server.state.engine.transaction import View
from mcp_server.state.location import is_known_state, is_sealed_by
from mcp_server.state.summaries import Summary
from mcp_server.state.verify import VerifyReport, read_body

CHUNK = 1000
FOLLOW_SECONDS = 0.1
UNFINISHED_AMONG = 100_000
COLUMNS = ("session", "tool", "code", "run")
OF_THE_CALL = ("principal", "mode", "stage", "verdict", "layer", "rule")
"""Fields of a decision's row that filters also apply to its outcome's row."""
LIVES = 1000
"""How many of the newest starts and ends are considered."""


def _pause() -> bool:
    time.sleep(FOLLOW_SECONDS)
    return True


class Reader:
    """`with Reader.open(url, secrets=folder) as state: ...`. Never writes anything."""

    def __init__(self, view: View, foreign: bool = False) -> None:
        self._view = view
        self.foreign = foreign
        """True if the state is another account's: it is shown but has no effect."""

    @classmethod
    def open(cls, url: str, *, secrets: str | Path | None) -> "Reader":
        """Raises `Refusal` with `NOT_FOUND` if nothing was ever stored here."""
        from mcp_server.state.engine.schema import CURRENT, read_schema_version
        from mcp_server.state.engine.sqlite import Database, path_from_url, refusal_from_error

        path = path_from_url(url)
        if not path.exists():
            message = f"menugate has not run in this workspace yet: there is no `{path}`."
            raise Refusal(Problem(Code.NOT_FOUND, message, "Start it here once, or name another workspace."))
        try:
            link = Database(path, readonly=True)
            found = read_schema_version(link)
        except Exception as error:
            raise refusal_from_error(error, path) or error from None
        if found != CURRENT:
            from mcp_server.state.open import make_unfit_refusal

            link.close()
            raise make_unfit_refusal(path, found)
        folder = Path(secrets) if secrets else None
        key = LedgerKey.load(folder)
        ours = is_known_state(folder, path.parent) or (key is not None and is_sealed_by(key, path.parent))
        return cls(View(link, key), foreign=not ours)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._view.link.close()

    def read_rows(self, wanted: LedgerFilter = LedgerFilter(), after: int = 0) -> Iterator[Row]:  # noqa: B008  # frozen
        """Yield rows in the order written, those after row `after`."""
        if wanted.tail is not None:
            chosen = self._select(wanted, after, min(wanted.tail, 2**31), newest=True)
            yield from reversed(chosen)
            return
        while chunk := self._select(wanted, after, CHUNK):
            yield from chunk
            after = chunk[-1].seq

    def follow_rows(self, wanted: LedgerFilter = LedgerFilter(), pause: Callable[[], bool] = _pause) -> Iterator[Row]:  # noqa: B008  # frozen
        """Yield what `read_rows` does, then new rows, until `pause` says that it is enough."""
        last = self.get_head()
        for row in self.read_rows(wanted):
            if row.seq <= last:
                yield row
        while True:
            head = self.get_head()
            for row in self.read_rows(_drop_tail(wanted), after=last):
                last = row.seq
                yield row
            last = max(last, head)
            if not pause():
                return

    def get_head(self) -> int:
        """The newest row's number; 0 if there is none."""
        found = self._view.fetch_one("SELECT max(seq) AS seq FROM ledger")
        return (found or {}).get("seq") or 0

    def find_row(self, seq: int) -> Row | None:
        return next(iter(self._query_rows("seq = :seq", {"seq": seq}, "")), None)

    def _select(self, wanted: LedgerFilter, after: int, limit: int, newest: bool = False) -> list[Row]:
        conditions = ["seq > :after"]
        values: dict[str, Any] = {"after": after, "limit": limit}
        for name in (*COLUMNS, *OF_THE_CALL):
            if (value := getattr(wanted, name)) is not None:
                conditions.append(f"{name if name in COLUMNS else self._format_call_field(name)} = :{name}")
                values[name] = escape_surrogates(value)
        for name, value in (
            ("at >= :since", wanted.since_ns),
            ("at < :until", wanted.until_ns),
            ("seq < :before", wanted.before),
        ):
            if value is not None:
                conditions.append(name)
                values[name.partition(":")[2]] = value
        if wanted.kinds:
            names = {f"kind{index}": kind for index, kind in enumerate(wanted.kinds)}
            conditions.append(f"kind IN ({', '.join(':' + name for name in names)})")
            values |= names
        order = f"ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT :limit"
        return self._query_rows(" AND ".join(conditions), values, order)

    def _format_call_field(self, name: str) -> str:
        """Build the expression for a row's field; for an outcome, the field of the intent that it belongs to."""
        express = self._view.link.format_field_expression
        field, intent = express(name, "ledger.body"), express("intent", "ledger.body")
        of_intent = f"(SELECT {express(name, 'call.body')} FROM ledger AS call WHERE call.seq = {intent})"  # noqa: S608  # our own words
        return f"coalesce({field}, CASE WHEN kind = 'outcome' THEN {of_intent} END)"

    def _query_rows(self, condition: str, values: dict[str, Any], order: str) -> list[Row]:
        # Only our own words are put together here; what was asked for is passed as values.
        sql = f"SELECT seq, body, hash FROM ledger WHERE {condition} {order}"  # noqa: S608
        return [
            Row(one["seq"], one["hash"], one["body"], read_body(one["body"]))
            for one in self._view.fetch_all(sql, **values)
        ]

    def load_messages(self) -> Sequence[Message]:
        return messages.load_messages(self._view)

    def load_memories(self) -> Sequence[MemoryEntry]:
        """Load everyone's project memory, oldest first."""
        return state_memory.load_all_memories(self._view)

    def load_records(self, kind: str) -> Sequence[tuple[str, Document]]:
        """Load what packs remember of that kind, with the owners, oldest first."""
        return documents.load_all_documents(self._view, kind)

    def load_sessions(self) -> Sequence[StoredSession]:
        """The most recently used comes first."""
        return sessions.load_sessions(self._view)

    def load_holds(self) -> dict[tuple[str, str], Hold]:
        """What is paused, by principal and session; an empty session stands for all of them."""
        return runs.load_active_holds(self._view)

    def load_approvals(self) -> Sequence[Approval]:
        """What the person was asked, most recent first."""
        return approval_questions.load_approvals(self._view)

    def find_report(self, run: str | None = None) -> QaReport | None:
        """Return the findings about a finished run; the newest if none is named."""
        return runs.find_report(self._view, run)

    def load_choices(self) -> dict[str, PostureChoice]:
        whole = self.foreign or self.is_exchanged()
        return posture.load_choices(View(self._view.link, None) if whole else self._view)

    def find_runs(self) -> Sequence[str]:
        """The most recently used comes first."""
        return summaries.find_known_runs(self._view)

    def build_summary(self, run: str, upto: int | None = None) -> Summary | None:
        """Summarise a run, in full or up to a call; None if there is no such run."""
        return summaries.build_run_summary(self._view, run, upto)

    def describe_loss(self) -> str:
        """Say what became of an earlier state file that was damaged or taken away; empty if there was none."""
        found = self._view.fetch_one("SELECT lost FROM workspace")
        return found["lost"] if found else ""

    def load_choice(self, principal: str) -> PostureChoice | None:
        """Return a principal's effective choice; the most restricted one if it was lost."""
        return self.load_choices().get(principal) or (
            PostureChoice.build_most_restricted(0) if self.describe_loss() else None
        )

    def find_running_processes(self) -> list[Row]:
        """The start rows of processes that still run."""
        return [row for row in self._find_unended_starts() if verify.is_process_running(str(row.fields.get("process")))]

    def find_vanished_processes(self) -> list[Row]:
        """The start rows of processes that are gone without having recorded their end."""
        return [
            row for row in self._find_unended_starts() if not verify.is_process_running(str(row.fields.get("process")))
        ]

    def _find_unended_starts(self) -> list[Row]:
        lives = list(self.read_rows(LedgerFilter(kinds=(RowKind.START, RowKind.STOP), tail=LIVES)))
        over = {row.fields.get("process") for row in lives if row.kind == RowKind.STOP}
        return [row for row in lives if row.kind == RowKind.START and row.fields.get("process") not in over]

    def find_unfinished_calls(self) -> list[int]:
        """Intents whose process ended without recording an outcome."""
        return verify.find_unfinished_calls(self._view, UNFINISHED_AMONG)

    def is_exchanged(self) -> bool:
        """True if this account worked here, but the state here now was not sealed with its key."""
        from mcp_server.state.foreign import is_state_sealed
        from mcp_server.state.location import read_anchor_bytes

        key = self._view.key
        return not self.foreign and (
            key is None or not is_state_sealed(self._view.link, read_anchor_bytes(self._anchor_path), key)
        )

    def verify(self, told: Callable[[int, int], None] | None = None) -> VerifyReport:
        """`told` is called from time to time with the number of rows read and the last row."""
        return verify.verify_ledger(self._view, self._anchor_path, told, self.foreign)

    def check_anchor(self) -> tuple[int, str]:
        """Return how many rows follow the anchor, and what does not match it; a quick check of the ledger's end."""
        return verify.check_anchor(self._view, self._anchor_path)

    @property
    def _anchor_path(self) -> Path:
        return self._view.link.path.with_name("ledger.anchor")


def _drop_tail(wanted: LedgerFilter) -> LedgerFilter:
    return replace(wanted, tail=None)
