"""Which servers did you approve, and as what? One file for each beside your keys, sealed with your key.

A file that your key did not seal counts as missing: nobody else can approve a server for you.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from mcp_server.model.results import Refusal
from mcp_server.model.upstreams import Catalogue, Mount
from mcp_server.policy.upstream_pins import (
    CataloguePart,
    JudgedCatalogue,
    UpstreamApproval,
    compute_mount_digest,
    extend_approval,
    format_canonical,
    judge_catalogue,
)
from mcp_server.state.account import NO_KEY_FOLDER
from mcp_server.state.engine.chain import LedgerKey
from mcp_server.state.location import write_private_file

FOLDER = "upstreams"
MAX_FILE_BYTES = 32 << 20


class UpstreamPins(Struct, frozen=True):
    """The approvals for one workspace."""

    secrets: Path | None
    """The folder for keys; without one, nothing is approved."""
    workspace: Path

    @property
    def folder(self) -> Path | None:
        """Where every change can be noticed."""
        return self.secrets and self.secrets / FOLDER

    def find_approval(self, mount: str) -> UpstreamApproval | None:
        """Return your approval of a server; None if there is none, or if someone else wrote it."""
        if self.secrets is None:
            return None
        try:
            file = os.open(self._get_path(mount), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(file, "rb") as stream:
                found: Any = json.loads(stream.read(MAX_FILE_BYTES))
            key = LedgerKey.load(self.secrets)
            body, mac = found["approval"], found["mac"]
            if key is None or not isinstance(mac, str) or not key.has_sealed(self._format_seal_text(mount, body), mac):
                return None
            return _parse_approval(body)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def judge(self, mount: Mount, catalogue: Catalogue) -> JudgedCatalogue:
        """Divide what a server offers by what you approved of it. This only reads: a running server adds what is
        admitted as new to the approval, with `admit_parts`, and no command that looks at servers does."""
        return judge_catalogue(compute_mount_digest(mount), catalogue, self.find_approval(mount.name), mount.changes)

    def put_approval(self, mount: str, approval: UpstreamApproval) -> None:
        if self.secrets is None:
            raise Refusal(NO_KEY_FOLDER)
        body = _format_approval(approval)
        mac = LedgerKey.load_or_create(self.secrets).compute_mac(self._format_seal_text(mount, body))
        path = self._get_path(mount)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private_file(path, json.dumps({"approval": body, "mac": mac}) + "\n", durable=True)

    def admit_parts(self, mount: str, mount_digest: str, parts: Sequence[CataloguePart]) -> None:
        """Add parts that you allowed in advance to your approval of the same definition of the server."""
        approval = self.find_approval(mount)
        if approval is not None and approval.mount == mount_digest:
            self.put_approval(mount, extend_approval(approval, parts))

    def remove_approval(self, mount: str) -> bool:
        """Withdraw it; False if there was none."""
        given = self.find_approval(mount) is not None
        if self.secrets is not None:
            self._get_path(mount).unlink(missing_ok=True)
        return given

    def _get_path(self, mount: str) -> Path:
        assert self.secrets is not None
        name = hashlib.sha256(os.fsencode(self.workspace) + b"\0" + mount.encode("utf-8", "surrogatepass")).hexdigest()
        return self.secrets / FOLDER / f"{name[:32]}.json"

    def _format_seal_text(self, mount: str, body: Any) -> str:
        """What the seal is about: this server, in this workspace, with exactly this."""
        return format_canonical({"upstream": mount, "workspace": os.fsencode(self.workspace).hex(), "approval": body})


def _format_approval(approval: UpstreamApproval) -> Mapping[str, Any]:
    return {
        "mount": approval.mount,
        "version": approval.version,
        "approved_at": approval.approved_at,
        "parts": [{"kind": part.kind, "name": part.name, "definition": part.definition} for part in approval.parts],
    }


def _parse_approval(body: Any) -> UpstreamApproval:
    fields = cast(Mapping[str, Any], body)
    parts = tuple(CataloguePart(part["kind"], part["name"], part["definition"]) for part in fields["parts"])
    return UpstreamApproval(fields["mount"], parts, fields["version"], fields["approved_at"])
