"""How is an answer shown? A page of lines, what was left out and why, who answered, and the call for the next page."""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mcp_server.model.results import Done
from mcp_server.model.text import escape_for_model, format_count
from tools.lsp.definitions import PAGE
from tools.lsp.locations import SortedPlaces, TextCache, sort_by_file
from tools.lsp.queries import LspAnswer, LspItem
from tools.lsp.servers import LanguageServer
from tools.lsp.text import format_shown_line

MAX_TEXT_CHARS = 10_000
MAX_OUTSIDE_NAMES = 3


class LspQuestion(Struct, frozen=True):
    """The call, and who answered it."""

    arguments: Mapping[str, Any]
    root: str
    server: LanguageServer
    indexing: bool

    @property
    def limit(self) -> int:
        return self.arguments.get("limit", PAGE)

    @property
    def offset(self) -> int:
        return self.arguments.get("offset", 0)


def render_text_answer(question: LspQuestion, answer: LspAnswer) -> Done:
    text = escape_for_model(answer.text[:MAX_TEXT_CHARS]) + ("…" if len(answer.text) > MAX_TEXT_CHARS else "")
    shown = text or f"`{question.server.name}` has no information about `{question.arguments['symbol']}` there."
    return Done(f"{shown}\n\n[{_describe_source(question)}]", meta=_build_meta(question, 1 if text else 0))


def render_places(question: LspQuestion, answer: LspAnswer, texts: TextCache) -> Done:
    places = sort_by_file(question.root, texts.queried_path, [(item.place, item.note or "") for item in answer.items])
    total = len(places.inside)
    page = places.inside[question.offset : question.offset + question.limit]
    rendered = [_render_item(answer.items[index], path, texts) for path, index in page]
    lines = [line for item_lines in rendered for line in item_lines]
    notes = [_describe_count(question, answer, places, len(page))]
    if places.outside:
        notes.append(_describe_outside(places, answer))
    if hidden := rendered.count([]):
        notes.append(f"{hidden:,} cannot be shown (a link, a secret, or not text).")
    if any(item.edits for item in answer.items):
        notes.append("Nothing was written; use `Edit` for that.")
    notes.append(_describe_source(question))
    if question.offset + len(page) < total:
        call = json.dumps({**question.arguments, "offset": question.offset + len(page)}, ensure_ascii=False)
        notes.append(f"Continue with lsp_tool {call}")
    note = f"[{' '.join(notes)}]"
    return Done("\n".join([*lines, "", note]) if lines else note, meta=_build_meta(question, total))


def _render_item(item: LspItem, path: str, texts: TextCache) -> list[str]:
    """Render the lines of an item; none if they must not be shown."""
    if not item.edits:
        line = texts.format_line(item.place, path, item.note)
        return [] if line is None else [line]
    if not item.place.start:
        return [f"{escape_for_model(path)}\t{escape_for_model(edit.text)}" for edit in item.edits]
    return _render_edited_lines(item, path, texts)


def _render_edited_lines(item: LspItem, path: str, texts: TextCache) -> list[str]:
    """Render a line as it is and as it would be with all its edits."""
    text, offsets = texts.get_text(path), texts.find_offsets(item.place, path)
    spans = [texts.find_offsets(edit.range, path) for edit in item.edits]
    if text is None or offsets is None or None in spans:
        return []
    number, column = text.to_line_column(offsets[0])
    start = copied_to = text.get_line_bounds(number)[0]
    stop = max(text.get_line_bounds(text.to_line_column(span[1])[0])[1] for span in spans if span)
    after = ""
    for edit, span in zip(item.edits, spans, strict=True):
        if span and span[0] >= copied_to:
            after += text.text[copied_to : span[0]] + edit.text
            copied_to = span[1]
    prefix = f"{escape_for_model(path)}:{number}:{column}\t"
    before, after = text.text[start:stop], after + text.text[copied_to:stop]
    return [
        *(f"{prefix}- {format_shown_line(line)}" for line in before.split("\n")),
        *(f"{prefix}+ {format_shown_line(line)}" for line in after.split("\n")),
    ]


def _describe_count(question: LspQuestion, answer: LspAnswer, places: SortedPlaces, shown: int) -> str:
    total, files = len(places.inside), len({path for path, _ in places.inside})
    if not total:
        symbol = f" of `{question.arguments['symbol']}`" if question.arguments.get("symbol") else ""
        return f"No {answer.plural}{symbol} in the workspace."
    count = f"{format_count(total, answer.noun, answer.plural)} in {format_count(files, 'file')}"
    if shown == total:
        return f"{count}."
    first = question.offset + 1
    return f"{count}; {first:,}-{first + shown - 1:,} are shown." if shown else f"{count}; none from {first:,} on."


def _describe_outside(places: SortedPlaces, answer: LspAnswer) -> str:
    names = list(dict.fromkeys(f"`{name}`" for name in places.outside if name))
    shown = ", ".join(names[:MAX_OUTSIDE_NAMES]) + (", …" if len(names) > MAX_OUTSIDE_NAMES else "")
    count = len(places.outside)
    noun, verb = (answer.noun, "lies") if count == 1 else (answer.plural, "lie")
    return f"{count:,} {noun}{f' ({shown})' if names else ''} {verb} outside the workspace and cannot be shown."


def _describe_source(question: LspQuestion) -> str:
    note = f", and {question.server.note}" if question.server.note else ""
    source = f"`{question.server.name}` answered{note}."
    if question.indexing:
        source += " It was still indexing the project, so there may be more; call again later."
    return source


def _build_meta(question: LspQuestion, total: int) -> dict[str, Any]:
    return {"server": question.server.name, "indexing": question.indexing, "total": total}
