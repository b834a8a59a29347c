"""Is a server added, disabled or removed, and every other character of the file left alone?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.config.operator_edit import UneditableLayout
from mcp_server.config.upstream_edit import add_server, format_server, read_entry, remove_server, set_disabled
from tests.yaml_text import load_yaml

ENTRY = {"command": "npx", "args": ["-y", "pkg@1.2.3"], "env": {"TOKEN": "${secret:TOKEN}"}}
LINES = "command: npx\nargs: ['-y', pkg@1.2.3]\nenv: {TOKEN: '${secret:TOKEN}'}\n"


def block(column: int) -> str:
    pad = " " * column
    return f"{pad}git:\n" + "".join(f"{pad}  {line}\n" for line in LINES.splitlines())


FLOW = "{command: npx, args: ['-y', pkg@1.2.3], env: {TOKEN: '${secret:TOKEN}'}}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"mcpServers:\n{block(2)}"),
        ("# mine\n", f"# mine\nmcpServers:\n{block(2)}"),
        ("glance: off", f"glance: off\nmcpServers:\n{block(2)}"),
        ("{}\n", f"{{mcpServers: {{git: {FLOW}}}}}\n"),
        ("mcpServers: {}  # none\nglance: off\n", f"mcpServers: {{git: {FLOW}}}  # none\nglance: off\n"),
        (
            "mcpServers:\n    time:  # it\n        command: a  # b\n# end\nglance: off\n",
            f"mcpServers:\n    time:  # it\n        command: a  # b\n{block(4)}# end\nglance: off\n",
        ),
        (
            '{"mcpServers": {"b": {"url": "a"}}}',
            f'{{"mcpServers": {{"b": {{"url": "a"}}, git: {FLOW}}}}}',
        ),
    ],
)
def test_a_server_is_added(before: str, after: str) -> None:
    assert add_server(before, "git", ENTRY) == after
    assert load_yaml(after)["mcpServers"]["git"] == ENTRY
    assert remove_server(after, "git").replace("mcpServers: {}\n", "").strip() in (
        before.strip(),
        before.strip() + "\nmcpServers: {}",
        "{mcpServers: {}}",
    )


def test_a_server_is_added_for_one_workspace() -> None:
    text = add_server("workspaces:\n  /a:\n    rules: {deny: [Write]}\n", "git", ENTRY, "/a")
    assert load_yaml(text)["workspaces"]["/a"] == {"rules": {"deny": ["Write"]}, "mcpServers": {"git": ENTRY}}
    again = add_server(text, "git", ENTRY, "/b")
    assert read_entry(again, "git", "/b") == ENTRY and read_entry(again, "git") is None
    assert remove_server(again, "git", "/b").startswith(text)


TWO = """\
mcpServers:
  # first
  a:
    command: x # y
    args:
      - z
  # second
  b: {command: y}
glance: off
"""


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        (TWO, "a", "mcpServers:\n  # first\n  # second\n  b: {command: y}\nglance: off\n"),
        (TWO, "b", TWO.replace("  b: {command: y}\n", "")),
        ("mcpServers:\n  a:\n    command: x\n# end\n", "a", "mcpServers: {}\n# end\n"),
        ("mcpServers: {a: {command: x}, b: {command: y}}\n", "a", "mcpServers: {b: {command: y}}\n"),
        ("mcpServers: {a: {command: x}, b: {command: y}}\n", "b", "mcpServers: {a: {command: x}}\n"),
        ("mcpServers: {a: {command: x}}\n", "a", "mcpServers: {}\n"),
    ],
)
def test_a_server_is_removed(before: str, name: str, after: str) -> None:
    assert remove_server(before, name) == after


@pytest.mark.parametrize(
    ("before", "disabled", "after"),
    [
        (
            "mcpServers:\n  a:\n    command: x # y\n",
            True,
            "mcpServers:\n  a:\n    command: x # y\n    disabled: true\n",
        ),
        ("mcpServers:\n  a: {command: x}\n", True, "mcpServers:\n  a: {command: x, disabled: true}\n"),
        (
            "mcpServers:\n  a: {disabled: true, command: x}\n",
            False,
            "mcpServers:\n  a: {disabled: false, command: x}\n",
        ),
        ("mcpServers:\n  a: {command: x}\n", False, "mcpServers:\n  a: {command: x}\n"),
    ],
)
def test_a_server_is_disabled_or_enabled(before: str, disabled: bool, after: str) -> None:
    assert set_disabled(before, "a", disabled) == after


@pytest.mark.parametrize("text", ["mcpServers:\n", "mcpServers: [a]\n", "- a\n", "mcpServers: &x {}\nother: *x\n"])
def test_where_there_is_no_safe_place_nothing_is_written(text: str) -> None:
    with pytest.raises(UneditableLayout):
        add_server(text, "git", ENTRY)


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=30)


@given(WORDS, st.lists(WORDS, max_size=3), st.dictionaries(st.from_regex(r"[A-Z]{1,8}", fullmatch=True), WORDS))
def test_any_value_is_read_back_as_it_was(command: str, args: list[str], env: dict[str, str]) -> None:
    entry = {"command": command, "args": args, "env": env}
    try:
        text = add_server("glance: off\n", "git", entry)
    except UneditableLayout:
        return
    assert load_yaml(text)["mcpServers"]["git"] == entry
    assert load_yaml(format_server("git", entry))["mcpServers"]["git"] == entry
