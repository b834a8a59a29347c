"""How does the grammar read a line, and what do its nodes mean? For the reader of lines."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MOST_STEPS = 200
"""Steps of the parser, in hundreds. A script of some hundred lines takes fewer; but for some lines the time grows with
the square of their length, and 60 KB of `a|a|a` would take a minute."""

SEPARATORS = frozenset(("\n", ";", ";;", ";&", ";;&", "&", "&&", "|", "|&", "||", "(", ")", "((", "))"))
JOINING = frozenset(("\n", ";", "&&", "|", "||"))
KEYWORDS = frozenset(
    ("if", "then", "else", "elif", "fi", "do", "done", "while", "until", "for", "select", "case", "esac", "in")
) | frozenset(("function", "{", "}", "!"))
LISTS = frozenset(("program", "list", "pipeline", "redirected_statement", "command", "command_name", "file_redirect"))
"""The nodes of a line of plain commands, apart from words."""
PLAIN = (
    LISTS
    | frozenset(("variable_assignment", "subscript", "declaration_command", "unset_command", "negated_command"))
    | frozenset(("test_command", "unary_expression", "binary_expression"))
)
"""The nodes of one plain command."""
NESTING = frozenset(("command_substitution", "process_substitution", "arithmetic_expansion"))
WORDS = NESTING | frozenset(
    ("string", "raw_string", "ansi_c_string", "concatenation", "simple_expansion", "expansion", "brace_expression")
)
EXPANDING = frozenset(("simple_expansion", "expansion", "brace_expression"))
OPENING_SIGNS = frozenset(("$", "${", "$(", "$((", "$[", "`"))
ARITHMETIC_COMMANDS = frozenset(("compound_statement", "c_style_for_statement"))
REDIRECTING = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
LITERAL = frozenset(("word", "number", "variable_name", "test_operator"))
BLANK = re.compile(rb"[ \t\r\n]*")
STAND_INS = bytes(range(0x80)) + b"%" * 0x80
"""The grammar's own C code looks each character up in a table of 256, so `<<` before one of the higher planes ended the
whole process. To bash these bytes are parts of words, as `%` is; the words themselves are taken from the source."""
DELIMITER = re.compile(r"""\\?[\w.-]+|'[\w .-]+'|"[\w .-]+\"""", re.ASCII)
"""The grammar takes what follows a here-document's word for part of it, as in `<<EOF; ls`."""
HIDING = re.compile(r"""['"`]|\$\(""")
AFTER_CLOSING = frozenset(b" \t\n;|&()<>")
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
IN_QUOTES = re.compile(r"\\([$`\"\\])")
"""What a backslash escapes between double quotes; in front of anything else it stays."""
BEGINNING = re.compile(r"\$(?![ \t\n/|).,:;%^+=~\]])")
"""A `$` that may begin an expansion."""
MISSED = re.compile(rf"`[^`]*`?|{BEGINNING.pattern}\S*")
SPELLED_OUT = re.compile(r"""\"[^"]*\"|(?<=:) (?=-\d)""")
"""Blanks at which bash does not split a word: in `${x:-"a b"}` and `${x: -3}`."""
INNER_OFFSET = re.compile(rb"(?<=(?<!\\)\$\{)(\w+(?:\[[@*]\])?:)((?:[\w+*-]|\$\w+|:(?![-+=?]))+)(?=\})")
"""The grammar does not read a `$` in `${x:$i:1}`."""
CLOSED = re.compile(
    r"""(?>[^'"`\\#]++|\\.|(?<!\S)#[^\n]*+|#|'[^']*+'|"(?:[^"\\`]|\\.|`[^`]*+`)*+"|`[^`]*+`)*+""", re.DOTALL
)


def parse_nodes(source: bytes) -> "Node | None":
    """Parse the line; None if the grammar does not read it, or not in time."""
    ascii_source = INNER_OFFSET.sub(_hide_inner_dollars, source.translate(STAND_INS))
    parser, steps = _load_parser(), iter(range(MOST_STEPS))
    try:
        # Only a parse that reads from a function can be stopped.
        tree = parser.parse(
            lambda at, _: ascii_source[at:], progress_callback=lambda _at, _wrong: next(steps, None) is None
        )
    except ValueError:
        parser.reset()
        return None
    return None if tree.root_node.has_error else tree.root_node


def _hide_inner_dollars(found: re.Match[bytes]) -> bytes:
    return found[1] + found[2].replace(b"$", b"0")


def find_expansion_start(node: "Node") -> int:
    """Find where an expansion begins. In quotes, the grammar counts blanks between two as a part of the second."""
    sign = next(iter(node.children), None)
    return sign.end_byte - len(sign.type) if sign and sign.type in OPENING_SIGNS else node.start_byte


def find_missed_expansions(source: bytes, node: "Node") -> list[str]:
    """The grammar does not see every expansion in a here-document, backticks least of all."""
    at, rest = node.start_byte, b""
    for child in node.children:
        if child.type in EXPANDING or child.type in NESTING:
            rest += source[at : child.start_byte]
            at = child.end_byte
    missed = MISSED.search(ESCAPED.sub("", (rest + source[at : node.end_byte]).decode("utf-8", "replace")))
    return [missed[0]] if missed else []


@lru_cache(maxsize=1)
def _load_parser() -> "Parser":
    # Imported here, so that only a server that sees a line of shell loads the grammar.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
