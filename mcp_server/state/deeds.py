"""What can be done to the state? Each deed is one function over one open transaction, or over a mere view of the file.

Deeds run in the writer's thread. They return what the caller gets, and write nothing when the answer is `Moved` or
`Changed`. Their SQL is plain enough for every engine.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from mcp_server.model.files import Stamp
from mcp_server.model.posture import AiMode, ModelMode, Posture, Profile, RunControl, Stage, Surface, WorkMode
from mcp_server.model.session import Session
from mcp_server.state.batch import LOST_EPOCH, Transaction, View, plain, whole
from mcp_server.state.record import Changed, Intent, Judged, Kept, Message, Moved, Outcome, RowKind
from mcp_server.state.seal import Checkpoint, canonical

AXES: dict[str, type[StrEnum]] = {
    "work_mode": WorkMode,
    "run_control": RunControl,
    "profile": Profile,
    "model_mode": ModelMode,
    "ai_mode": AiMode,
    "surface": Surface,
}


# The ledger.


def intend(tx: Transaction, intent: Intent) -> int | Moved:
    """Put on record what is about to run, if the posture it was decided under still holds."""
    epoch = tx.epoch(intent.session.principal)
    return Moved(epoch) if epoch != intent.posture.epoch else tx.append(intent.kind, intent.fields())


def record(tx: Transaction, judged: Judged) -> int:
    return tx.append(judged.kind, judged.fields())


def conclude(tx: Transaction, outcome: Outcome) -> int:
    return tx.append(RowKind.OUTCOME, outcome.fields())


def sign_checkpoint(tx: Transaction) -> bool:
    """Sign the head, if there is anything new to sign."""
    before = tx.checkpoint
    if tx.seq <= (before.seq if before else 0):
        return False
    draft = Checkpoint((before.number if before else 0) + 1, tx.seq, tx.hash, tx.clock.now_ns())
    made = replace(draft, key=tx.seal.public, signature=tx.seal.sign(draft.statement(before)))
    tx.run(
        "INSERT INTO checkpoints (number, seq, hash, at, key, signature)"
        " VALUES (:number, :seq, :hash, :at, :key, :signature)",
        **{name: getattr(made, name) for name in ("number", "seq", "hash", "at", "key", "signature")},
    )
    tx.checkpoint = made
    return True


def changes(view: View) -> int:
    """A number that moves whenever posture or sessions do."""
    row = view.one("SELECT changes FROM workspace")
    return row["changes"] if row else 0


# The person's posture.


def axes(posture: Posture) -> dict[str, Any]:
    return {name: getattr(posture, name) for name in AXES} | {"reasoning": posture.reasoning, "epoch": posture.epoch}


def _posture_of(view: View, row: Mapping[str, Any]) -> Posture:
    """A row that cannot be read, or that nobody with the key wrote, leaves the least there is."""
    epoch = whole(row["epoch"])
    try:
        found: dict[str, Any] = json.loads(row["axes"])
        genuine = view.key is not None and view.key.sealed(_sealing(row["principal"], row["axes"]), row["mac"])
        if not genuine or found.pop("epoch") != epoch or not isinstance(found.pop("reasoning"), bool):
            raise ValueError
        values: dict[str, Any] = {name: AXES[name](value) for name, value in found.items()}
        return Posture(**values, reasoning=json.loads(row["axes"])["reasoning"], epoch=epoch)
    except (ValueError, TypeError, KeyError, AttributeError):
        return replace(Posture.most_restricted(), epoch=epoch)


def _sealing(principal: str, axes_text: str) -> str:
    return canonical({"posture": axes_text, "of": principal})


def posture(view: View, principal: str) -> Posture | None:
    """None where the person never chose; the most restricted one where what was chosen is lost."""
    if row := view.one("SELECT * FROM posture WHERE principal = :principal", principal=plain(principal)):
        return _posture_of(view, row)
    workspace = view.one("SELECT lost FROM workspace")
    return replace(Posture.most_restricted(), epoch=LOST_EPOCH) if workspace and workspace["lost"] else None


def postures(view: View) -> dict[str, Posture]:
    return {row["principal"]: _posture_of(view, row) for row in view.all("SELECT * FROM posture ORDER BY principal")}


def set_posture(tx: Transaction, principal: str, chosen: Posture, why: Mapping[str, str]) -> Posture | Changed:
    """`why` holds the reason, the scope and the session of the change."""
    current = posture(tx, principal)
    if tx.epoch(principal) != chosen.epoch:
        return Changed(current)
    settled = replace(chosen, epoch=chosen.epoch + 1)
    text = canonical(axes(settled))
    tx.run(
        "INSERT INTO posture (principal, axes, epoch, mac) VALUES (:principal, :axes, :epoch, :mac)"
        " ON CONFLICT (principal) DO UPDATE SET axes = excluded.axes, epoch = excluded.epoch, mac = excluded.mac",
        principal=plain(principal),
        axes=text,
        epoch=settled.epoch,
        mac=tx.seal.mac(_sealing(plain(principal), text)),
    )
    tx.set_epoch(principal, settled.epoch)
    before = axes(current or Posture(epoch=chosen.epoch))
    _transition(tx, before, axes(settled), {"principal": principal, **why})
    return settled


def _transition(tx: Transaction, before: Mapping[str, Any], after: Mapping[str, Any], why: Mapping[str, Any]) -> None:
    tx.append(RowKind.TRANSITION, {"from": before, "to": after, **why})
    tx.changed = True


# Sessions.


def _place(session: Session) -> dict[str, Any]:
    return {"mode": session.mode, "stage": session.stage, "run": session.run, "pinned": session.pinned}


def _kept(row: Mapping[str, Any]) -> Kept:
    stage = Stage(row["stage"]) if row["stage"] in list(Stage) else None
    session = Session(
        id=row["id"],
        principal=row["principal"],
        mode=row["mode"],
        stage=stage,
        run=row["run"],
        steps=row["steps"],
        version=row["version"],
        pinned=bool(row["pinned"]),
    )
    return Kept(session, row["handle_digest"], row["created"], row["used"])


def session(view: View, id: str) -> Kept | None:
    row = view.one("SELECT * FROM sessions WHERE id = :id", id=plain(id))
    return _kept(row) if row else None


def session_by_handle(view: View, digest: str) -> Kept | None:
    row = view.one("SELECT * FROM sessions WHERE handle_digest = :digest", digest=plain(digest))
    return _kept(row) if row else None


def sessions(view: View) -> Sequence[Kept]:
    return [_kept(row) for row in view.all("SELECT * FROM sessions ORDER BY used DESC")]


def put_session(tx: Transaction, put: Session, handle_digest: str | None) -> Kept:
    """Make a session known, or give a known one its handle. Where it stands is changed by `move` alone."""
    now = tx.clock.now_ns()
    tx.run(
        "INSERT INTO sessions (id, principal, mode, stage, run, steps, version, pinned, handle_digest, created, used)"
        " VALUES (:id, :principal, :mode, :stage, :run, :steps, :version, :pinned, :digest, :now, :now)"
        " ON CONFLICT (id) DO UPDATE SET used = excluded.used,"
        " handle_digest = coalesce(excluded.handle_digest, sessions.handle_digest)",
        **_columns(put),
        digest=handle_digest,
        now=now,
    )
    tx.changed = True
    found = session(tx, put.id)
    assert found is not None, "just written"
    return found


def _columns(one: Session) -> dict[str, Any]:
    return {
        "id": plain(one.id),
        "principal": plain(one.principal),
        "mode": one.mode,
        "stage": one.stage,
        "run": one.run,
        "steps": one.steps,
        "version": one.version,
        "pinned": int(one.pinned),
    }


def move(tx: Transaction, before: Session, after: Session, why: Mapping[str, str]) -> Kept | Changed:
    """Take a session from one place to the next, unless somebody moved it meanwhile."""
    current = session(tx, before.id)
    if current is None and before.version == 0:
        current = put_session(tx, before, None)
    if current is None or current.session.version != before.version or current.session.principal != before.principal:
        return Changed(current.session if current else None)
    settled = replace(after, id=before.id, principal=before.principal, version=before.version + 1)
    tx.run(
        "UPDATE sessions SET mode = :mode, stage = :stage, run = :run, steps = :steps, version = :version,"
        " pinned = :pinned, used = :now WHERE id = :id",
        **{name: value for name, value in _columns(settled).items() if name != "principal"},
        now=tx.clock.now_ns(),
    )
    # A step within the same place is bookkeeping, not a transition.
    if _place(settled) != _place(before):
        whose = {"principal": before.principal, "session": before.id}
        _transition(tx, _place(before), _place(settled), {**whose, **why})
    tx.changed = True
    return replace(current, session=settled, used=tx.clock.now_ns())


def touch(tx: Transaction, id: str, used: int) -> None:
    tx.run("UPDATE sessions SET used = :used WHERE id = :id AND used < :used", id=plain(id), used=used)


def forget(tx: Transaction, before_ns: int) -> None:
    """Let go of sessions nobody used since then."""
    tx.run("DELETE FROM seen WHERE session IN (SELECT id FROM sessions WHERE used < :then)", then=before_ns)
    tx.run("DELETE FROM sessions WHERE used < :then", then=before_ns)


# Messages to the person, and what a session has read.


def leave_message(tx: Transaction, message: Message) -> str:
    fields = {"at": tx.clock.now_ns(), "session": message.session, "text": message.text}
    # Not `canonical`, which clips: the person gets all of it.
    fields |= {"attachments": list(message.attachments), "principal": message.principal}
    body = json.dumps(fields)
    tx.run("INSERT INTO messages (id, body) VALUES (:id, :body)", id=message.id, body=body)
    return message.id


def messages(view: View) -> Sequence[Message]:
    rows = view.all("SELECT id, read, body FROM messages ORDER BY number")
    found = ((row["id"], bool(row["read"]), json.loads(row["body"])) for row in rows)
    return [
        Message(
            id, one["at"], one["session"], one["text"], tuple(one["attachments"]), read, str(one.get("principal", ""))
        )
        for id, read, one in found
    ]


def read_messages(tx: Transaction, ids: Sequence[str]) -> None:
    for id in ids:
        tx.run("UPDATE messages SET read = 1 WHERE id = :id", id=plain(id))


def remember_seen(tx: Transaction, session_id: str, path: str, stamp: Stamp) -> None:
    tx.run(
        "INSERT INTO seen (session, path, size, mtime_ns, digest) VALUES (:session, :path, :size, :mtime_ns, :digest)"
        " ON CONFLICT (session, path) DO UPDATE SET"
        " size = excluded.size, mtime_ns = excluded.mtime_ns, digest = excluded.digest",
        session=plain(session_id),
        path=plain(path),
        size=stamp.size,
        mtime_ns=stamp.mtime_ns,
        digest=stamp.digest,
    )


def recall_seen(view: View, session_id: str, path: str) -> Stamp | None:
    row = view.one(
        "SELECT size, mtime_ns, digest FROM seen WHERE session = :session AND path = :path",
        session=plain(session_id),
        path=plain(path),
    )
    return Stamp(**row) if row else None
