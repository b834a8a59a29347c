"""Are letters and signs that can be taken for others named, and ordinary text in any language left alone?"""

import pytest

from mcp_server.model.look_alikes import find_look_alikes

FOUND = {
    "a Cyrillic letter in a Latin word": ("\u0441url x", {"\u0441": "is Cyrillic"}),
    "two in a path": ("/\u0435t\u0441/passwd", {"\u0435": "is Cyrillic", "\u0441": "is Cyrillic"}),
    "a Greek letter": ("\u03c4est", {"\u03c4": "is Greek"}),
    "a word of disguised letters alone": ("\u0441\u043e\u0440 x", dict.fromkeys("\u0441\u043e\u0440", "is Cyrillic")),
    "wide letters": ("\uff52\uff4d -rf", {"\uff52": "is not r", "\uff4d": "is not m"}),
    "mathematical letters": ("\U0001d5f9s", {"\U0001d5f9": "is not l"}),
    "the Kelvin sign": ("\u212aill", {"\u212a": "is not K"}),
    "a slash that is none": ("docs\u2215a", {"\u2215": "is not /"}),
    "a wide slash": ("docs\uff0fa", {"\uff0f": "is not /"}),
    "a hyphen that starts no option": ("rm \u2010rf", {"\u2010": "is not -"}),
}
ORDINARY = (
    *("cargo test --all", "\u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440", "\u03b1\u03b2\u03b3", "5 \u00b5s"),
    *(
        "stra\u00dfe",
        "na\u00efve",
        "API\u63a5\u53e3",
        "\u65e5\u672c\u8a9efile.txt",
        "\u0442\u0435\u0441\u0442_data",
        "m\u00b2",
        "",
    ),
)


@pytest.mark.parametrize("name", FOUND)
def test_what_can_be_taken_for_something_else_is_named(name: str) -> None:
    text, found = FOUND[name]
    assert dict(find_look_alikes(text)) == found


@pytest.mark.parametrize("text", ORDINARY, ids=ascii)
def test_ordinary_text_has_none(text: str) -> None:
    assert find_look_alikes(text) == []


def test_few_are_enough() -> None:
    assert len(find_look_alikes("a".join(map(chr, range(0x430, 0x450))))) == 5
