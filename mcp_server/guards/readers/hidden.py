"""Can a person see this element? Looks at its attributes and at the page's own style sheets.

What no person can see was often written for a model, so it is left out. This is no browser: a page that works at it can
still hide text, with scripts or nested selectors.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MAX_STYLE_CHARS = 1 << 20
MAX_SELECTORS = 10_000
SIMPLE_SELECTOR = re.compile(r"(?P<tag>[a-zA-Z][\w-]*)?(?P<kind>[.#])(?P<name>-?[_a-zA-Z][\w-]*)")
DECLARATION = re.compile(r"([a-z-]+)\s*:\s*([^;]*)")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
NUMBER = re.compile(r"(-?\d*\.?\d+)\s*(px|pt|em|rem|%|vw|vh)?")
SMALL, FAR = 2.0, 500.0
"""Below so many pixels nobody reads a text; beyond so many to the left or above it is off the screen."""
WHITE = frozenset(
    ("white", "#fff", "#ffffff", "rgb(255,255,255)", "transparent", "rgba(0,0,0,0)", "#ffffff00", "#fff0")
)


@dataclass(frozen=True, slots=True)
class HiddenStyles:
    """The classes and ids that the page's style sheets hide."""

    names: frozenset[str]
    """As in a selector: `.name` or `#name`."""

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "HiddenStyles":
        names = set[str]()
        for text in texts:
            for part in COMMENT.sub("", text[:MAX_STYLE_CHARS]).split("}"):
                selectors, _, body = part.partition("{")
                # A rule inside `@media` holds on some screens only.
                if "@" in selectors or "{" in body or not is_style_hiding(body):
                    continue
                for selector in selectors.split(",")[:MAX_SELECTORS]:
                    if match := SIMPLE_SELECTOR.fullmatch(selector.strip()):
                        names.add(match["kind"] + match["name"])
        return cls(frozenset(names))

    def hides(self, tag: str, attributes: Mapping[str, str]) -> bool:
        if not attributes:
            return False
        if "hidden" in attributes or attributes.get("aria-hidden", "").strip().lower() == "true":
            return True
        if "style" in attributes and is_style_hiding(attributes["style"]):
            return True
        if not self.names:
            return False
        own = {f".{name}" for name in attributes.get("class", "").split()} | {f"#{attributes.get('id', '')}"}
        return not own.isdisjoint(self.names)


def is_style_hiding(style: str) -> bool:
    """Do these declarations make an element's text invisible?"""
    given = {key: value.replace("!important", "").strip() for key, value in DECLARATION.findall(style.lower())}
    if given.get("display") == "none" or given.get("visibility") in ("hidden", "collapse"):
        return True
    if _is_at_most(given.get("opacity"), 0.05) or _is_at_most(given.get("font-size"), SMALL):
        return True
    if _is_off_screen(given) or _is_clipped(given):
        return True
    return _is_like_background(given)


def _get_number(value: str | None) -> float | None:
    match = NUMBER.match(value or "")
    if match is None:
        return None
    return float(match[1]) * (16 if match[2] in ("em", "rem") else 1)


def _is_at_most(value: str | None, limit: float) -> bool:
    number = _get_number(value)
    return number is not None and number <= limit and not (value or "").endswith("%")


def _is_off_screen(given: Mapping[str, str]) -> bool:
    moved = ("text-indent", "margin-left", "margin-top")
    if given.get("position") in ("absolute", "fixed", "relative"):
        moved = (*moved, "left", "top", "right", "bottom")
    distances = (_get_number(given.get(name)) for name in moved)
    return any(distance is not None and distance <= -FAR for distance in distances)


def _is_clipped(given: Mapping[str, str]) -> bool:
    clip = given.get("clip", "").replace(" ", "")
    if re.match(r"rect\((0(px)?,?|1px,?){4}\)", clip) or given.get("clip-path", "").replace(" ", "") == "inset(50%)":
        return True
    sizes = (_get_number(given.get(name)) for name in ("width", "height", "max-width", "max-height"))
    return given.get("overflow") == "hidden" and any(size is not None and size <= 1 for size in sizes)


def _is_like_background(given: Mapping[str, str]) -> bool:
    colour = given.get("color", "").replace(" ", "")
    background = given.get("background-color", given.get("background", "")).replace(" ", "")
    if not colour:
        return False
    return colour == background or (colour in WHITE and (not background or background in WHITE))
