"""What does the terminal show of the state? Reads it from any process, beside any number of running servers."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mcp_server.model.approvals import Approval
from mcp_server.model.documents import Document
from mcp_server.model.memory import MemoryEntry
from mcp_server.model.posture import PostureChoice
from mcp_server.model.reports import RunReport
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.sessions import Hold
from mcp_server.model.text import escape_for_model
from mcp_server.state import (
    approval_questions,
    documents,
    glances,
    messages,
    posture,
    runs,
    sessions,
    summaries,
    verify,
)
from mcp_server.state import memory as state_memory
from mcp_server.state.engine.chain import LedgerKey
from mcp_server.state.engine.rows import LedgerFilter, Message, Row, StoredSession
from mcp_server.state.engine.transaction import View
from mcp_server.state.location import is_known_state, is_sealed_by
from mcp_server.state.summaries import Summary
from mcp_server.state.verify import VerifyReport

ANSWERS = frozenset(("answer", "redeemed"))
LONGEST_OPEN_NS = 24 * 3600 * 10**9
"""A question is answered and its approval used within this time."""

ROWS_PER_QUERY = 1000
FOLLOW_SECONDS = 0.1
ROWS_SEARCHED = 100_000
COLUMNS = ("session", "tool", "code", "run")
CALL_FIELDS = ("principal", "mode", "stage", "verdict", "layer", "rule")
"""Fields that filters compare with an outcome's call, because outcomes do not repeat them."""


def _pause() -> bool:
    time.sleep(FOLLOW_SECONDS)
    return True


