"""What has the person chosen, and how is a choice kept from whoever merely can write the file?"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp_server.model.posture import AXES, Change, Choice, Door, Scope, Trial, Value
from mcp_server.state.batch import LOST_EPOCH, Transaction, View, plain, whole
from mcp_server.state.seal import canonical


def choice(view: View, principal: str) -> Choice | None:
    """None where the person never chose; the most restricted one where what was chosen is lost."""
    if row := view.one("SELECT * FROM posture WHERE principal = :principal", principal=plain(principal)):
        return _choice_of(view, row)
    workspace = view.one("SELECT lost FROM workspace")
    return Choice.least(LOST_EPOCH) if workspace and workspace["lost"] else None


def choices(view: View) -> dict[str, Choice]:
    return {row["principal"]: _choice_of(view, row) for row in view.all("SELECT * FROM posture ORDER BY principal")}


def keep_choice(tx: Transaction, principal: str, settled: Choice) -> None:
    text = canonical(written(settled))
    tx.run(
        "INSERT INTO posture (principal, axes, epoch, mac) VALUES (:principal, :axes, :epoch, :mac)"
        " ON CONFLICT (principal) DO UPDATE SET axes = excluded.axes, epoch = excluded.epoch, mac = excluded.mac",
        principal=plain(principal),
        axes=text,
        epoch=settled.epoch,
        mac=tx.seal.mac(_sealing(plain(principal), text)),
    )
    tx.set_epoch(principal, settled.epoch)
    tx.unsettled = None


def _choice_of(view: View, row: Mapping[str, Any]) -> Choice:
    """A row that cannot be read, or that nobody with the key wrote, leaves the least there is."""
    epoch = whole(row["epoch"])
    try:
        found = json.loads(row["axes"])
        genuine = view.key is not None and view.key.sealed(_sealing(row["principal"], row["axes"]), row["mac"])
        if not genuine or found["epoch"] != epoch:
            raise ValueError
        return _read(found)
    except (ValueError, TypeError, KeyError, AttributeError):
        return Choice.least(epoch)


def _sealing(principal: str, text: str) -> str:
    return canonical({"posture": text, "of": principal})


def written(one: Choice) -> dict[str, Any]:
    return {
        "axes": dict(one.axes),
        "epoch": one.epoch,
        "waiting": [_change(change) for change in one.waiting],
        "trials": [{"change": _change(trial.change), "before": dict(trial.before)} for trial in one.trials],
    }


def _change(one: Change) -> dict[str, Any]:
    return {
        "id": one.id,
        "axes": dict(one.axes),
        "scope": one.scope,
        "reason": one.reason,
        "door": one.door,
        "session": one.session,
        "calls": [list(call) for call in one.calls],
        "unconfirmed": one.unconfirmed,
        "asked": one.asked,
    }


def _read(found: Mapping[str, Any]) -> Choice:
    return Choice(
        axes=_axes(found["axes"]),
        epoch=found["epoch"],
        waiting=tuple(_change_in(one) for one in found["waiting"]),
        trials=tuple(
            Trial(_change_in(one["change"]), {axis: _value(axis, value) for axis, value in one["before"].items()})
            for one in found["trials"]
        ),
    )


def _change_in(one: Mapping[str, Any]) -> Change:
    values: dict[str, Any] = {**one, "calls": tuple((seq, process) for seq, process in one["calls"])}
    values |= {"axes": _axes(one["axes"]), "scope": Scope(one["scope"]), "door": Door(one["door"])}
    return Change(**values)


def _axes(found: Mapping[str, Any]) -> dict[str, Value]:
    values = {axis: _value(axis, value) for axis, value in found.items()}
    return {axis: value for axis, value in values.items() if value is not None}


def _value(axis: str, value: Any) -> Value | None:
    kind = AXES[axis]
    if value is None:
        return None
    if kind is bool and not isinstance(value, bool):
        raise ValueError
    return kind(value)


def renewed(before: Choice | None, epoch: int) -> Choice:
    """What a first choice begins with, at the epoch the file is at."""
    return replace(before, epoch=epoch) if before else Choice(epoch=epoch)
