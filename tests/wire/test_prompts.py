"""Which prompt is offered to whom, and which address fits which template?"""

import pytest

from mcp_server.wire.prompts import match_template


@pytest.mark.parametrize(
    ("template", "uri", "holes"),
    [
        ("menugate://run/{run}/summary", "menugate://run/r1/summary", {"run": "r1"}),
        ("menugate://run/{run}/{what}", "menugate://run/r1/report", {"run": "r1", "what": "report"}),
        ("menugate://report", "menugate://report", {}),
        ("menugate://run/{run}/summary", "menugate://run//summary", None),
        ("menugate://run/{run}/summary", "menugate://run/a/b/summary", None),
        ("menugate://run/{run}/summary", "menugate://run/r1/summary/more", None),
        ("a.b/{x}", "aXb/1", None),
    ],
)
def test_which_address_fits(template: str, uri: str, holes: dict[str, str] | None) -> None:
    assert match_template(template, uri) == holes
