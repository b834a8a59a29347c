"""Is a page read as a person sees it, whatever it is made of, and quickly?"""

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.guards.readers.html import read_html
from tests.yaml_text import load_yaml

ROWS: list[dict[str, Any]] = load_yaml((Path(__file__).parents[2] / "tables" / "pages.yaml").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["html"][:60])
def test_a_page_says_what_a_person_sees(row: dict[str, Any]) -> None:
    page = read_html(row["html"].encode(), "utf-8", "https://page.example/p/")
    assert (page.text, page.hidden) == (row["text"], row.get("hidden", 0))


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("ä".encode(), "utf-8", "ä"),
        ("ä".encode("latin-1"), "iso-8859-1", "ä"),
        ("<meta charset=utf-8>ä".encode(), None, "ä"),
        ("<meta charset=utf-8>ä".encode(), "no-such-charset", "ä"),
        ("日本".encode("shift_jis"), "shift_jis", "日本"),
        (b"\xff\xfe\x00a", "utf-8", None),
        (b"\x00" * 1000, None, None),
    ],
)
def test_each_charset_is_read_or_given_up(data: bytes, charset: str | None, text: str | None) -> None:
    page = read_html(data, charset, "")
    assert text is None or page.text == text


HOSTILE = {
    "deep": b"<div>" * 20_000 + b"x",
    "bold": b"<b>" * 50_000 + b"x",
    "lists": b"<ul><li>a" * 20_000,
    "quotes": b"<blockquote>x" * 20_000,
    "links": b"<p>" + b"<a href=x>y</a>" * 50_000,
    "blanks": b"<p>" + b"<span> </span>" * 100_000,
    "attributes": b"<p " + b"a=b " * 300_000 + b">x",
    "styles": b"<style>" + b".a{" * 200_000 + b"</style>x",
    "selectors": b"<style>" + b"a," * 400_000 + b"{display:none}</style>x",
    "a style": b"<p style='" + b"color:" * 200_000 + b"'>x",
    "cells": b"<table>" + b"<tr><td>1<td>2" * 30_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_page_takes_long(name: str) -> None:
    start = time.process_time()
    page = read_html(HOSTILE[name], None, "https://page.example/")
    assert time.process_time() - start < 5.0
    assert len(page.text) < 3 * len(HOSTILE[name])
    assert page.cut == (name in ("deep", "bold", "lists", "quotes"))


@given(
    st.lists(
        st.sampled_from(
            [
                "<p>",
                "<ul>",
                "<li>",
                "</ul>",
                "<b>",
                "</b>",
                "<pre>",
                "<td>",
                "<a href=x>",
                "</a>",
                "x",
                "\n",
                "<",
                "&",
                "<blockquote>",
            ]
        )
        | st.text(max_size=5),
        max_size=30,
    )
)
def test_any_page_is_read(pieces: list[str]) -> None:
    page = read_html("".join(pieces).encode("utf-8", "replace"), "utf-8", "https://page.example/")
    assert page.text == page.text.strip()
    assert "\n\n\n" not in page.text or "```" in page.text
