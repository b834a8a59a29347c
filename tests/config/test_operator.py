"""Does the operator's file come out as it was meant, with every rule knowing its line?"""

from pathlib import Path

import pytest

from mcp_server.config.operator import OperatorConfig
from mcp_server.config.operator_schema import KINDS
from mcp_server.model.approvals import ApprovalChannel
from mcp_server.model.menus import Host, Listing
from mcp_server.model.policy import Budget, RuleKind, RuleText
from mcp_server.model.posture import AiMode, ModelMode, Posture, Profile, RunControl, WorkMode
from tests.config.samples import mode_text, opened, refused

WHOLE = """\
rules:
  block: ["bash(rm -rf:*)"]
  deny:
    - Read(secrets/**)
    - rule: bash(git push:*)
      match: [bash(git push origin main)]
      not_match: [bash(git pull), bash(git status)]
      reason: Pushing is done by people here.
  ask: ['fs_delete', "server:tool"]
  allow: [git_log(arg.max_count lt 100)]
max_profile: trusted
profile: restricted
work_mode: review
run_control: manual
model_mode: deep
ai_mode: chat
reasoning: true
budget: {calls: 100, minutes: 30, result_bytes: 1000000, repeated_failures: 3}
menus: [more]
hosts:
  - {client: my-host*, listing: flat, relists: false}
  - {client: opencode, listing: carried, relists: false, evidence: Ours is an old one.}
listing: carried
approvals: out_of_band
"""


def config(text: str, folder: Path) -> OperatorConfig:
    file = folder / "menugate.yaml"
    file.write_text(text)
    return opened(config=file).config


def test_every_key_arrives(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "mine.yaml").write_text(mode_text())
    file = f"{tmp_path}/menugate.yaml"
    got = config(WHOLE, tmp_path)
    assert got.rules == (
        RuleText(RuleKind.BLOCK, "bash(rm -rf:*)", f"{file}:2"),
        RuleText(RuleKind.DENY, "Read(secrets/**)", f"{file}:4"),
        RuleText(
            RuleKind.DENY,
            "bash(git push:*)",
            f"{file}:5",
            match=("bash(git push origin main)",),
            not_match=("bash(git pull)", "bash(git status)"),
            reason="Pushing is done by people here.",
        ),
        RuleText(RuleKind.ASK, "fs_delete", f"{file}:9"),
        RuleText(RuleKind.ASK, "server:tool", f"{file}:9"),
        RuleText(RuleKind.ALLOW, "git_log(arg.max_count lt 100)", f"{file}:10"),
    )
    assert got.max_profile is Profile.TRUSTED
    assert got.posture == Posture(
        work_mode=WorkMode.REVIEW,
        run_control=RunControl.MANUAL,
        profile=Profile.RESTRICTED,
        model_mode=ModelMode.DEEP,
        ai_mode=AiMode.CHAT,
        reasoning=True,
    )
    assert got.budget == Budget(calls=100, minutes=30, result_bytes=1_000_000, repeated_failures=3)
    assert got.menus == (tmp_path / "more",)
    assert got.listing is Listing.CARRIED
    assert got.approvals is ApprovalChannel.OUT_OF_BAND


def test_some_questions_can_be_kept_from_clients(tmp_path: Path) -> None:
    got = config("approvals: {out_of_band: [destroy-local, fs_delete]}\n", tmp_path)
    assert got.approvals is ApprovalChannel.ELICIT
    assert got.out_of_band == {"destroy-local", "fs_delete"}


@pytest.mark.parametrize(
    "text", ["", "# nothing yet\n", "{}\n", "---\n{}\n", "rules: {}\nmenus: []\nhosts: []\n", "listing: auto\n"]
)
def test_whatever_is_left_out_is_as_it_is_without_a_file(text: str, tmp_path: Path) -> None:
    assert config(text, tmp_path) == OperatorConfig() == opened().config
    assert OperatorConfig().posture == Posture()


def test_the_ceiling_lowers_where_a_person_starts(tmp_path: Path) -> None:
    assert config("max_profile: restricted\n", tmp_path).posture.profile is Profile.RESTRICTED


def test_folders_begin_at_the_files_own_folder_or_are_whole(tmp_path: Path) -> None:
    for name in ("near", "far"):
        (tmp_path / name).mkdir()
    assert config(f"menus: [near, '{tmp_path}/far']\n", tmp_path).menus == (tmp_path / "near", tmp_path / "far")


def test_the_operators_hosts_win_over_ours(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    file = tmp_path / "menugate.yaml"
    file.write_text(WHOLE)
    hosts = opened(config=file).hosts
    assert hosts.find_host("My-Host 2") == Host("my-host*", Listing.FLAT, relists=False)
    assert hosts.find_host("opencode") == Host(
        "opencode", Listing.CARRIED, relists=False, evidence="Ours is an old one."
    )


def test_every_kind_of_rule_has_its_list() -> None:
    assert list(KINDS) == list(RuleKind)


def test_a_number_too_long_to_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "menugate.yaml"
    file.write_text(f"budget:\n  calls: {'9' * 5000}\n")
    assert "is not a whole number from 1 to" in str(refused(config=file))
