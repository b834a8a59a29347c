"""What has the person chosen, and how is a choice kept from whoever merely can write the file?"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from mcp_server.model.posture import (
    AXES,
    NARROWEST_FIRST,
    ChangeScope,
    ChangeSource,
    PostureChange,
    PostureChoice,
    TemporaryChange,
    Value,
    narrower,
)
from mcp_server.state.engine.chain import canonical
from mcp_server.state.engine.transaction import LOST_EPOCH, Transaction, View, plain, whole


def choice(view: View, principal: str) -> PostureChoice | None:
    """None where the person never chose; the most restricted one where what was chosen is lost."""
    if row := view.one("SELECT * FROM posture WHERE principal = :principal", principal=plain(principal)):
        return _choice_of(view, row)
    workspace = view.one("SELECT lost FROM workspace")
    return PostureChoice.least(LOST_EPOCH) if workspace and workspace["lost"] else None


def choices(view: View) -> dict[str, PostureChoice]:
    return {row["principal"]: _choice_of(view, row) for row in view.all("SELECT * FROM posture ORDER BY principal")}


def keep_choice(tx: Transaction, principal: str, settled: PostureChoice) -> None:
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


def _choice_of(view: View, row: Mapping[str, Any]) -> PostureChoice:
    """A row that cannot be read, or that nobody with the key wrote, leaves the least there is. Where the whole state is
    somebody else's (no key is at hand for it) its rows narrow, and do no more."""
    epoch = whole(row["epoch"])
    try:
        found = json.loads(row["axes"])
        if view.key is None:
            return PostureChoice(claims=_claimed(found), epoch=epoch)
        if not view.key.sealed(_sealing(row["principal"], row["axes"]), row["mac"]) or found["epoch"] != epoch:
            raise ValueError
        return _read(found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return PostureChoice.least(epoch)


def _claimed(found: Mapping[str, Any]) -> dict[str, Value]:
    """What such a row says was chosen: of a value tried for one unit and the one it comes back to, the narrower."""
    trials = [one["before"] for one in found.get("trials", ())]
    return _narrowest([found["axes"], *trials, found.get("claims", {})])


def _narrowest(said: Iterable[Mapping[str, Any]]) -> dict[str, Value]:
    claims: dict[str, Value] = {}
    for one in said:
        for axis, word in one.items():
            if axis in AXES and word is not None:
                value = _value_or_least(axis, word)
                claims[axis] = narrower(axis, claims.get(axis, value), value)
    return claims


def _value_or_least(axis: str, word: Any) -> Value:
    try:
        return cast(Value, _value(axis, word))
    except (ValueError, TypeError):
        return NARROWEST_FIRST[axis][0]


def _sealing(principal: str, text: str) -> str:
    return canonical({"posture": text, "of": principal})


def written(one: PostureChoice) -> dict[str, Any]:
    return {
        "axes": dict(one.axes),
        "epoch": one.epoch,
        "waiting": [_change(change) for change in one.waiting],
        "trials": [{"change": _change(trial.change), "before": dict(trial.before)} for trial in one.trials],
        **({"claims": dict(one.claims)} if one.claims else {}),
    }


def _change(one: PostureChange) -> dict[str, Any]:
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


def _read(found: Mapping[str, Any]) -> PostureChoice:
    return PostureChoice(
        axes=_axes(found["axes"]),
        epoch=found["epoch"],
        waiting=tuple(_change_in(one) for one in found["waiting"]),
        trials=tuple(
            TemporaryChange(
                _change_in(one["change"]), {axis: _value(axis, value) for axis, value in one["before"].items()}
            )
            for one in found["trials"]
        ),
        claims=_axes(found.get("claims", {})),
    )


def _change_in(one: Mapping[str, Any]) -> PostureChange:
    values: dict[str, Any] = {**one, "calls": tuple((seq, process) for seq, process in one["calls"])}
    values |= {"axes": _axes(one["axes"]), "scope": ChangeScope(one["scope"]), "door": ChangeSource(one["door"])}
    return PostureChange(**values)


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


def renewed(before: PostureChoice | None, epoch: int) -> PostureChoice:
    """What a first choice begins with, at the epoch the file is at."""
    return replace(before, epoch=epoch) if before else PostureChoice(epoch=epoch)
