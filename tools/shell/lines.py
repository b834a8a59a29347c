"""What does this line of bash say? One parse by tree-sitter, handed on as plain values; nothing else parses lines.

The grammar is trusted only as far as it accounts for every character: a tree with an error, or with anything but blanks
between its parts, counts as not understood. The parts are taken in order and cut into commands at every separator,
because the grammar is sometimes wrong about which words belong together (`>out a b` has one target, not three).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from mcp_server.model.shell import ShellCommand, ShellLine, ShellWord, WordRole
from tools.shell.ansi_strings import decode_ansi_string, is_whole_ansi_string
from tools.shell.arithmetic import find_computed, read_delimited
from tools.shell.expansions import LITERAL_ARITHMETIC
from tools.shell.here_documents import DEEPEST, NotUnderstood, read_roughly, scan_document
from tools.shell.line_syntax import (
    AFTER_CLOSING,
    ARITHMETIC_COMMANDS,
    BEGINNING,
    BLANK,
    CLOSED,
    DELIMITER,
    ESCAPED,
    EXPANDING,
    HIDING,
    IN_QUOTES,
    JOINING,
    KEYWORDS,
    LISTS,
    LITERAL,
    NESTING,
    PLAIN,
    REDIRECTING,
    SEPARATORS,
    SPELLED_OUT,
    WORDS,
    find_expansion_start,
    find_missed_expansions,
    parse_nodes,
)

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 65_536


@lru_cache(maxsize=64)
def read_line(text: str) -> ShellLine | None:
    """Cached, because the decision, the rules, the record and the review ask about the same line."""
    try:
        return _parse_line(text, 0)
    except (NotUnderstood, RecursionError):
        return None


def _parse_line(text: str, depth: int, base: int | None = 0) -> ShellLine:
    """`base`: where the text begins in the whole line; None if it is not a part of it."""
    if len(text) > LONGEST or depth > DEEPEST or "\0" in text:
        raise NotUnderstood
    source = text.encode("utf-8", "replace")
    root = parse_nodes(source)
    if root is None:
        raise NotUnderstood
    return _LineReader(source, depth, 0, base).read((root,), len(source))


@dataclass(slots=True)
class _LineReader:
    """The position in the line, and what was found so far."""

    source: bytes
    depth: int
    at: int
    base: int | None = None
    """Where the source begins in the whole line."""
    span: tuple[int, int] | None = None
    """The current command, in the source."""
    words: list[ShellWord] = field(default_factory=list[ShellWord])
    nested: list[ShellLine] = field(default_factory=list[ShellLine])
    documents: list[ShellLine] = field(default_factory=list[ShellLine])
    commands: list[ShellCommand] = field(default_factory=list[ShellCommand])
    expansions: list[str] = field(default_factory=list[str])
    delimiter: str = ""
    """The word that ends the current here-document."""
    signs: list[str] = field(default_factory=list[str])
    """The separators since the last command."""
    literal: bool = False
    """True if that word is quoted, so that bash expands nothing in the document."""
    redirection: int | None = None
    """The start of the redirection whose target comes next."""
    open: bool = False
    """True if a word ends right here, so that text without a blank between belongs to it."""
    plain: bool = True
    listed: bool = True

    def read(self, nodes: Sequence["Node"], end: int) -> ShellLine:
        waiting = [(node, "") for node in reversed(nodes)]
        while waiting:
            node, parent = waiting.pop()
            if node.start_byte < self.at:
                continue  # a part of arithmetic that is one word
            if node.type == "((" and parent in ARITHMETIC_COMMANDS and self.take_arithmetic(node):
                continue
            if node.type in WORDS or not node.child_count or node.type == "heredoc_body":
                self.take(node, parent)
            else:
                self.plain = self.plain and node.type in PLAIN
                self.listed = self.listed and (
                    node.type in LISTS or (node.type == "variable_assignment" and parent == "command")
                )
                waiting += [(child, node.type) for child in reversed(node.children)]
        self.skip_blank(end)
        self.end_command()
        if self.delimiter:
            raise NotUnderstood
        one = len(self.commands) == 1 and not self.commands[0].nested and not self.commands[0].documents
        return ShellLine(tuple(self.commands), self.plain and one and bool(self.commands[0].words), self.listed)

    def take(self, node: "Node", parent: str) -> None:
        """Take a word, or a sign between words."""
        kind = node.type
        if kind == "program":  # an empty one
            return
        self.skip_blank(node.start_byte)
        self.at = node.end_byte
        if kind != "comment" and (node.is_named or kind not in SEPARATORS):
            self.span = (self.span or node.byte_range)[0], node.end_byte
        if kind == "comment":
            if self.open:  # `a\\<newline>#b` is one word
                raise NotUnderstood
        elif kind == "heredoc_end":
            self.end_document(node)
        elif kind == "heredoc_body":
            self.take_document(node)
        elif parent in REDIRECTING and (kind == "file_descriptor" or (not node.is_named and {*kind} & {*"<>"})):
            self.redirect(node)
        elif kind in SEPARATORS and not node.is_named:
            self.plain = self.plain and kind == "\n"
            self.listed = self.listed and kind in JOINING
            self.end_command(kind)
        else:
            self.add_word(node, parent)

    def take_arithmetic(self, opening: "Node") -> bool:
        """Take `((i++))` as one word, if it only computes."""
        closing = next((one for one in opening.parent.children if one.type == "))"), None) if opening.parent else None
        source = self.text(opening.start_byte, closing.end_byte) if closing else ""
        if closing is None or read_delimited(source) is None or (self.open and self.at == opening.start_byte):
            return False
        self.skip_blank(opening.start_byte)
        self.plain = self.listed = False
        self.span = (self.span or opening.byte_range)[0], closing.end_byte
        self.words.append(ShellWord(source, source, known=False))
        self.expansions.append(source)
        self.nest_texts(find_computed(source), source, opening.start_byte)
        self.at, self.open = closing.end_byte, True
        return True

    def skip_blank(self, end: int) -> None:
        gap = self.source[self.at : end].replace(b"\\\n", b"")
        if gap == b" - ":
            # The grammar drops it before a redirection, as in `python3 - <<EOF`.
            self.words.append(ShellWord("-", "-"))
        elif self.at > end or not BLANK.fullmatch(gap):
            raise NotUnderstood
        if b"\n" in gap:
            self.end_command("\n")
        self.open = self.open and not gap

    def redirect(self, node: "Node") -> None:
        self.plain = False
        start = node.start_byte if self.redirection is None else self.redirection
        if self.open and self.words and self.words[-1].source.isdigit():
            # At the beginning of a line the grammar takes `2` for a word.
            start -= len(self.words.pop().source)
        self.open, self.redirection = False, start
        if node.type.endswith("&-"):
            if self.source[node.end_byte : node.end_byte + 1] not in (b"", *(bytes((one,)) for one in AFTER_CLOSING)):
                raise NotUnderstood  # `>&-touch x` runs touch
            self.end_redirection(ShellWord("-", self.text(start, node.end_byte)))
            self.open = True

    def end_redirection(self, target: ShellWord) -> None:
        self.words.append(ShellWord(target.text, target.source, WordRole.TARGET, target.known))
        self.redirection = None

    def end_command(self, joined: str = "") -> None:
        if self.words or self.nested or self.documents:
            parts = tuple(self.words), tuple(self.nested), tuple(self.documents)
            start, end = self.span or (0, 0)
            span = (self.base + start, self.base + end) if self.base is not None and self.span else None
            self.commands.append(ShellCommand(*parts, joined, tuple(self.expansions), tuple(self.signs), span))
            self.signs = []
        self.signs += filter(None, (joined,))
        self.words, self.nested, self.documents, self.expansions = [], [], [], []
        self.redirection, self.open, self.span = None, False, None

    def text(self, start: int, end: int) -> str:
        return self.source[start:end].decode("utf-8", "replace")

    def add_word(self, node: "Node", parent: str) -> None:
        role = WordRole.ASSIGNMENT if parent in ("variable_assignment", "subscript") else WordRole.WORD
        if not node.is_named and node.type in KEYWORDS:
            role, self.listed = WordRole.KEYWORD, False
        # The grammar takes these for comparisons; between single brackets bash redirects.
        self.plain = self.plain and node.type not in ("<", ">")
        text, known = self.read_word(node)
        if self.redirection is not None:
            self.end_redirection(ShellWord(text, self.text(self.redirection, node.end_byte), known=known))
        elif self.open:
            last, source = self.words.pop(), self.text(*node.byte_range)
            self.words.append(ShellWord(last.text + text, last.source + source, last.role, last.known and known))
        else:
            self.words.append(ShellWord(text, self.text(*node.byte_range), role, known))
        self.open = True

    def read_word(self, node: "Node") -> tuple[str, bool]:
        """Return what the program gets, and whether that is known."""
        kind, source = node.type, self.text(find_expansion_start(node), node.end_byte)
        if kind == "raw_string":
            return source[1:-1], True
        if kind == "ansi_c_string":
            self.plain = False
            if not is_whole_ansi_string(source):
                raise NotUnderstood
            text = decode_ansi_string(source)
            return ("$", False) if text is None else (text, True)
        if kind in NESTING:
            self.nest(node)
            return "$()", False
        if kind == "string":
            return self.read_pieces(node, node.start_byte + 1, node.end_byte - 1)
        if kind == "concatenation":
            return self.read_pieces(node, node.start_byte, node.end_byte)
        if kind == "heredoc_start":
            return self.begin_document(source), True
        if node.child_count:
            self.expansions.append(source)
            self.look_inside(node)
            # Unquoted, it may become several words, and the text would show only the first.
            if node.parent and node.parent.type != "string" and re.search(r"\s", SPELLED_OUT.sub("", source)):
                raise NotUnderstood
            return source, False
        bare = ESCAPED.sub("", source)
        if HIDING.search(bare) or re.search(r"\s", bare):
            raise NotUnderstood
        return ESCAPED.sub(r"\1", source), kind in LITERAL or not node.is_named

    def read_pieces(self, node: "Node", start: int, end: int) -> tuple[str, bool]:
        """Read a word of several pieces, with the literal text between them."""
        text, known, at, quoted = "", True, start, node.type == "string"
        for child in node.children:
            if (quoted and not child.is_named and child.type in ('"', "$")) or child.type == "string_content":
                continue
            literal, certain = self.read_literal(at, find_expansion_start(child), quoted)
            piece, sure = self.read_word(child)
            text, known, at = text + literal + piece, known and certain and sure, child.end_byte
        literal, certain = self.read_literal(at, end, quoted)
        return text + literal, known and (certain or self.text(at, end).partition("$")[1:] == ("$", ""))

    def read_literal(self, start: int, end: int, quoted: bool) -> tuple[str, bool]:
        """Return the text, and whether it is certain that bash expands nothing in it."""
        text = self.text(start, end)
        if not quoted and text.replace("\\\n", ""):
            raise NotUnderstood
        # Before most characters bash keeps the backslash. Such a line does not count as plain.
        self.plain = self.plain and not re.search(r"\\[^$`\"\\\n]", re.sub(r"\\\\", "", text))
        bare = text.replace("\\\n", "")
        if HIDING.search(ESCAPED.sub("", bare).replace("'", "")):
            raise NotUnderstood
        return IN_QUOTES.sub(r"\1", bare), not BEGINNING.search(ESCAPED.sub("", bare))

    def look_inside(self, node: "Node") -> None:
        """Collect what runs within an expansion, at any depth."""
        for child in node.children:
            if child.type in EXPANDING:
                self.expansions.append(self.text(find_expansion_start(child), child.end_byte))
            if child.type in NESTING:
                self.nest(child)
            elif child.type == "raw_string" or child.type == "ansi_c_string":
                # Between double quotes these quotes are literal, and substitutions in them run.
                text = self.text(*child.byte_range)
                is_whole = child.type == "raw_string" or is_whole_ansi_string(text)
                if "`" in text or "$(" in text or not is_whole:
                    raise NotUnderstood
            elif child.child_count:
                self.look_inside(child)
            elif "`" in (text := self.text(*child.byte_range)) or (child.is_named and "$(" in text):
                raise NotUnderstood

    def nest(self, node: "Node") -> None:
        self.plain = False
        start = find_expansion_start(node)
        if node.type == "arithmetic_expansion":
            source = self.text(start, node.end_byte)
            if not LITERAL_ARITHMETIC.fullmatch(source):
                self.expansions.append(source)
            if read_delimited(source):
                self.nest_texts(find_computed(source), source, start)
                return
        if self.source.startswith(b"`", start):
            written = self.text(start + 1, node.end_byte - 1)
            body = re.sub(r"\\([\\$`])", r"\1", written)
            base = self.base + start + 1 if self.base is not None and body == written else None
            self.nested.append(_parse_line(body, self.depth + 1, base))
            return
        if self.depth >= DEEPEST:
            raise NotUnderstood
        first, *within, last = node.children
        reader = _LineReader(self.source, self.depth + 1, first.end_byte, self.base)
        self.nested.append(reader.read(within, last.start_byte))

    def nest_texts(self, texts: Iterable[tuple[int, str]], source: str, start: int) -> None:
        """Read lines within the source that begins there."""
        for at, text in texts:
            base = self.base + start + len(source[:at].encode()) if self.base is not None else None
            self.nested.append(_parse_line(text, self.depth + 1, base))

    def begin_document(self, source: str) -> str:
        if self.delimiter or not DELIMITER.fullmatch(source):
            raise NotUnderstood
        self.delimiter = source.strip("\\'\"")
        self.literal = self.delimiter != source
        return self.delimiter

    def end_document(self, node: "Node") -> None:
        """The grammar does not always agree with bash about the end of a here-document."""
        line = self.source[self.source.rfind(b"\n", 0, node.start_byte) + 1 :].partition(b"\n")[0]
        if line.strip(b"\t").decode("utf-8", "replace") != self.delimiter:
            raise NotUnderstood
        self.delimiter = ""
        self.end_command()

    def take_document(self, node: "Node") -> None:
        self.plain = self.listed = False
        body = self.text(*node.byte_range)
        # Nothing in a literal document is worked out, so that an apostrophe there opens nothing.
        known = self.literal or self.expand_document(body, node.start_byte)
        if not known:
            self.look_inside(node)
            self.expansions += find_missed_expansions(self.source, node)
        if not self.delimiter or self.delimiter in map(str.strip, body.splitlines()):
            raise NotUnderstood
        try:
            self.documents.append(_parse_line(body, self.depth + 1, None))
        except NotUnderstood:
            if not known and not CLOSED.fullmatch(body):
                raise
            self.documents.append(read_roughly(body))

    def expand_document(self, body: str, start: int) -> bool:
        """Collect what bash expands in a document, where that can be told without the grammar."""
        scanned = scan_document(body)
        if scanned is None:
            return False
        self.expansions += scanned.expansions
        self.nest_texts(scanned.substitutions, body, start)
        return True
