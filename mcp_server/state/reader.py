"""What does the person see of the state? Reading from a plain process, beside any number of running servers."""

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
"""What stands in the row of a decision, and is asked of the outcome's row too."""
LIVES = 1000
"""So many of the last starts and ends are looked at."""


def _pause() -> bool:
    time.sleep(FOLLOW_SECONDS)
    return True


class Reader:
    """`with Reader.open(url, secrets=folder) as state: ...`. Nothing is ever written."""

    def __init__(self, view: View, foreign: bool = False) -> None:
        self._view = view
        self.foreign = foreign
        """It is another account's: what stands in it is shown, and counts for nothing."""

    @classmethod
    def open(cls, url: str, *, secrets: str | Path | None) -> "Reader":
        """Raises `Refusal`: `NOT_FOUND` where nothing was ever remembered here."""
        from mcp_server.state.engine.sqlite import Database, path_from_url, refusal_from_error
        from mcp_server.state.open import CURRENT, make_unfit_refusal, read_schema_version

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
        """In the order in which they were written, those after row `after`."""
        if wanted.tail is not None:
            chosen = self._select(wanted, after, min(wanted.tail, 2**31), newest=True)
            yield from reversed(chosen)
            return
        while chunk := self._select(wanted, after, CHUNK):
            yield from chunk
            after = chunk[-1].seq

    def follow_rows(self, wanted: LedgerFilter = LedgerFilter(), pause: Callable[[], bool] = _pause) -> Iterator[Row]:  # noqa: B008  # frozen
        """What `rows` gives, and then what comes, until `pause` says that it is enough."""
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
        """The newest row's number; 0 where there is none."""
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
        """What a row says; of an outcome, what the intent said that it belongs to."""
        express = self._view.link.format_field_expression
        field, intent = express(name, "ledger.body"), express("intent", "ledger.body")
        of_intent = f"(SELECT {express(name, 'call.body')} FROM ledger AS call WHERE call.seq = {intent})"  # noqa: S608  # our own words
        return f"coalesce({field}, CASE WHEN kind = 'outcome' THEN {of_intent} END)"

    def _query_rows(self, condition: str, values: dict[str, Any], order: str) -> list[Row]:
        # Only our own words are put together here; what was asked for goes in as values.
        sql = f"SELECT seq, body, hash FROM ledger WHERE {condition} {order}"  # noqa: S608
        return [
            Row(one["seq"], one["hash"], one["body"], read_body(one["body"]))
            for one in self._view.fetch_all(sql, **values)
        ]

    def load_messages(self) -> Sequence[Message]:
        return messages.load_messages(self._view)

    def load_memories(self) -> Sequence[MemoryEntry]:
        """What is remembered of the project, of whoever ran there; the oldest first."""
        return state_memory.load_all_memories(self._view)

    def load_records(self, kind: str) -> Sequence[tuple[str, Document]]:
        """What packs remember of that kind, with whose each is, oldest first."""
        return documents.load_all_documents(self._view, kind)

    def load_sessions(self) -> Sequence[StoredSession]:
        """The one used last comes first."""
        return sessions.load_sessions(self._view)

    def load_holds(self) -> dict[tuple[str, str], Hold]:
        """What is paused, by principal and session; an empty session stands for all of them."""
        return runs.load_active_holds(self._view)

    def load_approvals(self) -> Sequence[Approval]:
        """What the person was asked; the question asked last comes first."""
        return approval_questions.load_approvals(self._view)

    def find_report(self, run: str | None = None) -> QaReport | None:
        """What was found when that run was over; the newest where none is named."""
        return runs.find_report(self._view, run)

    def load_choices(self) -> dict[str, PostureChoice]:
        whole = self.foreign or self.is_exchanged()
        return posture.load_choices(View(self._view.link, None) if whole else self._view)

    def find_runs(self) -> Sequence[str]:
        """The one used last comes first."""
        return summaries.find_known_runs(self._view)

    def build_summary(self, run: str, upto: int | None = None) -> Summary | None:
        """What a run came to, in all or up to a call; None where there is no such run."""
        return summaries.build_run_summary(self._view, run, upto)

    def describe_loss(self) -> str:
        """What became of an earlier state file, where one was damaged or taken away; empty otherwise."""
        found = self._view.fetch_one("SELECT lost FROM workspace")
        return found["lost"] if found else ""

    def load_choice(self, principal: str) -> PostureChoice | None:
        """What holds for somebody; the least there is where a choice was lost."""
        return self.load_choices().get(principal) or (
            PostureChoice.build_most_restricted(0) if self.describe_loss() else None
        )

    def find_running_processes(self) -> list[Row]:
        """The starts of the processes that are still there."""
        return [row for row in self._find_unended_starts() if verify.is_process_running(str(row.fields.get("process")))]

    def find_vanished_processes(self) -> list[Row]:
        """The starts of those that are not, and did not say that they ended."""
        return [
            row for row in self._find_unended_starts() if not verify.is_process_running(str(row.fields.get("process")))
        ]

    def _find_unended_starts(self) -> list[Row]:
        lives = list(self.read_rows(LedgerFilter(kinds=(RowKind.START, RowKind.STOP), tail=LIVES)))
        over = {row.fields.get("process") for row in lives if row.kind == RowKind.STOP}
        return [row for row in lives if row.kind == RowKind.START and row.fields.get("process") not in over]

    def find_unfinished_calls(self) -> list[int]:
        """Intents whose process ended without saying how they went."""
        return verify.find_unfinished_calls(self._view, UNFINISHED_AMONG)

    def is_exchanged(self) -> bool:
        """This account worked here, and what lies here now was not sealed with its key."""
        from mcp_server.state.foreign import is_state_sealed
        from mcp_server.state.location import read_anchor_bytes

        key = self._view.key
        return not self.foreign and (
            key is None or not is_state_sealed(self._view.link, read_anchor_bytes(self._anchor_path), key)
        )

    def verify(self, told: Callable[[int, int], None] | None = None) -> VerifyReport:
        """`told` hears now and then how many rows were read, and which is the last."""
        return verify.verify_ledger(self._view, self._anchor_path, told, self.foreign)

    def check_anchor(self) -> tuple[int, str]:
        """How many rows were written after the anchor, and what does not fit it; a quick look at the ledger's end."""
        return verify.check_anchor(self._view, self._anchor_path)

    @property
    def _anchor_path(self) -> Path:
        return self._view.link.path.with_name("ledger.anchor")


def _drop_tail(wanted: LedgerFilter) -> LedgerFilter:
    return replace(wanted, tail=None)
