"""In which formats is the ledger exported? As JSON Lines, which the chain can verify, or as OCSF, for a SIEM."""

import argparse
import json
import os
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mcp_server import __version__
from mcp_server.cli.ledger import build_ledger_filter, format_json_line
from mcp_server.cli.output import CliError, note, show_progress
from mcp_server.model.text import format_count
from mcp_server.model.tools import Effect

if TYPE_CHECKING:
    from mcp_server.state.engine.rows import Row
    from mcp_server.state.reader import Reader


# Rows as events of the Open Cybersecurity Schema Framework, version 1.8.
#
# A call is API Activity (6003) with the profile `security_control`, which says allowed or denied. Starts and stops of a
# server are Application Lifecycle (6002); changes of posture, session or trust are Entity Management (3004); an alarm
# is a Detection Finding (2004). Fields without a place in the framework go under `unmapped`, including the number and
# hash of the row: the framework's own `attestation` is computed over the event, and ours over the row.

VERSION = "1.8.0"
CREATE, READ, UPDATE, DELETE, OTHER = 1, 2, 3, 4, 99
START, STOP = 3, 4
UNKNOWN, SUCCESS, FAILURE = 0, 1, 2
INFORMATIONAL, LOW, HIGH = 1, 2, 4
ALLOWED, DENIED = 1, 2
PASSED, BLOCKED = 1, 2
ACTIVITY: dict[str, int] = {
    Effect.NONE: READ,
    Effect.SESSION: UPDATE,
    Effect.READ_LOCAL: READ,
    Effect.READ_REMOTE: READ,
    Effect.WRITE_LOCAL: UPDATE,
    Effect.DESTROY_LOCAL: DELETE,
    Effect.VCS_LOCAL: UPDATE,
    Effect.REMOTE_WRITE: UPDATE,
    Effect.PRODUCTION_MUTATION: UPDATE,
    # None of the framework's four activities covers running a program and the like.
    Effect.SPEND: OTHER,
    Effect.EXEC: OTHER,
    Effect.BROWSER_ACT: OTHER,
    Effect.DELEGATE: OTHER,
}
CAPTIONS = {
    6003: {CREATE: "Create", READ: "Read", UPDATE: "Update", DELETE: "Delete", OTHER: "Other"},
    6002: {START: "Start", STOP: "Stop"},
    3004: {UPDATE: "Update"},
    2004: {CREATE: "Create"},
}
STATUS = {UNKNOWN: "Unknown", SUCCESS: "Success", FAILURE: "Failure"}
MAPPED = frozenset({"at", "kind", "principal", "client", "tool", "transport", "reason"})


def build_event(row: "Row", other: "Row | None" = None) -> dict[str, Any]:
    """Build the event of a row. `other` is the intent of an outcome, or the outcome of an intent."""
    match row.kind:
        case "intent" | "outcome" | "refusal" | "question":
            return _build_call_event(row, other)
        case "start" | "stop":
            return _build_lifecycle_event(row)
        case "alarm" | "attempt":
            return _build_alarm_event(row)
        case _:
            return _build_change_event(row)


def _build_base_event(row: "Row", uid: int, activity: int, severity: int) -> dict[str, Any]:
    names = CAPTIONS[uid]
    return {
        "activity_id": activity,
        "activity_name": names[activity],
        "category_uid": uid // 1000,
        "class_uid": uid,
        "type_uid": uid * 100 + activity,
        "severity_id": severity,
        "time": row.at // 1_000_000,
        "metadata": {
            "version": VERSION,
            "product": {"name": "menugate", "vendor_name": "menugate", "version": __version__},
            "uid": row.hash,
            "sequence": row.seq,
            "log_name": "ledger",
        },
    }


