"""Does the operator's file come out as it was meant, with every rule knowing its line?"""

from pathlib import Path

import pytest

from mcp_server.config.operator import OperatorConfig
from mcp_server.config.operator_schema import KINDS
from mcp_server.model.approvals import ApprovalChannel
from mcp_server.model.destinations import USUAL, Destinations, parse_destinations
from mcp_server.model.menus import Host, Listing
from mcp_server.model.policy import Budget, Reviewing, RuleKind, RuleText
from mcp_server.model.posture import AiMode, ModelMode, Posture, Profile, RunControl, WorkMode
from mcp_server.model.web_access import WebAccess
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


def listed(folder: Path, text: str) -> Destinations:
    file = folder / "menugate.yaml"
    file.write_text(text)
    return opened(config=file).config.network


@pytest.mark.parametrize("text", ["max_profile: trusted\n", "network: {}\n"])
def test_without_a_list_of_places_the_usual_places_are_on_it(text: str, tmp_path: Path) -> None:
    assert listed(tmp_path, text) == parse_destinations(USUAL)


def test_a_list_of_places_takes_theirs(tmp_path: Path) -> None:
    found = listed(tmp_path, 'network:\n  allow: ["*.example.org", "git.example:22", 10.1.0.0/16]\n')
    assert found == parse_destinations(["*.example.org", "git.example:22", "10.1.0.0/16"])
    assert not found.has_host("github.com", 443)


def test_an_empty_list_leaves_no_place(tmp_path: Path) -> None:
    assert listed(tmp_path, "network: {allow: []}\n") == Destinations()


def test_what_is_no_place_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "menugate.yaml"
    file.write_text("network:\n  allow:\n    - github.com\n    - https://github.com\n    - a.*.org\n")
    faults = refused(config=file)
    assert [(fault.line, fault.key) for fault in faults] == [(4, "network.allow[1]"), (5, "network.allow[2]")]
    assert "a URL is not allowed" in str(faults)


def web(folder: Path, text: str) -> WebAccess:
    file = folder / "menugate.yaml"
    file.write_text(text)
    return opened(config=file).config.web


def test_what_tools_may_reach_is_a_setting_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "ours.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    found = web(
        tmp_path,
        "web:\n  allow: [docs.example, 10.1.0.0/16]\n  deny: ['*.evil.example']\n  ask: ['*']\n"
        "  proxy: http://proxy.example:3128\n  authorities: ours.pem\n",
    )
    assert found.allow == parse_destinations(["docs.example", "10.1.0.0/16"])
    assert found.deny.has_host("a.evil.example", 8080)
    assert found.ask.has_host("b.example", 22)
    assert found.proxy is not None
    assert (found.proxy.host, found.proxy.port, found.authorities) == (
        "proxy.example",
        3128,
        str(tmp_path / "ours.pem"),
    )
    assert web(tmp_path, "network: {allow: []}\n") == WebAccess()
    assert listed(tmp_path, "web: {allow: []}\n") == parse_destinations(USUAL)


@pytest.mark.parametrize(
    ("line", "key", "says"),
    [
        ("allow: [https://a.example]", "web.allow[0]", "a URL is not allowed"),
        ("deny: [a.*.example]", "web.deny[0]", "in front of one"),
        ("ask: ['a:0']", "web.ask[0]", "an invalid port"),
        ("proxy: proxy.example:3128", "web.proxy", "Write the proxy like"),
        ("proxy: http://user:hunter2@proxy.example", "web.proxy", "contains a user name"),
        ("proxy: http://proxy.example/path", "web.proxy", "leave out everything after"),
        ("authorities: none.pem", "web.authorities", "cannot be read"),
        ("authorities: menugate.yaml", "web.authorities", "contains no certificate"),
        ("alow: []", "web.alow", "allow"),
    ],
)
def test_a_fault_about_the_web_is_named_with_its_place(line: str, key: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "menugate.yaml"
    file.write_text(f"web:\n  {line}\n")
    faults = refused(config=file)
    assert [(fault.line, fault.key) for fault in faults] == [(2, key)]
    assert says in str(faults)
    assert "hunter2" not in str(faults)


REVIEWER = "https://models.example.org"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (
            f"endpoint: {REVIEWER}/v1/chat/completions, model: m",
            Reviewing(f"{REVIEWER}/v1/chat/completions", "models.example.org", 443, "m"),
        ),
        (
            "endpoint: 'http://127.0.0.1:11434/v1/chat/completions', model: m, key: 'env:A_KEY', patience: 45",
            Reviewing("http://127.0.0.1:11434/v1/chat/completions", "127.0.0.1", 11434, "m", "A_KEY", 45),
        ),
        (f"endpoint: '{REVIEWER}/m?v=1', model: m", Reviewing(f"{REVIEWER}/m?v=1", "models.example.org", 443, "m")),
        ("endpoint: 'http://[::1]:80/v1', model: m", Reviewing("http://[::1]:80/v1", "::1", 80, "m")),
    ],
)
def test_who_reviews_is_whom_the_operator_means(given: str, meant: Reviewing, tmp_path: Path) -> None:
    file = tmp_path / "menugate.yaml"
    file.write_text(f"review: {{{given}}}\n")
    assert opened(config=file).config.review == meant


def test_nobody_reviews_unless_somebody_is_named(tmp_path: Path) -> None:
    file = tmp_path / "menugate.yaml"
    file.write_text("max_profile: trusted\n")
    assert opened(config=file).config.review is None


@pytest.mark.parametrize(
    ("given", "key", "says"),
    [
        ("model: m", "review.endpoint", "this key is missing"),
        (f"endpoint: '{REVIEWER}'", "review.model", "this key is missing"),
        ("endpoint: models.example.org/v1, model: m", "review.endpoint", "this is not a web address"),
        ("endpoint: 'ftp://models.example.org/v1', model: m", "review.endpoint", "this is not a web address"),
        ("endpoint: 'https:///v1', model: m", "review.endpoint", "this is not a web address"),
        (f"endpoint: '{REVIEWER}/v1#hunter2', model: m", "review.endpoint", "this is not a web address"),
        ("endpoint: 'https://h:99999/v1', model: m", "review.endpoint", "this is not a URL"),
        ("endpoint: 'https://[::1/v1', model: m", "review.endpoint", "this is not a URL"),
        ("endpoint: 'https://a..b/v1', model: m", "review.endpoint", "is not a host name"),
        (
            "endpoint: 'https://me:hunter2@h.example/v1', model: m",
            "review.endpoint",
            "contains a user name or password",
        ),
        (f"endpoint: '{REVIEWER}', model: m, key: sk-hunter2", "review.key", "not the key itself"),
        (f"endpoint: '{REVIEWER}', model: m, key: 'env:hunter2 x'", "review.key", "not the key itself"),
        (f"endpoint: '{REVIEWER}', model: m, patience: 0", "review.patience", "from 1 to 50"),
        (f"endpoint: '{REVIEWER}', model: m, patience: 51", "review.patience", "from 1 to 50"),
        (f"endpoint: '{REVIEWER}', model: m, prompt: x", "review.prompt", "there is no key `prompt` here"),
    ],
)
def test_a_reviewer_that_cannot_be_meant_is_named(given: str, key: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "menugate.yaml"
    file.write_text(f"review: {{{given}}}\n")
    (fault,) = refused(config=file)
    assert (fault.key, says in fault.message) == (key, True), fault
    assert "hunter2" not in str(fault)
