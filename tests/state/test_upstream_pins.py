"""Is a server approved only by this account's own key, for this workspace, with exactly what was shown?"""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_server.model.results import Refusal
from mcp_server.model.upstreams import Catalogue, CatalogueChanges, Mount, StdioTarget
from mcp_server.policy.upstream_pins import CataloguePart, approve_catalogue, compute_mount_digest
from mcp_server.state.engine.chain import LedgerKey
from mcp_server.state.upstream_pins import UpstreamPins

WHOLE = Catalogue(
    tools=({"name": "add", "description": "Adds. \ud800", "inputSchema": {"minimum": 1.5}},),
    instructions="Add.",
    server={"version": "1.2"},
)
APPROVAL = approve_catalogue("m", WHOLE, 7)


def the_file(pins: UpstreamPins) -> Path:
    assert pins.folder is not None
    (path,) = pins.folder.iterdir()
    return path


@pytest.fixture
def pins(tmp_path: Path) -> UpstreamPins:
    return UpstreamPins(tmp_path, Path("/work/here"))


def test_an_approval_comes_back_as_it_was(pins: UpstreamPins) -> None:
    assert pins.find_approval("github") is None
    pins.put_approval("github", APPROVAL)
    assert pins.find_approval("github") == APPROVAL
    assert the_file(pins).stat().st_mode & 0o777 == 0o600
    assert (pins.remove_approval("github"), pins.remove_approval("github")) == (True, False)
    assert pins.find_approval("github") is None


def test_it_is_for_one_server_in_one_workspace(pins: UpstreamPins, tmp_path: Path) -> None:
    pins.put_approval("github", APPROVAL)
    elsewhere = UpstreamPins(tmp_path, Path("/work/there"))
    assert elsewhere.find_approval("github") is None
    assert pins.find_approval("gitlab") is None
    text = the_file(pins).read_text()
    for other, name in ((elsewhere, "github"), (pins, "gitlab")):
        other.put_approval(name, APPROVAL)
        for path in (tmp_path / "upstreams").iterdir():
            path.write_text(text)
        assert other.find_approval(name) is None, "a file that was copied is no approval"
        other.remove_approval(name)


FORGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "another part": lambda said: said["approval"]["parts"].append({"kind": "tool", "name": "x", "definition": {}}),
    "another description": lambda said: said["approval"]["parts"][0]["definition"].update(description="Mails."),
    "another mount": lambda said: said["approval"].update(mount="n"),
    "no seal": lambda said: said.update(mac=""),
    "a seal of another kind": lambda said: said.update(mac=7),
    "no approval": lambda said: said.pop("approval"),
    "another shape": lambda said: said.update(approval=[]),
}


@pytest.mark.parametrize("forged", FORGED)
def test_what_somebody_else_wrote_is_no_approval(forged: str, pins: UpstreamPins) -> None:
    pins.put_approval("github", APPROVAL)
    path = the_file(pins)
    said = json.loads(path.read_text())
    FORGED[forged](said)
    path.write_text(json.dumps(said))
    assert pins.find_approval("github") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 100_000, "\0"])
def test_what_is_no_approval_at_all(text: str, pins: UpstreamPins) -> None:
    pins.put_approval("github", APPROVAL)
    the_file(pins).write_text(text)
    assert pins.find_approval("github") is None


def test_a_link_is_not_followed(pins: UpstreamPins) -> None:
    pins.put_approval("github", APPROVAL)
    path = the_file(pins)
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))
    assert pins.find_approval("github") is None


def test_another_key_approved_nothing(pins: UpstreamPins, tmp_path: Path) -> None:
    pins.put_approval("github", APPROVAL)
    (tmp_path / "ledger.key").unlink()
    assert pins.find_approval("github") is None
    LedgerKey.load_or_create(tmp_path)
    assert pins.find_approval("github") is None


def test_parts_are_admitted_to_an_approval_of_the_same_definition_alone(pins: UpstreamPins) -> None:
    new = CataloguePart("tool", "sub", {"name": "sub"})
    pins.admit_parts("github", "m", (new,))
    assert pins.find_approval("github") is None, "without a yes there is nothing to add to"
    pins.put_approval("github", APPROVAL)
    pins.admit_parts("github", "n", (new,))
    assert pins.find_approval("github") == APPROVAL
    pins.admit_parts("github", "m", (new, CataloguePart("tool", "add", {"name": "add", "description": "Mails."})))
    approval = pins.find_approval("github")
    assert approval is not None
    assert approval.parts == (*APPROVAL.parts, new), "what is approved stays as it was"


def test_only_what_was_added_to_the_approval_is_pinned(pins: UpstreamPins) -> None:
    mount = Mount("sums", "sums", StdioTarget(("run",)), changes=CatalogueChanges.ALLOW_NEW)
    assert pins.judge(mount, WHOLE).offered.tools == ()
    pins.put_approval("sums", approve_catalogue(compute_mount_digest(mount), WHOLE, 7))
    more = replace(WHOLE, tools=(*WHOLE.tools, {"name": "sub"}))
    assert pins.judge(mount, more).offered == more
    kept = pins.find_approval("sums")
    assert kept is not None and len(kept.parts) == len(approve_catalogue("", WHOLE, 7).parts), "looking writes nothing"
    pins.admit_parts("sums", compute_mount_digest(mount), pins.judge(mount, more).admitted)
    poisoned = replace(WHOLE, tools=(*WHOLE.tools, {"name": "sub", "description": "Mails."}))
    assert pins.judge(mount, poisoned).offered == WHOLE
    assert pins.judge(dataclasses.replace(mount, target=StdioTarget(("walk",))), more).offered.tools == ()


def test_where_nothing_can_be_kept_nothing_is_approved() -> None:
    nowhere = UpstreamPins(None, Path("/work"))
    assert (nowhere.find_approval("a"), nowhere.remove_approval("a"), nowhere.folder) == (None, False, None)
    with pytest.raises(Refusal):
        nowhere.put_approval("a", APPROVAL)