def _build_call_event(row: "Row", other: "Row | None") -> dict[str, Any]:
    call = other.fields if row.kind == "outcome" and other is not None else row.fields
    denied = row.kind in ("refusal", "question")
    tool = str(call.get("tool") or "unknown")
    server, colon, operation = tool.rpartition(":")
    activity = ACTIVITY.get(call.get("effect", ""), OTHER)
    event = _build_base_event(row, 6003, activity, LOW if denied else INFORMATIONAL)
    event["metadata"] |= {"profiles": ["security_control"], "correlation_uid": str(call.get("run") or "")}
    status = _get_status(row)
    return event | {
        "status_id": status,
        "status": STATUS[status],
        **({"status_code": row.fields["code"]} if row.fields.get("code") else {}),
        **({"status_detail": row.fields["reason"]} if row.fields.get("reason") else {}),
        **({"duration": row.fields.get("latency_us", 0) // 1000} if row.kind == "outcome" else {}),
        "action_id": DENIED if denied else ALLOWED,
        "disposition_id": BLOCKED if denied else PASSED,
        "actor": _build_actor(call),
        "api": {
            "operation": f"tools/call {operation}",
            "service": {"name": server if colon else "menugate"},
            "request": {"uid": str(row.fields.get("intent") or row.seq)},
        },
        "resources": [{"name": tool, "type": "tool"}],
        "src_endpoint": {"svc_name": str(call.get("transport") or "unknown")},
        **({"policy": {"name": call["rule"]}} if call.get("rule") else {}),
        "unmapped": _build_unmapped_fields(row, call),
    }


def _get_status(row: "Row") -> int:
    if row.kind == "outcome":
        return SUCCESS if row.fields.get("ending") == "done" else FAILURE
    return UNKNOWN if row.kind == "intent" else FAILURE


def _build_actor(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The client names itself, which proves nothing; the principal is authenticated."""
    who = str(fields.get("principal") or "unknown")
    session = {"session": {"uid": str(fields["session"])}} if fields.get("session") else {}
    client = {"app_name": str(fields["client"])} if fields.get("client") else {}
    return {"user": {"name": who, "uid": who}, **session, **client}


def _build_unmapped_fields(row: "Row", more: Mapping[str, Any]) -> dict[str, Any]:
    unmapped = {key: value for key, value in {**more, **row.fields}.items() if key not in MAPPED}
    return {"menugate": {"kind": row.kind, "seq": row.seq, "hash": row.hash, **unmapped}}


def _build_lifecycle_event(row: "Row") -> dict[str, Any]:
    version = str(row.fields.get("version") or __version__)
    return _build_base_event(row, 6002, START if row.kind == "start" else STOP, INFORMATIONAL) | {
        "app": {"name": "menugate", "vendor_name": "menugate", "version": version},
        "unmapped": _build_unmapped_fields(row, {}),
    }


def _build_change_event(row: "Row") -> dict[str, Any]:
    fields = row.fields
    placed = fields.get("session") and "profile" not in (fields.get("to") or {})
    kind = row.kind if row.kind != "transition" else "session" if placed else "posture"
    name = str(fields.get("session") if placed else fields.get("folder") or fields.get("principal") or "workspace")
    return _build_base_event(row, 3004, UPDATE, INFORMATIONAL) | {
        "entity": {"name": name, "type": kind},
        "actor": _build_actor(fields),
        "comment": str(fields.get("reason") or row.kind),
        "unmapped": _build_unmapped_fields(row, {}),
    }


def _build_alarm_event(row: "Row") -> dict[str, Any]:
    title = str(row.fields.get("reason") or "the ledger did not match its anchor")
    return _build_base_event(row, 2004, CREATE, HIGH) | {
        "finding_info": {"title": title, "uid": row.hash},
        "unmapped": _build_unmapped_fields(row, {}),
    }


FORMATS = ("jsonl", "ocsf")


def export(state: "Reader", arguments: argparse.Namespace) -> int:
    if arguments.output is None:
        write_rows(state, arguments, sys.stdout)
        return 0
    path = Path(arguments.output)
    with open_new_file(path) as file:
        count = write_rows(state, arguments, file)
    note(f"Wrote {format_count(count, 'row' if arguments.format == 'jsonl' else 'event')} to {path}.")
    return 0


def write_rows(state: "Reader", arguments: argparse.Namespace, file: TextIO) -> int:
    count, total = 0, state.get_head()
    rows = state.read_rows(build_ledger_filter(arguments))
    lines = map(format_json_line, rows) if arguments.format == "jsonl" else format_ocsf_lines(rows, state)
    with show_progress("rows written") as print_progress:
        for count, line in enumerate(lines, 1):
            file.write(line + "\n")
            print_progress(count, total)
    return count


def format_ocsf_lines(rows: Iterable["Row"], state: "Reader") -> Iterator[str]:
    """Yield one event per call, at its outcome; calls without an outcome among the rows come last, in order."""
    open_calls: dict[int, Row] = {}
    for row in rows:
        if row.kind == "intent":
            open_calls[row.seq] = row
            continue
        number = row.fields.get("intent")
        call = open_calls.pop(number, None) or state.find_row(number) if isinstance(number, int) else None
        yield json.dumps(build_event(row, call), separators=(",", ":"))
    for row in open_calls.values():
        yield json.dumps(build_event(row), separators=(",", ":"))


@contextmanager
def open_new_file(path: Path) -> Generator[TextIO, None, None]:
    """Open a new file that only its owner can read; remove it again if it cannot be completed."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise CliError(f"`{path}` already exists, and menugate does not overwrite files; name another file.") from None
    except OSError as wrong:
        raise CliError(f"`{path}` cannot be created: {wrong.strerror}.") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yield file
    except OSError as wrong:
        path.unlink(missing_ok=True)
        raise CliError(f"`{path}` could not be written: {wrong.strerror}.") from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
