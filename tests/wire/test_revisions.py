"""Is every revision of the protocol in one table, and is what the table says of it true of the SDK?"""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from mcp_types import methods, version

from mcp_server.config.load import DATA
from mcp_server.model.results import Code, Done, Ending, Picture, Problem, Question
from mcp_server.wire.revisions import (
    OLDEST,
    REVISIONS,
    UNTESTED,
    Revision,
    get_revision_features,
    shape_result,
)
from mcp_server.wire.translate import result_from_ending

TABLE = Path("mcp_server/wire/revisions.py")
TOWARDS_SERVERS = "mcp_server/upstreams/handshake.py"
"""Here menugate is the client: what another server speaks is agreed on with it."""
ENDINGS = (
    Done("one", {"two": 3}, (Picture(b"four", "image/png"),)),
    Problem(Code.STALE, "five", "six", {"seven": 8}),
    Question("nine", "ten"),
)


def test_every_revision_of_the_sdk_is_in_the_table() -> None:
    assert [f"add `{one}` to {TABLE}" for one in version.KNOWN_PROTOCOL_VERSIONS if one not in REVISIONS] == []
    assert [f"`{one}` has no row in REVISIONS of {TABLE}" for one in Revision if one not in REVISIONS] == []
    assert list(map(str, Revision)) == list(version.KNOWN_PROTOCOL_VERSIONS), "oldest first, and none that is gone"


@pytest.mark.parametrize("revision", Revision)
def test_those_with_a_handshake_have_connections(revision: Revision) -> None:
    assert REVISIONS[revision].connects is (revision in version.HANDSHAKE_PROTOCOL_VERSIONS)


def serialize(revision: str, ending: Ending) -> dict[str, Any]:
    """What the SDK makes of a tool's result."""
    return methods.serialize_server_result("tools/call", revision, result_from_ending(ending))


@pytest.mark.parametrize("revision", [one for one in Revision if REVISIONS[one].takes_our_results])
def test_results_that_the_sdk_would_leave_alone_go_out_as_they_are(revision: Revision) -> None:
    features = REVISIONS[revision]
    ours = [shape_result(result_from_ending(ending), features, {}) for ending in ENDINGS]
    theirs = [serialize(revision, ending) for ending in ENDINGS]
    for one in ours:
        if not one.get("_meta", True):
            del one["_meta"]
    assert ours == theirs


@pytest.mark.parametrize("revision", Revision)
def test_a_result_is_described_where_the_revision_knows_how(revision: Revision) -> None:
    features, stamp = REVISIONS[revision], {"server": "menugate"}
    shaped = shape_result(result_from_ending(ENDINGS[1]), features, stamp)
    assert ("resultType" in shaped) is ("resultType" in serialize(revision, ENDINGS[1])) is features.describes_results
    assert (shaped["_meta"].get("server") == "menugate") is features.describes_results
    assert shaped["_meta"]["menugate/refusal"] == {"code": "STALE", "seven": 8}


def test_a_revision_nobody_knows_gets_the_sdks_own_results(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_revision_features("2031-01-01") is get_revision_features(None) is OLDEST
    monkeypatch.setattr(version, "MODERN_PROTOCOL_VERSIONS", ("2026-07-28", "2031-01-01"))
    assert get_revision_features("2031-01-01") is UNTESTED
    assert not UNTESTED.connects
    assert not UNTESTED.takes_our_results


def test_no_other_file_compares_revisions() -> None:
    named: list[str] = []
    for path in sorted((DATA / "mcp_server").rglob("*.py")):
        nodes = [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, (ast.Constant, ast.alias))]
        for node in nodes if path not in (DATA / TABLE, DATA / TOWARDS_SERVERS) else ():
            text = node.name if isinstance(node, ast.alias) else str(node.value)
            if re.fullmatch(r"20\d\d-\d\d-\d\d|\w*PROTOCOL_VERSIONS", text):
                named.append(f"{path.relative_to(DATA)}:{node.lineno}: ask `Caller.protocol` instead of `{text}`")
    assert named == []
