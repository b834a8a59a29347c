"""What does a page say to the person who looks at it? Its text as Markdown, without what nobody can see.

Runs in the reader's process only: the parser is written in C, and the page may be anybody's. Every element is visited
once, and nothing recurses, so that neither depth nor size makes it slow.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from urllib.parse import urljoin

from mcp_server.guards.readers.hidden import HiddenStyles

NEVER_SHOWN = frozenset(
    (
        *("script", "style", "noscript", "template", "head", "iframe", "object", "embed", "svg", "math", "canvas"),
        *("audio", "video", "select", "datalist", "button", "input", "textarea", "dialog"),
    )
)
AROUND = frozenset(("nav", "aside", "footer"))
AROUND_ROLES = frozenset(("navigation", "banner", "contentinfo", "search", "complementary"))
BLOCKS = frozenset(
    (
        *("p", "div", "section", "article", "main", "header", "footer", "aside", "nav", "figure", "figcaption", "form"),
        *("address", "details", "summary", "fieldset", "dl", "dt", "dd", "ul", "ol", "table", "body", "html"),
    )
)
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
INLINE_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`", "kbd": "`", "samp": "`"}
FRAMED = frozenset(("a", "li", "blockquote", "pre", "td", "th", "tr", "caption", *HEADINGS, *INLINE_MARKS))
"""Elements whose text is gathered first and then written as a whole."""
MAX_FRAMES = 32
"""Elements nested more deeply than that are written as plain text: each level would indent all lines once more."""
SPACES, EMPTY_LINES = re.compile(r"[ \t\r\n\f\v\xa0]+"), re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


@dataclass(frozen=True, slots=True)
class PageText:
    title: str
    text: str
    hidden: int = 0
    """How many parts that nobody can see were left out."""
    cut: bool = False
    """True if some of the page was nested too deeply to be read."""


@dataclass
class Frame:
    element: Any = None
    parts: list[str] = field(default_factory=list[str])


def read_html(data: bytes, charset: str | None, address: str) -> PageText:
    etree: Any = import_module("lxml.etree")  # in the extra `web`, and without types
    parser = etree.HTMLParser(
        encoding=_find_known_charset(charset),
        recover=True,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        huge_tree=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if "unknown error" in str(error):  # how the parser reports that it got no memory
            raise MemoryError from None
        root = None
    if root is None:
        return PageText("", "")
    title = next((SPACES.sub(" ", "".join(one.itertext())).strip() for one in root.iter("title")), "")
    base = next((one.get("href") for one in root.iter("base") if one.get("href")), "")
    styles = HiddenStyles.from_texts("".join(one.itertext()) for one in root.iter("style"))
    main = find_main_part(root)
    writer = MarkdownWriter(_join(address, base) if base else address, styles, whole=main is root)
    writer.write(etree.iterwalk(main, events=("start", "end")))
    cut = any("depth" in fault.message for fault in parser.error_log)
    return PageText(title, writer.get_text(), writer.hidden, cut)


def _find_known_charset(charset: str | None) -> str | None:
    """Return None for a charset that nobody knows: then the page's own word counts, or Latin-1."""
    try:
        return codecs.lookup(charset).name if charset else None
    except (LookupError, ValueError):
        return None


def find_main_part(root: Any) -> Any:
    """Return the part that the page itself marks as its content, if there is exactly one."""
    for matches in (
        [one for one in root.iter("main") if one.get("hidden") is None],
        [one for one in root.iter() if one.get("role") == "main"],
        list(root.iter("article")),
    ):
        if len(matches) == 1:
            return matches[0]
    return root


def _join(address: str, reference: str) -> str:
    try:
        return urljoin(address, reference.strip())
    except ValueError:
        return ""


