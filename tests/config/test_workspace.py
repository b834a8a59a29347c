"""Does the workspace's own file say no more than it may, and does trust end with the first byte that changes?"""

from pathlib import Path

import pytest

from mcp_server.config.faults import FaultCollector
from mcp_server.config.workspace import FILE, PROMPTS, WorkspaceConfig, read_workspace_config
from mcp_server.model.policy import RuleKind
from mcp_server.model.posture import Profile


def read(workspace: Path, text: str) -> tuple[WorkspaceConfig, FaultCollector]:
    path = workspace / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    findings = FaultCollector()
    return read_workspace_config(workspace, findings), findings


def test_a_workspace_that_says_nothing_restricts_nothing(workspace: Path) -> None:
    findings = FaultCollector()
    assert read_workspace_config(workspace, findings) == WorkspaceConfig()
    assert findings.faults() == ()


def test_its_rules_are_told_apart_by_whether_they_widen(workspace: Path) -> None:
    found, findings = read(
        workspace, "rules:\n  deny: [Write(docs/**)]\n  allow: [bash(make)]\nmax_profile: normal\nbudget: {calls: 9}\n"
    )
    assert findings.faults() == ()
    assert [rule.kind for rule in found.narrowing_rules] == [RuleKind.DENY]
    assert [rule.kind for rule in found.widening_rules] == [RuleKind.ALLOW]
    assert (found.max_profile, found.budget.calls) == (Profile.NORMAL, 9)


@pytest.mark.parametrize("key", ["profile: trusted", "network: {}", "tokens: []", "approvals: elicit"])
def test_what_is_the_operators_to_set_is_said_to_be(key: str, workspace: Path) -> None:
    _, findings = read(workspace, f"{key}\n")
    (fault,) = findings.faults()
    assert "only the operator may set" in fault.message
    assert fault.line == 1


def test_every_byte_is_in_what_trust_is_given_to(workspace: Path) -> None:
    first, _ = read(workspace, "max_profile: normal\n")
    second, _ = read(workspace, "max_profile: normal \n")
    assert first.max_profile == second.max_profile
    assert first.digest != second.digest
    (workspace / PROMPTS).mkdir(parents=True)
    (workspace / PROMPTS / "extra.md").write_text("words\n")
    third, _ = read(workspace, "max_profile: normal \n")
    assert third.digest != second.digest


def test_what_was_read_before_counts_for_what_is_there_now(workspace: Path) -> None:
    read(workspace, "max_profile: unrestricted\n")
    findings = FaultCollector()
    said = "max_profile: restricted\n"
    assert read_workspace_config(workspace, findings, said).max_profile is Profile.RESTRICTED
    assert read_workspace_config(workspace, findings, without=True).max_profile is Profile.UNRESTRICTED
