"""Which mode was meant? A number, a name, a title, a trigger, or words of a description; the same answer every time.

Exact matches win. Otherwise the points of the tables below decide, in whole numbers, so the result is the same on every
machine. The numbers offered are always those of the menu, so an answer to the offer needs no memory of it.
"""

import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from mcp_server.model.menus import Menus, Mode

# docs/router.md is generated from these.
FIELD = {"name": 100, "title": 100, "trigger": 100, "description": 40}
SHAPE = {"the whole text": 60, "a whole word": 30, "the beginning of a word": 15, "inside a word": 0}
SHORTEST = {"name": 2, "title": 2, "trigger": 2, "description": 3}
THRESHOLD = 55
SIMILAR = 10
HIGH = 150
MEDIUM = 100


class Confidence(StrEnum):
    EXACT = "exact"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Route(Struct, frozen=True):
    mode: str
    confidence: Confidence


class RouteChoice(Struct, frozen=True):
    """Several modes match, or the number is out of range: the modes to choose from, by menu number."""

    candidates: tuple[tuple[int, str], ...]
    note: str


class NoRoute(Struct, frozen=True):
    """No mode matches."""


def route(text: str, menus: Menus) -> Route | RouteChoice | NoRoute:
    query = _normalize_query(text)
    if not query or not menus.modes:
        return NoRoute()
    return _route_by_number(query, menus) or _route_exactly(query, menus) or _route_by_score(query, menus)


def normalize_text(text: str) -> str:
    """Unify compatibility forms, fold case, and collapse whitespace."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def _normalize_query(text: str) -> str:
    """Take the first line only; whatever follows is an explanation."""
    lines = text.strip().splitlines()
    return normalize_text(re.sub(r"^[*/]", "", lines[0])) if lines else ""


def _route_by_number(query: str, menus: Menus) -> Route | RouteChoice | None:
    if not query.isdecimal():
        return None
    digits = "".join(str(unicodedata.decimal(char)) for char in query).lstrip("0")
    count = len(menus.modes)
    # Length first: a number of a million digits is out of range and need not be converted.
    if digits and len(digits) <= len(str(count)) and int(digits) <= count:
        return Route(menus.modes[int(digits) - 1].name, Confidence.EXACT)
    return _make_choice(list(range(1, count + 1)), menus, f"numbers go from 1 to {count}")


def _route_exactly(query: str, menus: Menus) -> Route | RouteChoice | None:
    # A name is unique and what the schema offers, so it wins over another mode's trigger of the same text.
    named = [number for number, mode in enumerate(menus, 1) if normalize_text(mode.name) == query]
    numbers = named or [
        number
        for number, mode in enumerate(menus, 1)
        if query in {normalize_text(mode.title), *(normalize_text(trigger) for trigger in mode.triggers)}
    ]
    if len(numbers) == 1:
        return Route(menus.modes[numbers[0] - 1].name, Confidence.EXACT)
    return _make_choice(numbers, menus, "several modes have that name") if numbers else None


def _route_by_score(query: str, menus: Menus) -> Route | RouteChoice | NoRoute:
    points = {number: _score(query, mode) for number, mode in enumerate(menus, 1)}
    top = max(points.values())
    if top < THRESHOLD:
        return NoRoute()
    numbers = [number for number, score in points.items() if score >= max(THRESHOLD, top - SIMILAR)]
    if len(numbers) > 1:
        return _make_choice(numbers, menus, "several modes fit about equally well")
    return Route(menus.modes[numbers[0] - 1].name, grade_confidence(top))


def grade_confidence(points: int) -> Confidence:
    return Confidence.HIGH if points >= HIGH else Confidence.MEDIUM if points >= MEDIUM else Confidence.LOW


def _score(query: str, mode: Mode) -> int:
    points = 0
    for field, text in _list_texts(mode):
        shape = _score_shape(query, normalize_text(text)) if len(query) >= SHORTEST[field] else None
        points = max(points, 0 if shape is None else FIELD[field] + shape)
    return points


def _list_texts(mode: Mode) -> Iterator[tuple[str, str]]:
    yield "name", mode.name
    yield "title", mode.title
    yield from (("trigger", trigger) for trigger in mode.triggers)
    yield "description", mode.description


def _score_shape(query: str, text: str) -> int | None:
    """Score how the query occurs in the text; None if it does not."""
    if query not in text:
        return None
    if query == text:
        return SHAPE["the whole text"]
    pattern = re.escape(query)
    if re.search(rf"(?<!\w){pattern}(?!\w)", text):
        return SHAPE["a whole word"]
    return SHAPE["the beginning of a word" if re.search(rf"(?<!\w){pattern}", text) else "inside a word"]


def _make_choice(numbers: list[int], menus: Menus, note: str) -> RouteChoice:
    return RouteChoice(tuple((number, _format_label(menus.modes[number - 1])) for number in numbers), note)


def _format_label(mode: Mode) -> str:
    return f"{mode.title} (`{mode.name}`)"


def render_points_table() -> str:
    """Render the points as the table of docs/router.md."""
    rows = [["what matches", *SHAPE, "shortest input"], ["---"] * (len(SHAPE) + 2)]
    rows += [
        [field, *(str(weight + shape) for shape in SHAPE.values()), str(SHORTEST[field])]
        for field, weight in FIELD.items()
    ]
    end = (
        f"A mode needs at least {THRESHOLD} points. If other modes are within {SIMILAR} points of the best one, the",
        f"model has to choose by number. Confidence is high from {HIGH} points, medium from {MEDIUM} points, and low",
        "below that.",
    )
    return "\n".join([*(f"| {' | '.join(row)} |" for row in rows), "", *end, ""])
