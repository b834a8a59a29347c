"""Is a text left out exactly if no person can see it?"""

import pytest

from mcp_server.guards.readers.hidden import HiddenStyles, is_style_hiding


@pytest.mark.parametrize(
    ("style", "hidden"),
    [
        ("display: none", True),
        ("DISPLAY:NONE !important", True),
        ("display: block", False),
        ("visibility: collapse", True),
        ("opacity: 0", True),
        ("opacity: 0.5", False),
        ("opacity: 50%", False),
        ("font-size: 1px", True),
        ("font-size: 0.9em", False),
        ("text-indent: -9999px", True),
        ("text-indent: -2em", False),
        ("position: absolute; left: -5000px", True),
        ("left: -5000px", False),
        ("clip: rect(0 0 0 0)", True),
        ("overflow: hidden; height: 0", True),
        ("height: 0", False),
        ("color: white", True),
        ("color: white; background: #000", False),
        ("color: #123; background-color: #123", True),
        ("", False),
    ],
)
def test_declarations_hide_or_do_not(style: str, hidden: bool) -> None:
    assert is_style_hiding(style) is hidden


def test_a_style_sheet_hides_by_class_and_id() -> None:
    sheet = (
        "/* .c {} */ .a, p.b { display: none } @media print { .d { display: none } } #e { opacity: 0 } .f { top: 0 }"
    )
    styles = HiddenStyles.from_texts([sheet])
    assert styles.names == {".a", ".b", "#e"}
    assert styles.hides("p", {"class": "x b"}) and styles.hides("p", {"id": "e"})
    assert not styles.hides("p", {"class": "d f", "id": "a"})


@pytest.mark.parametrize(
    ("attributes", "hidden"),
    [
        ({"hidden": ""}, True),
        ({"aria-hidden": " TRUE "}, True),
        ({"aria-hidden": "false"}, False),
        ({"style": "display:none"}, True),
        ({}, False),
    ],
)
def test_attributes_hide_without_any_style_sheet(attributes: dict[str, str], hidden: bool) -> None:
    assert HiddenStyles.from_texts([]).hides("p", attributes) is hidden