class MarkdownWriter:
    def __init__(self, address: str, styles: HiddenStyles, whole: bool) -> None:
        self._address, self._styles, self._whole = address, styles, whole
        self._frames, self._lists = [Frame()], list[tuple[str, int]]()
        self._skipped: Any = None
        self._preformatted = 0
        self.hidden = 0

    def get_text(self) -> str:
        text = "".join(self._frames[0].parts)
        return EMPTY_LINES.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip()

    def write(self, events: Iterator[tuple[str, Any]]) -> None:
        for event, element in events:
            if self._skipped is not None:
                if event == "end" and element is self._skipped:
                    self._skipped = None
                    self._add_text(element.tail)
            elif event == "start":
                self._begin(element)
            else:
                self._end(element)
                self._add_text(element.tail)

    def _begin(self, element: Any) -> None:
        tag = element.tag if isinstance(element.tag, str) else ""
        if self._is_left_out(element, tag):
            self._skipped = element
            return
        if tag in ("ul", "ol"):
            self._lists.append((tag, 0))
        if tag in BLOCKS:
            self._add("\n\n" if tag not in ("ul", "ol") or len(self._lists) < 2 else "\n")
        if tag == "pre":
            self._preformatted += 1
        if tag in FRAMED and len(self._frames) < MAX_FRAMES:
            self._frames.append(Frame(element))
        if tag == "br":
            self._add("\n")
        elif tag == "hr":
            self._add("\n\n---\n\n")
        elif tag == "img" and (alt := SPACES.sub(" ", element.get("alt") or "").strip()):
            # Without its address: a client that shows the picture would tell its host.
            self._add(f"[image: {alt}]")
        self._add_text(element.text)

    def _end(self, element: Any) -> None:
        tag = element.tag if isinstance(element.tag, str) else ""
        if element is self._frames[-1].element:
            text = "".join(self._frames.pop().parts)
            self._add(FORMATS.get(tag, _format_inline)(self, element, tag, text))
        if tag == "pre":
            self._preformatted -= 1
        if tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        if tag in BLOCKS:
            self._add("\n\n" if not self._lists else "\n")

    def _is_left_out(self, element: Any, tag: str) -> bool:
        if tag in NEVER_SHOWN:
            return True
        if self._whole and (tag in AROUND or element.get("role") in AROUND_ROLES):
            return True
        if self._styles.hides(tag, element.attrib):
            self.hidden += bool("".join(element.itertext()).strip())
            return True
        return False

    def _add(self, text: str) -> None:
        self._frames[-1].parts.append(text)

    def _add_text(self, text: str | None) -> None:
        if not text:
            return
        if not self._preformatted:
            text = SPACES.sub(" ", text)
            before = self._frames[-1].parts
            if text.startswith(" ") and before and before[-1].endswith((" ", "\n")):
                text = text[1:]
        self._add(text)

    def format_link(self, element: Any, tag: str, text: str) -> str:
        label = SPACES.sub(" ", text).strip()
        address = _join(self._address, element.get("href") or "")
        if not label or not address.startswith(("http://", "https://")) or any(one in address for one in " <>\n"):
            return text
        return f"[{label}]({address.replace('(', '%28').replace(')', '%29')})"

    def format_item(self, element: Any, tag: str, text: str) -> str:
        mark = "-"
        if self._lists:
            kind, count = self._lists[-1]
            self._lists[-1] = (kind, count + 1)
            mark = f"{count + 1}." if kind == "ol" else "-"
        lines = EMPTY_LINES.sub("\n", text.strip()).split("\n")
        indent = " " * (len(mark) + 1)
        return "\n" + f"\n{indent}".join((f"{mark} {lines[0].strip()}", *lines[1:]))

    def format_heading(self, element: Any, tag: str, text: str) -> str:
        label = SPACES.sub(" ", text).strip()
        return f"\n\n{HEADINGS[tag]} {label}\n\n" if label else ""

    def format_quote(self, element: Any, tag: str, text: str) -> str:
        lines = EMPTY_LINES.sub("\n\n", text.strip()).split("\n")
        return "\n\n" + "\n".join(f"> {line}".rstrip() for line in lines) + "\n\n"

    def format_code(self, element: Any, tag: str, text: str) -> str:
        fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
        return f"\n\n{fence}\n{text.strip(chr(10))}\n{fence}\n\n"

    def format_cell(self, element: Any, tag: str, text: str) -> str:
        return SPACES.sub(" ", text).strip().replace("|", "\\|") + " | "

    def format_row(self, element: Any, tag: str, text: str) -> str:
        return f"\n| {text.strip()}" if text.strip() else ""

    def format_caption(self, element: Any, tag: str, text: str) -> str:
        return f"\n\n{text.strip()}\n"

    def format_inline(self, element: Any, tag: str, text: str) -> str:
        inside = text.strip()
        if not inside or self._preformatted:
            return text
        mark = INLINE_MARKS[tag]
        before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        return f"{before}{mark}{inside}{mark}{after}"


_format_inline: Callable[[MarkdownWriter, Any, str, str], str] = MarkdownWriter.format_inline
FORMATS: dict[str, Callable[[MarkdownWriter, Any, str, str], str]] = {
    "a": MarkdownWriter.format_link,
    "li": MarkdownWriter.format_item,
    "blockquote": MarkdownWriter.format_quote,
    "pre": MarkdownWriter.format_code,
    "td": MarkdownWriter.format_cell,
    "th": MarkdownWriter.format_cell,
    "tr": MarkdownWriter.format_row,
    "caption": MarkdownWriter.format_caption,
    **dict.fromkeys(HEADINGS, MarkdownWriter.format_heading),
}
