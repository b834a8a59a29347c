"""What did the person choose, and why is write access to the file not enough to change it?"""

import json
from collections.abc import Iterable, Mapping
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
    get_narrower_value,
)
from mcp_server.model.text import escape_for_model
from mcp_server.state.engine.chain import format_canonical_json
from mcp_server.state.engine.transaction import LOST_EPOCH, Transaction, View, to_whole_number


def load_choice(view: View, principal: str) -> PostureChoice | None:
    """None if the person never chose; the most restricted choice if theirs was lost."""
    if row := view.fetch_one(
        "SELECT * FROM posture WHERE principal = :principal", principal=escape_for_model(principal)
    ):
        return _choice_from_row(view, row)
    workspace = view.fetch_one("SELECT lost FROM workspace")
    return PostureChoice.build_most_restricted(LOST_EPOCH) if workspace and workspace["lost"] else None


def load_choices(view: View) -> dict[str, PostureChoice]:
    return {
        row["principal"]: _choice_from_row(view, row)
        for row in view.fetch_all("SELECT * FROM posture ORDER BY principal")
    }


def keep_choice(tx: Transaction, principal: str, settled: PostureChoice) -> None:
    text = format_canonical_json(build_choice_fields(settled))
    tx.run(
        "INSERT INTO posture (principal, axes, epoch, mac) VALUES (:principal, :axes, :epoch, :mac)"
        " ON CONFLICT (principal) DO UPDATE SET axes = excluded.axes, epoch = excluded.epoch, mac = excluded.mac",
        principal=escape_for_model(principal),
        axes=text,
        epoch=settled.epoch,
        mac=tx.seal.compute_mac(_format_seal_text(escape_for_model(principal), text)),
    )
    tx.epochs[principal] = settled.epoch
    tx.unsettled = None


def _choice_from_row(view: View, row: Mapping[str, Any]) -> PostureChoice:
    """A row that cannot be read, or was not sealed with the key, counts as the most restricted choice. If the whole
    state is someone else's (no key to check it with), its rows can only restrict."""
    epoch = to_whole_number(row["epoch"])
    try:
        found = json.loads(row["axes"])
        if view.key is None:
            return PostureChoice(claims=_parse_claims(found), epoch=epoch)
        if (
            not view.key.has_sealed(_format_seal_text(row["principal"], row["axes"]), row["mac"])
            or found["epoch"] != epoch
        ):
            raise ValueError
        return _parse_choice(found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return PostureChoice.build_most_restricted(epoch)


def _parse_claims(found: Mapping[str, Any]) -> dict[str, Value]:
    """Parse what such a row claims was chosen. If a value is tried for one unit, use the narrower of it and the one it
    reverts to."""
    trials = [said for one in found.get("trials", ()) for said in (one["before"], one.get("unasked", {}))]
    return _merge_narrowest([found["axes"], *trials, found.get("unasked", {}), found.get("claims", {})])


def _merge_narrowest(said: Iterable[Mapping[str, Any]]) -> dict[str, Value]:
    claims: dict[str, Value] = {}
    for one in said:
        for axis, word in one.items():
            if axis in AXES and word is not None:
                value = _parse_value_or_least(axis, word)
                claims[axis] = get_narrower_value(axis, claims.get(axis, value), value)
    return claims


def _parse_value_or_least(axis: str, word: Any) -> Value:
    try:
        return cast(Value, _parse_value(axis, word))
    except (ValueError, TypeError):
        return NARROWEST_FIRST[axis][0]


def _format_seal_text(principal: str, text: str) -> str:
    return format_canonical_json({"posture": text, "of": principal})


def build_choice_fields(one: PostureChoice) -> dict[str, Any]:
    return {
        "axes": dict(one.axes),
        "epoch": one.epoch,
        "waiting": [_build_change_fields(change) for change in one.waiting],
        "trials": [
            {
                "change": _build_change_fields(trial.change),
                "before": dict(trial.before),
                **({"unasked": dict(trial.unasked)} if trial.unasked else {}),
            }
            for trial in one.trials
        ],
        **({"claims": dict(one.claims)} if one.claims else {}),
        **({"unasked": dict(one.unasked)} if one.unasked else {}),
    }


def _build_change_fields(one: PostureChange) -> dict[str, Any]:
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
        **({name: value for name in ("units", "tries", "unasked") if (value := getattr(one, name))}),
    }


def _parse_choice(found: Mapping[str, Any]) -> PostureChoice:
    return PostureChoice(
        axes=_parse_axes(found["axes"]),
        epoch=found["epoch"],
        waiting=tuple(_parse_change(one) for one in found["waiting"]),
        trials=tuple(
            TemporaryChange(
                _parse_change(one["change"]),
                {axis: _parse_value(axis, value) for axis, value in one["before"].items()},
                _parse_axes(one.get("unasked", {})),
            )
            for one in found["trials"]
        ),
        claims=_parse_axes(found.get("claims", {})),
        unasked=_parse_axes(found.get("unasked", {})),
    )


def _parse_change(one: Mapping[str, Any]) -> PostureChange:
    values: dict[str, Any] = {**one, "calls": tuple((seq, process) for seq, process in one["calls"])}
    values |= {"axes": _parse_axes(one["axes"]), "scope": ChangeScope(one["scope"]), "door": ChangeSource(one["door"])}
    return PostureChange(**values)


def _parse_axes(found: Mapping[str, Any]) -> dict[str, Value]:
    values = {axis: _parse_value(axis, value) for axis, value in found.items()}
    return {axis: value for axis, value in values.items() if value is not None}


def _parse_value(axis: str, value: Any) -> Value | None:
    kind = AXES[axis]
    if value is None:
        return None
    if kind is bool and not isinstance(value, bool):
        raise ValueError
    return kind(value)
