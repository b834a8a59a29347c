"""What has the person chosen, and how is a choice kept from whoever merely can write the file?"""

import json
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from mcp_server.model.posture import AiMode, ModelMode, Posture, Profile, RunControl, Surface, WorkMode
from mcp_server.state.batch import LOST_EPOCH, Transaction, View, plain, whole
from mcp_server.state.deeds.ledger import transition
from mcp_server.state.record import Changed
from mcp_server.state.seal import canonical

AXES: dict[str, type[StrEnum]] = {
    "work_mode": WorkMode,
    "run_control": RunControl,
    "profile": Profile,
    "model_mode": ModelMode,
    "ai_mode": AiMode,
    "surface": Surface,
}


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
    transition(tx, before, axes(settled), {"principal": principal, **why})
    return settled
