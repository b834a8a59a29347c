"""Does an address of a server name its server here, and lose that on its way back?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.policy.upstream_uris import (
    find_view,
    list_uris,
    matches_template,
    prefix_block,
    prefix_meta,
    prefix_uri,
    strip_uri,
)


@pytest.mark.parametrize(
    ("own", "shown"),
    [
        ("memo://notes", "memo://s/notes"),
        ("file:///etc/hosts", "file://s//etc/hosts"),
        ("ui://panel/a", "ui://s/panel/a"),
        ("urn:isbn:1", "urn:s/isbn:1"),
        ("memo://days/{day}", "memo://s/days/{day}"),
        ("memo://", "memo://s/"),
    ],
)
def test_an_address_gets_the_prefix_and_loses_it(own: str, shown: str) -> None:
    assert prefix_uri("s", own) == shown
    assert strip_uri("s", shown) == own
    assert strip_uri("other", shown) is None


@pytest.mark.parametrize("uri", ["https://example.org/a", "HTTP://s/a", "no address", ""])
def test_what_others_can_open_or_is_no_address_stays(uri: str) -> None:
    assert prefix_uri("s", uri) == uri
    assert strip_uri("s", uri) is None


def test_without_a_prefix_an_address_stays() -> None:
    assert prefix_uri("", "memo://a") == "memo://a"
    assert strip_uri("", "memo://a") is None


@given(st.from_regex(r"\A[a-z][a-z0-9+.-]{0,9}:(//)?[^\s]{0,30}\Z"))
def test_every_address_comes_back(uri: str) -> None:
    shown = prefix_uri("server", uri)
    assert shown == uri or strip_uri("server", shown) == uri


@pytest.mark.parametrize(
    ("template", "uri", "answer"),
    [
        ("memo://days/{day}", "memo://days/monday", True),
        ("memo://days/{day}", "memo://days/", True),
        ("memo://days/{day}", "memo://days/a/b", False),
        ("memo://days/{day}", "memo://weeks/a", False),
        ("memo://{a}/{b}", "memo://x/y", True),
        ("memo://{a}/{b}", "memo://x", False),
        ("file:///{+path}", "file:///a/b/c", True),
        ("file:///{path*}", "file:///a/b", True),
        ("memo://{a}.md", "memo://x.md", True),
        ("memo://{a}.md", "memo://x.txt", False),
        ("memo://a{?q,r}", "memo://a?q=1", True),
        ("memo://{a}{?q}", "memo://x?q=1", True),
        ("memo://fixed", "memo://fixed", True),
        ("memo://fixed", "memo://fixed/more", False),
    ],
)
def test_an_address_fits_its_template(template: str, uri: str, answer: bool) -> None:
    assert matches_template(template, uri) is answer


def test_a_hostile_template_takes_no_time() -> None:
    assert not matches_template("memo://" + "{+a}x" * 2_000 + "y", "memo://" + "x" * 8_000)


def test_addresses_in_blocks_and_views_are_prefixed() -> None:
    block: dict[str, Any] = {
        "type": "resource",
        "resource": {"uri": "memo://a", "_meta": {"ui": {"resourceUri": "ui://v", "x": 1}}},
    }
    assert prefix_block("s", block) == {
        "type": "resource",
        "resource": {"uri": "memo://s/a", "_meta": {"ui": {"resourceUri": "ui://s/v", "x": 1}}},
    }
    assert prefix_meta("s", {"ui/resourceUri": "ui://v", "k": 1}) == {"ui/resourceUri": "ui://s/v", "k": 1}
    assert prefix_meta("s", {"ui": "text"}) == {"ui": "text"}
    assert list(list_uris((block, {"type": "resource_link", "uri": "memo://b"}, {"type": "text"}))) == [
        "memo://a",
        "memo://b",
    ]


@pytest.mark.parametrize(
    ("meta", "view"),
    [({"ui": {"resourceUri": "ui://v"}}, "ui://v"), ({"ui/resourceUri": "ui://v"}, "ui://v"), ({}, None), ([], None)],
)
def test_the_view_of_a_tool_is_found(meta: Any, view: str | None) -> None:
    assert find_view(meta) == view