class Reader:
    """Reads a state and never writes: `with Reader.open(url, secrets=folder) as state: ...`."""

    def __init__(self, view: View, foreign: bool = False) -> None:
        self._view = view
        self.foreign = foreign
        """True if the state is another account's, which we show but which has no effect."""

    @classmethod
    def open(cls, url: str, *, secrets: str | Path | None) -> "Reader":
        """Open the state. Raises `Refusal` with `NOT_FOUND` if nothing was ever stored here."""
        from mcp_server.state.engine.schema import CURRENT, READABLE, read_schema_version
        from mcp_server.state.engine.sqlite import Database, path_from_url, refusal_from_error

        path = path_from_url(url)
        if not path.exists():
            message = f"menugate has not run in this workspace yet: there is no `{path}`."
            raise Refusal(Problem(Code.NOT_FOUND, message, "Start it here once, or name another workspace."))
        try:
            database = Database(path, readonly=True)
            version = read_schema_version(database)
        except Exception as error:
            raise refusal_from_error(error, path) or error from None
        if version is None or not READABLE <= version <= CURRENT:
            from mcp_server.state.open import make_unfit_refusal

            database.close()
            raise make_unfit_refusal(path, version)
        folder = Path(secrets) if secrets else None
        key = LedgerKey.load(folder)
        ours = is_known_state(folder, path.parent) or (key is not None and is_sealed_by(key, path.parent))
        return cls(View(database, key), foreign=not ours)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._view.link.close()

    def read_rows(self, filters: LedgerFilter = LedgerFilter(), after: int = 0) -> Iterator[Row]:  # noqa: B008  # frozen
        """Yield the rows after row `after`, in the order written."""
        if filters.tail is not None:
            rows = self._select(filters, after, min(filters.tail, 2**31), newest=True)
            yield from reversed(rows)
            return
        while chunk := self._select(filters, after, ROWS_PER_QUERY):
            yield from chunk
            after = chunk[-1].seq

    def follow_rows(self, filters: LedgerFilter = LedgerFilter(), pause: Callable[[], bool] = _pause) -> Iterator[Row]:  # noqa: B008  # frozen
        """Yield what `read_rows` does, then new rows until `pause` returns False."""
        last = self.get_head()
        for row in self.read_rows(filters):
            if row.seq <= last:
                yield row
        while True:
            head = self.get_head()
            for row in self.read_rows(replace(filters, tail=None), after=last):
                last = row.seq
                yield row
            last = max(last, head)
            if not pause():
                return

    def get_head(self) -> int:
        """Return the newest row's number; 0 if there is none."""
        return verify.get_last_seq(self._view)

    def load_glances(self, seqs: Iterable[int]) -> dict[int, str]:
        """Load the line about each of these calls, by row; many have none any more, or never had."""
        return glances.load_glances(self._view, seqs, time.time_ns()) if self._has_glances() else {}

    def find_glance(self, seq: int) -> str:
        return self.load_glances((seq,)).get(seq, "")

    def find_row_glance(self, row: Row) -> str:
        """Load the line about the row's call; for an answer, about the call that the question was about."""
        question, run = (str(row.fields.get(name) or "") for name in ("question", "run"))
        if row.kind not in ANSWERS or not question or not self._has_glances():
            return self.find_glance(row.seq)
        return glances.find_question_glance(self._view, run, question, row.at - LONGEST_OPEN_NS, time.time_ns())

    def load_question_glances(self, questions: Iterable[Approval]) -> dict[str, str]:
        """Load the line of the call that each question is about, by its id; many have none any more, or never had."""
        if not self._has_glances():
            return {}
        now = time.time_ns()
        return {
            one.id: glances.find_question_glance(self._view, one.wanted.run, one.id, one.asked, now)
            for one in questions
        }

    def _has_glances(self) -> bool:
        """False in a state of an older layout."""
        return "glances" in self._view.link.tables()

    def find_row(self, seq: int) -> Row | None:
        return next(iter(self._query_rows("seq = :seq", {"seq": seq}, "")), None)

    def _select(self, filters: LedgerFilter, after: int, limit: int, newest: bool = False) -> list[Row]:
        conditions = ["seq > :after"]
        values: dict[str, Any] = {"after": after, "limit": limit}
        for name in (*COLUMNS, *CALL_FIELDS):
            if (value := getattr(filters, name)) is not None:
                conditions.append(f"{name if name in COLUMNS else self._format_call_field(name)} = :{name}")
                values[name] = escape_for_model(value)
        for name, value in (
            ("at >= :since", filters.since_ns),
            ("at < :until", filters.until_ns),
            ("seq < :before", filters.before),
        ):
            if value is not None:
                conditions.append(name)
                values[name.partition(":")[2]] = value
        if filters.kinds:
            names = {f"kind{index}": kind for index, kind in enumerate(filters.kinds)}
            conditions.append(f"kind IN ({', '.join(':' + name for name in names)})")
            values |= names
        order = f"ORDER BY seq {'DESC' if newest else 'ASC'} LIMIT :limit"
        return self._query_rows(" AND ".join(conditions), values, order)

    def _format_call_field(self, name: str) -> str:
        """Build the SQL for a row's field; for an outcome, the field of the call that it belongs to."""
        format_expression = self._view.link.format_field_expression
        field, intent = format_expression(name, "ledger.body"), format_expression("intent", "ledger.body")
        of_intent = f"(SELECT {format_expression(name, 'call.body')} FROM ledger AS call WHERE call.seq = {intent})"  # noqa: S608  # our own words
        return f"coalesce({field}, CASE WHEN kind = 'outcome' THEN {of_intent} END)"

    def _query_rows(self, condition: str, values: dict[str, Any], order: str) -> list[Row]:
        # The SQL contains only our own words; values from filters are passed separately.
        sql = f"SELECT seq, body, hash FROM ledger WHERE {condition} {order}"  # noqa: S608
        return [verify.row_from_record(record) for record in self._view.fetch_all(sql, **values)]

    def load_messages(self) -> Sequence[Message]:
        return messages.load_messages(self._view)

    def load_memories(self) -> Sequence[MemoryEntry]:
        """Load everybody's project memory, oldest first."""
        return state_memory.load_all_memories(self._view)

    def load_records(self, kind: str) -> Sequence[tuple[str, Document]]:
        """Load all documents of a kind with their owners, oldest first."""
        return documents.load_all_documents(self._view, kind)

    def load_sessions(self) -> Sequence[StoredSession]:
        """Load all sessions, the most recently used first."""
        return sessions.load_sessions(self._view)

    def load_holds(self) -> dict[tuple[str, str], Hold]:
        """Load what is paused, by principal and session; an empty session stands for all of them."""
        return runs.load_active_holds(self._view)

    def load_approvals(self) -> Sequence[Approval]:
        """Load all questions to the user, the most recent first."""
        return approval_questions.load_approvals(self._view)

    def find_approval(self, id: str) -> Approval | None:
        return approval_questions.find_approval(self._view, id)

    def find_report(self, run: str | None = None) -> RunReport | None:
        """Return the report on a finished run, by default the newest."""
        return runs.find_report(self._view, run)

    def load_choices(self) -> dict[str, PostureChoice]:
        is_untrusted = self.foreign or self.is_exchanged()
        return posture.load_choices(View(self._view.link, None) if is_untrusted else self._view)

    def find_runs(self) -> Sequence[str]:
        """Find the most recently used runs, newest first."""
        return summaries.find_known_runs(self._view)

    def build_summary(self, run: str, upto: int | None = None) -> Summary | None:
        """Summarise a run, in full or up to a call; None if there is no such run."""
        return summaries.build_run_summary(self._view, run, upto)

    def describe_loss(self) -> str:
        """Describe how an earlier state file was damaged or lost; empty if none was."""
        row = self._view.fetch_one("SELECT lost FROM workspace")
        return row["lost"] if row else ""

    def load_choice(self, principal: str) -> PostureChoice | None:
        """Return the choice that applies to a principal; the most restricted one if theirs was lost."""
        return self.load_choices().get(principal) or (
            PostureChoice.build_most_restricted(0) if self.describe_loss() else None
        )

    def find_change_rows(self, principal: str, change: str) -> list[Row]:
        """Find what the ledger has about a change of this principal's posture, oldest first."""
        field, whose = map(self._view.link.format_field_expression, ("change", "principal"))
        condition = f"kind = 'transition' AND {field} = :change AND {whose} = :principal"
        values = {"change": escape_for_model(change), "principal": escape_for_model(principal)}
        return self._query_rows(condition, values, "ORDER BY seq")

    def find_unended_processes(self, running: bool) -> list[Row]:
        """Find the start rows of processes that have not recorded their end, and still run or not."""
        starts = verify.find_unended_starts(self._view)
        return [row for row in starts if verify.is_process_running(str(row.fields.get("process"))) is running]

    def find_unfinished_calls(self) -> list[int]:
        """Find calls whose process ended without recording an outcome."""
        return verify.find_unfinished_calls(self._view, ROWS_SEARCHED)

    def is_exchanged(self) -> bool:
        """True if this account has worked here, but did not seal the state that is here now."""
        from mcp_server.state.foreign import is_state_sealed
        from mcp_server.state.location import read_anchor_bytes

        key = self._view.key
        return not self.foreign and (
            key is None or not is_state_sealed(self._view.link, read_anchor_bytes(self._anchor_path), key)
        )

    def verify(self, report_progress: Callable[[int, int], None] | None = None) -> VerifyReport:
        """Check the whole ledger; `report_progress` gets the number of rows read and the last row now and then."""
        return verify.verify_ledger(self._view, self._anchor_path, report_progress, self.foreign)

    def check_anchor(self) -> tuple[int, str]:
        """Check only the ledger's end: count the rows after the anchor, and describe what does not match it."""
        return verify.check_anchor(self._view, self._anchor_path)

    @property
    def _anchor_path(self) -> Path:
        return self._view.link.path.with_name("ledger.anchor")
