"""What do we understand of a host's file, and which of its values go into the store?"""

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_server.config.operator_file import UnusableFile
from mcp_server.config.upstream_import import (
    convert_entry,
    describe_entry,
    list_differences,
    read_server_file,
    take_out_secrets,
)

SECRET = "canary-5up3r-secret"


def is_any(_name: str, _value: str) -> bool:
    return True


WRONG = {
    "{": ":1: this is not JSON",
    '{"mcpServers":\n {"a": }}': ":2: this is not JSON",
    "[]": "has no servers",
    "{}": "it needs a section `mcpServers`",
    '{"mcpServers": {"a": {}, "a": {}}}': "`a` is there twice",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_read_is_said_with_its_place(text: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(UnusableFile) as wrong:
        read_server_file(file)
    assert str(file) in str(wrong.value) and WRONG[text] in str(wrong.value)


def test_one_wrong_entry_harms_no_other(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    odd = {"a": 1, "b": {"command": 2}, "c": {"args": [1]}, "d": {"env": {"A": 1}}, "e": {"command": "sh"}}
    file.write_text(json.dumps({"mcpServers": odd}))
    read = read_server_file(file)
    assert (list(read.entries), list(read.faults)) == (["e"], ["a", "b", "c", "d"])


def test_keys_of_hosts_become_ours() -> None:
    given = {"httpUrl": "http://a/mcp", "enabled": False, "disabledTools": ["x"], "strange": 1}
    converted, left_out = convert_entry(given)
    assert converted == {"url": "http://a/mcp", "disabled": True}
    assert "`disabledTools` is another program's key and was left out; write a rule under `rules.deny`" in left_out[0]
    assert "`strange` is unknown here" in left_out[1]


TAKEN: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = {
    "a token": ({"env": {"A_TOKEN": SECRET}}, {"env": {"A_TOKEN": "${secret:A_TOKEN}"}}, {"A_TOKEN": SECRET}),
    "a reference": ({"env": {"A_TOKEN": "${HOME_TOKEN}"}}, {"env": {"A_TOKEN": "${HOME_TOKEN}"}}, {}),
    "a setting": ({"env": {"LEVEL": "verbose-output"}}, {"env": {"LEVEL": "verbose-output"}}, {}),
    "a header": (
        {"headers": {"Authorization": f"Bearer {SECRET}", "X-Api-Key": SECRET}},
        {"headers": {"Authorization": "Bearer ${secret:AUTHORIZATION}", "X-Api-Key": "${secret:X_API_KEY}"}},
        {"AUTHORIZATION": SECRET, "X_API_KEY": SECRET},
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_passwords_and_tokens_are_taken_out(name: str) -> None:
    entry, changed, secrets = TAKEN[name]
    assert take_out_secrets("git", entry, is_any) == (changed, secrets)
    assert SECRET not in str(list(describe_entry(entry)))


def test_a_name_that_is_taken_gets_the_servers_in_front() -> None:
    changed, secrets = take_out_secrets("git", {"env": {"A_TOKEN": SECRET}}, lambda name, _: name != "A_TOKEN")
    assert (changed["env"], secrets) == ({"A_TOKEN": "${secret:git_A_TOKEN}"}, {"git_A_TOKEN": SECRET})


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({}, []),
        ({"args": ["b"]}, ["args"]),
        ({"command": "zsh", "cwd": "/x"}, ["command", "cwd"]),
        ({"env": {"A_TOKEN": "another", "LEVEL": "1"}}, []),
        ({"env": {"A_TOKEN": SECRET, "LEVEL": "2"}}, ["env"]),
        ({"env": {"LEVEL": "1"}}, ["env"]),
    ],
)
def test_what_changed_since_you_added_it_is_found(change: dict[str, Any], differs: list[str]) -> None:
    entry = {"command": "sh", "args": ["a"], "env": {"A_TOKEN": SECRET, "LEVEL": "1"}}
    added, _ = take_out_secrets("git", entry, is_any)
    assert list_differences({**entry, **change}, added) == differs
