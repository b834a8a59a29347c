"""How is an answer shown? A page of lines, what was left out and why, who said it, and the call that goes on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_server.model.results import Done
from mcp_server.model.text import make_visible
from tools.lsp.definitions import PAGE
from tools.lsp.locations import MOST_NAMED, Shelf, Sorted, sort_by_file
from tools.lsp.queries import LspAnswer, LspItem
from tools.lsp.servers import LanguageServer
from tools.lsp.text import format_shown_line

MOST_SAID = 10_000


@dataclass(frozen=True, slots=True)
class LspQuestion:
    """The call as it was made, and who answered."""

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
    """An answer in words."""
    text = make_visible(answer.text[:MOST_SAID]) + ("…" if len(answer.text) > MOST_SAID else "")
    said = text or f"`{question.server.name}` knows nothing to say about `{question.arguments['symbol']}` there."
    return Done(f"{said}\n\n[{_describe_source(question)}]", meta=_build_meta(question, 1 if text else 0))


def render_places(question: LspQuestion, answer: LspAnswer, shelf: Shelf) -> Done:
    places = sort_by_file(question.root, shelf.asked, [(entry.place, entry.says or "") for entry in answer.entries])
    total = len(places.within)
    page = places.within[question.offset : question.offset + question.limit]
    lines = [line for path, index in page for line in render_item(answer.entries[index], path, shelf)]
    hidden = sum(1 for path, index in page if not render_item(answer.entries[index], path, shelf))
    notes = [_describe_count(question, answer, places, len(page))]
    if places.outside:
        notes.append(_describe_outside(places, answer))
    if hidden:
        notes.append(f"{hidden:,} cannot be shown (a link, a secret, or no text).")
    if any(entry.edits for entry in answer.entries):
        notes.append("Nothing was written; `Edit` does that.")
    notes.append(_describe_source(question))
    if question.offset + len(page) < total:
        call = json.dumps({**question.arguments, "offset": question.offset + len(page)}, ensure_ascii=False)
        notes.append(f"Go on with lsp_tool {call}")
    note = f"[{' '.join(notes)}]"
    return Done("\n".join([*lines, "", note]) if lines else note, meta=_build_meta(question, total))


def render_item(entry: LspItem, path: str, shelf: Shelf) -> list[str]:
    """The lines an entry is shown as; none where it is not to be shown."""
    if not entry.edits:
        line = shelf.format_line(entry.place, path, entry.says)
        return [] if line is None else [line]
    if not entry.place.start:
        return [f"{make_visible(path)}\t{make_visible(change.text)}" for change in entry.edits]
    return render_edited_lines(entry, path, shelf)


def render_edited_lines(entry: LspItem, path: str, shelf: Shelf) -> list[str]:
    """A line before and after, with every edit on it applied."""
    text, at = shelf.get_text(path), shelf.find_offsets(entry.place, path)
    spans = [shelf.find_offsets(change.range, path) for change in entry.edits]
    if text is None or at is None or None in spans:
        return []
    number, column = text.to_line_column(at[0])
    start = begin = text.get_line_bounds(number)[0]
    stop = max(text.get_line_bounds(text.to_line_column(span[1])[0])[1] for span in spans if span)
    after = ""
    for change, span in zip(entry.edits, spans, strict=True):
        if span and span[0] >= begin:
            after += text.text[begin : span[0]] + change.text
            begin = span[1]
    where = f"{make_visible(path)}:{number}:{column}\t"
    before, after = text.text[start:stop], after + text.text[begin:stop]
    return [
        *(f"{where}- {format_shown_line(line)}" for line in before.split("\n")),
        *(f"{where}+ {format_shown_line(line)}" for line in after.split("\n")),
    ]


def _describe_count(question: LspQuestion, answer: LspAnswer, places: Sorted, page: int) -> str:
    total, files = len(places.within), len({path for path, _ in places.within})
    if not total:
        about = f" of `{question.arguments['symbol']}`" if question.arguments.get("symbol") else ""
        return f"No {answer.many}{about} in the workspace."
    said = f"{total:,} {answer.one if total == 1 else answer.many} in {files:,} file{'' if files == 1 else 's'}"
    if page < total:
        first = question.offset + 1
        said += f"; {first:,}-{first + page - 1:,} are shown" if page else f"; there is nothing from {first:,} on"
    return said + "."


def _describe_outside(places: Sorted, answer: LspAnswer) -> str:
    names = list(dict.fromkeys(f"`{name}`" for name in places.outside if name))
    named = f" ({', '.join(names[:MOST_NAMED])}{', …' if len(names) > MOST_NAMED else ''})" if names else ""
    count = len(places.outside)
    what, are = (answer.one, "lies") if count == 1 else (answer.many, "lie")
    return f"{count:,} {what}{named} {are} outside of it and cannot be shown."


def _describe_source(question: LspQuestion) -> str:
    note = f", and {question.server.note}" if question.server.note else ""
    said = f"`{question.server.name}` answered{note}."
    if question.indexing:
        said += " It was still indexing the project: there may be more; ask again in a while."
    return said


def _build_meta(question: LspQuestion, total: int) -> dict[str, Any]:
    return {"server": question.server.name, "indexing": question.indexing, "total": total}
