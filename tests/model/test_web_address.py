"""Is every URL read in one way, and refused if other programs would read it in another?"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_server.model.web_address import MAX_CHARS, BadWebAddress, parse_web_address

TABLE = Path(__file__).parents[1] / "tables" / "web_addresses.yaml"
ROWS: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: repr(row["url"]))
def test_each_url_is_read_as_the_table_says(row: dict[str, Any]) -> None:
    if "reads" in row:
        assert parse_web_address(row["url"]).url == row["reads"]
        return
    with pytest.raises(BadWebAddress, match=row["wrong"]) as refused:
        parse_web_address(row["url"])
    assert refused.value.way_out


def test_a_url_without_end_is_refused() -> None:
    with pytest.raises(BadWebAddress, match="longer than"):
        parse_web_address("http://example.org/" + "a" * MAX_CHARS)


PIECES = st.lists(
    st.sampled_from([*"/?#@:%[]\\.;&=+ ", "http://", "https://", "127.0.0.1", "::1", "a.example", "ü", "%41", "%00"])
    | st.characters(),
    max_size=12,
)


@given(st.sampled_from(["http://", "https://", "http://a.example", ""]), PIECES)
@example("http://a.example", ["?"])
@example("http://a.example", ["?", "?"])
@example("http://a.example", ["#", "@", "b.example"])
@example("http://a.example", [":80", "@b.example"])
def test_what_is_read_is_what_every_other_reader_sees(start: str, pieces: list[str]) -> None:
    """The standard library and the HTTP library, given our spelling, mean the same host, and read again it stays."""
    try:
        address = parse_web_address(start + "".join(pieces))
    except BadWebAddress:
        return
    assert address.url.isascii()
    assert parse_web_address(address.url) == address
    split, theirs = urlsplit(address.url), httpcore2.URL(address.url)
    assert (split.hostname, split.port or {"http": 80, "https": 443}[split.scheme]) == (address.host, address.port)
    assert theirs.host.decode().strip("[]") == address.host
    assert theirs.target.decode() == address.target


@pytest.mark.parametrize(
    ("reference", "leads"),
    [
        ("../d?e#f", "https://a.example/d?e"),
        ("//b.example/c", "https://b.example/c"),
        ("?q", "https://a.example/b/c?q"),
        ("http://bücher.example", "http://xn--bcher-kva.example/"),
        (" /x y ", "https://a.example/x%20y"),
        ("file:///etc/passwd", None),
        ("javascript:alert(1)", None),
        ("//user@b.example/", None),
        ("//[", None),
    ],
)
def test_a_link_leads_where_a_browser_would_go(reference: str, leads: str | None) -> None:
    page = parse_web_address("https://a.example/b/c")
    if leads is not None:
        assert page.join(reference).url == leads
        return
    with pytest.raises(BadWebAddress):
        page.join(reference)
