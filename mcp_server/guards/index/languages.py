"""Which language is this file in, and how does that language define things?

One entry per language: comments, strings, how its blocks end, and which lines define something. Every pattern is
anchored to the start of a line and bounded in what it consumes, so no file takes long to scan.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

Patterns: TypeAlias = tuple[tuple[str, str], ...]
"""Kinds of symbols, each with the pattern of a line that defines one. Its group `name` is the symbol's name, and
`within`, if there is one, its container."""

LINE_START = r"^[ \t]{0,200}+"
NAME = r"(?P<name>[^\W\d][\w$]{0,200}+)"


class SourceLanguage(Struct, frozen=True, dict=True):
    name: str
    blocks: str
    """`indent`, `brace`, `end`, `none` or `heading`."""
    comments: tuple[str, ...]
    strings: tuple[str, ...]
    patterns: Patterns

    @cached_property
    def compiled_patterns(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        return tuple((kind, re.compile(pattern, re.MULTILINE)) for kind, pattern in self.patterns)


C_COMMENTS = ("//", "/*")
CONTROL_KEYWORDS = (
    "if|for|while|switch|catch|return|function|else|new|throw|await|do|try|typeof|delete|case|in|of|with|yield|sizeof|"
    "using|lock|foreach|synchronized|match|when|loop|unsafe|super|this|assert|not|and|or|finally|except|lambda"
)
BARE_NAME = rf"(?!(?:{CONTROL_KEYWORDS})\b){NAME}"
"""A name that no keyword introduces."""
MODIFIERS = (
    r"(?:(?:public|private|protected|internal|static|final|abstract|sealed|open|override|virtual|async|partial|export|"
    r"default|declare|readonly|inline|data|suspend|unsafe|extern|pub|pub\([^)\n]{0,60}\)|native|strictfp|mutating|"
    r"nonisolated|indirect|fileprivate|implicit|case|lazy|annotation|value|inner|companion|tailrec|operator|infix|"
    r"external|expect|actual|new|required|convenience|class(?=[ \t]+func)|const(?=[ \t]+(?:fn|unsafe|async|extern)))"
    r"[ \t]{1,20}+){0,8}+"
)
"""Modifiers that may precede the keyword of a definition."""
PARAMETERS = r"\((?:[^;{}()]|\([^;{}()]{0,200}+\)|\{[^;{}()]{0,200}+\}){0,600}+\)"
GENERIC = r"<(?:[^<>;{}()\n]|<(?:[^<>;{}()\n]|<[^<>;{}()\n]{0,60}+>){0,60}+>){0,60}+>"
SIGNATURE = rf"[ \t]{{0,20}}+(?:{GENERIC})?[ \t]{{0,20}}+{PARAMETERS}"
RETURN_TYPE = rf"(?:[\w$.:]{{1,100}}+(?:{GENERIC})?[\[\]?*&]{{0,8}}+[ \t]{{1,20}}+[*&]{{0,4}}+){{1,4}}?"

PYTHON = SourceLanguage(
    "python",
    "indent",
    ("#",),
    ('"""', "'''", '"', "'"),
    (
        ("class", rf"{LINE_START}class[ \t]++{NAME}"),
        ("function", rf"{LINE_START}(?:async[ \t]++)?def[ \t]++{NAME}"),
        ("variable", rf"^{BARE_NAME}[ \t]{{0,20}}+(?:=(?!=)|:)"),
    ),
)
JAVASCRIPT = SourceLanguage(
    "javascript",
    "brace",
    C_COMMENTS,
    ('"', "'", "`"),
    (
        ("class", rf"{LINE_START}{MODIFIERS}class[ \t]+{NAME}"),
        ("interface", rf"{LINE_START}{MODIFIERS}interface[ \t]+{NAME}"),
        ("enum", rf"{LINE_START}{MODIFIERS}enum[ \t]+{NAME}"),
        ("type", rf"{LINE_START}{MODIFIERS}type[ \t]+{NAME}[ \t]*+(?:{GENERIC})?[ \t]*+="),
        ("module", rf"{LINE_START}{MODIFIERS}(?:namespace|module)[ \t]+{NAME}"),
        ("function", rf"{LINE_START}{MODIFIERS}function[ \t]*+\*?[ \t]*+{NAME}"),
        (
            "function",
            rf"{LINE_START}{MODIFIERS}(?:const|let|var)[ \t]+{NAME}[^=\n]{{0,200}}=[ \t]*+(?:async[ \t]*+)?"
            rf"(?:function\b|{PARAMETERS}[^=\n{{]{{0,100}}=>|[\w$]{{1,100}}+[ \t]*+=>)",
        ),
        (
            "method",
            rf"^[ \t]{{1,200}}+{MODIFIERS}(?:(?:get|set)[ \t]+)?\*?{BARE_NAME}{SIGNATURE}[^;{{}}\n]{{0,200}}+\{{",
        ),
        ("constant", rf"^(?:export[ \t]+)?const[ \t]+{NAME}"),
        ("variable", rf"^(?:export[ \t]+)?(?:let|var)[ \t]+{NAME}"),
    ),
)
GO = SourceLanguage(
    "go",
    "brace",
    C_COMMENTS,
    ('"', "raw `", "sign '"),
    (
        (
            "method",
            r"^func[ \t]+\((?:\w{1,100}+[ \t]+)?\*?(?P<within>\w{1,100}+)(?:\[[^\]\n]{0,200}+\])?\)[ \t]*+"
            rf"{NAME}",
        ),
        ("function", rf"^func[ \t]+{NAME}"),
        ("struct", rf"{LINE_START}(?:type[ \t]+)?{NAME}(?:\[[^\]\n]{{0,200}}+\])?[ \t]+struct\b"),
        ("interface", rf"{LINE_START}(?:type[ \t]+)?{NAME}(?:\[[^\]\n]{{0,200}}+\])?[ \t]+interface\b"),
        ("type", rf"^type[ \t]+{NAME}"),
        ("constant", rf"^const[ \t]+{NAME}"),
        ("variable", rf"^var[ \t]+{NAME}"),
    ),
)
RUST = SourceLanguage(
    "rust",
    "brace",
    C_COMMENTS,
    ("r#", 'long "', "sign '"),
    (
        ("function", rf'{LINE_START}{MODIFIERS}(?:extern[ \t]+"[^"\n]{{0,20}}"[ \t]+)?fn[ \t]+{NAME}'),
        ("struct", rf"{LINE_START}{MODIFIERS}(?:struct|union)[ \t]+{NAME}"),
        ("enum", rf"{LINE_START}{MODIFIERS}enum[ \t]+{NAME}"),
        ("interface", rf"{LINE_START}{MODIFIERS}trait[ \t]+{NAME}"),
        ("class", rf"{LINE_START}{MODIFIERS}impl(?:{GENERIC})?[ \t]+(?:[^\n{{]{{1,200}}?[ \t]+for[ \t]+)?&?{NAME}"),
        ("type", rf"{LINE_START}{MODIFIERS}type[ \t]+{NAME}"),
        ("module", rf"{LINE_START}{MODIFIERS}mod[ \t]+{NAME}"),
        ("constant", rf"{LINE_START}(?:pub[ \t]+)?(?:const|static)[ \t]+(?:mut[ \t]+)?{NAME}[ \t]*+:"),
        ("function", rf"{LINE_START}macro_rules![ \t]*+{NAME}"),
    ),
)
BRACE_PATTERNS: Patterns = (
    ("class", rf"{LINE_START}{MODIFIERS}(?:class|object|record|actor|extension|trait)[ \t]+{NAME}"),
    ("interface", rf"{LINE_START}{MODIFIERS}(?:interface|protocol|@interface)[ \t]+{NAME}"),
    ("enum", rf"{LINE_START}{MODIFIERS}enum[ \t]+(?:class[ \t]+|struct[ \t]+)?{NAME}"),
    ("struct", rf"{LINE_START}{MODIFIERS}(?:struct|union)[ \t]+{NAME}"),
    ("module", rf"{LINE_START}{MODIFIERS}namespace[ \t]+{NAME}"),
    (
        "function",
        rf"{LINE_START}{MODIFIERS}(?:fun|func|function|def)[ \t]+&?(?:{GENERIC}[ \t]*+)?(?:[\w<>?]{{1,80}}\.)?{NAME}",
    ),
    ("type", rf"{LINE_START}{MODIFIERS}typealias[ \t]+{NAME}"),
)
JAVA = SourceLanguage(
    "java",
    "brace",
    C_COMMENTS,
    ('"""', '"', "sign '"),
    (
        *BRACE_PATTERNS,
        (
            "method",
            rf"^[ \t]{{1,200}}+{MODIFIERS}(?:{RETURN_TYPE})?{BARE_NAME}{SIGNATURE}[^;{{}}()=]{{0,200}}+\{{",
        ),
    ),
)
KOTLIN = SourceLanguage("kotlin", "brace", C_COMMENTS, ('"""', '"', "sign '"), BRACE_PATTERNS)
CSHARP = SourceLanguage("csharp", "brace", C_COMMENTS, ('"""', '"', "sign '"), JAVA.patterns)
PHP = SourceLanguage("php", "brace", ("//", "/*", "#"), ('long "', "long '"), BRACE_PATTERNS)
SWIFT = SourceLanguage("swift", "brace", C_COMMENTS, ('"""', '"'), BRACE_PATTERNS)
SCALA = SourceLanguage("scala", "brace", C_COMMENTS, ('"""', '"', "sign '"), BRACE_PATTERNS)
C = SourceLanguage(
    "c",
    "brace",
    C_COMMENTS,
    ('"', "sign '"),
    (
        ("class", rf"{LINE_START}class[ \t]+{NAME}(?=[^;()=]{{0,300}}\{{)"),
        ("struct", rf"{LINE_START}(?:typedef[ \t]+)?(?:struct|union)[ \t]+{NAME}(?=[^;()=]{{0,300}}\{{)"),
        ("enum", rf"{LINE_START}(?:typedef[ \t]+)?enum[ \t]+(?:class[ \t]+)?{NAME}(?=[^;()=]{{0,300}}\{{)"),
        ("module", rf"{LINE_START}namespace[ \t]+{NAME}"),
        ("constant", rf"^[ \t]{{0,20}}+#[ \t]{{0,20}}+define[ \t]+{NAME}"),
        (
            "function",
            rf"{LINE_START}(?:{RETURN_TYPE})?(?:(?P<within>\w{{1,100}})::){{0,4}}~?{BARE_NAME}{SIGNATURE}"
            r"[\w \t\n:&]{0,100}+\{",
        ),
        ("type", rf"^typedef[ \t][^;{{}}\n]{{1,300}}?\b{NAME};"),
    ),
)
RUBY = SourceLanguage(
    "ruby",
    "end",
    ("#", "=begin"),
    ('long "', "long '"),
    (
        ("class", rf"{LINE_START}class[ \t]+(?:[\w]{{1,100}}::){{0,6}}{NAME}"),
        ("module", rf"{LINE_START}module[ \t]+(?:[\w]{{1,100}}::){{0,6}}{NAME}"),
        ("function", rf"{LINE_START}def[ \t]+(?:self\.)?{NAME}"),
        ("constant", r"^[ \t]{0,20}+(?P<name>[A-Z][A-Z0-9_]{1,100}+)[ \t]*+=(?!=)"),
    ),
)
SHELL = SourceLanguage(
    "shell",
    "brace",
    ("shell #",),
    ('long "', "plain '"),
    (
        ("function", rf"{LINE_START}function[ \t]+(?P<name>[\w:.-]{{1,200}}+)"),
        ("function", rf"{LINE_START}(?P<name>[\w:.-]{{1,200}}+)[ \t]*+\([ \t]*+\)"),
    ),
)
LUA = SourceLanguage(
    "lua",
    "end",
    ("--[[", "--"),
    ('"', "'"),
    (("function", rf"{LINE_START}(?:local[ \t]+)?function[ \t]+(?:(?P<within>[\w]{{1,100}})[.:]){{0,6}}{NAME}"),),
)
SQL_CREATE = r"(?i)^[ \t]{0,200}+create[ \t]+(?:or[ \t]+replace[ \t]+)?"
SQL_NAME = r"(?:[\w\"`]{1,100}\.){0,2}[\"`\[]?(?P<name>[\w$]{1,200}+)"
SQL = SourceLanguage(
    "sql",
    "none",
    ("--", "/*"),
    ("plain '",),
    (
        (
            "table",
            rf"{SQL_CREATE}(?:(?:temp|temporary|virtual|unique|materialized)[ \t]+){{0,3}}"
            r"(?:table|view|index|trigger)[ \t]+"
            rf"(?:if[ \t]+not[ \t]+exists[ \t]+)?{SQL_NAME}",
        ),
        ("function", rf"{SQL_CREATE}(?:function|procedure)[ \t]+{SQL_NAME}"),
    ),
)
MARKDOWN = SourceLanguage(
    "markdown", "heading", ("```",), (), (("heading", r"^#{1,6}[ \t]+(?P<name>[^\n]{1,200}?)[ \t]*+#*+[ \t]*+$"),)
)

LANGUAGES_BY_EXTENSION: Mapping[str, SourceLanguage] = {
    extension: language
    for language, extensions in (
        (PYTHON, "py pyi pyw"),
        (JAVASCRIPT, "js jsx mjs cjs ts tsx mts cts vue svelte"),
        (GO, "go"),
        (RUST, "rs"),
        (JAVA, "java groovy"),
        (KOTLIN, "kt kts"),
        (CSHARP, "cs"),
        (PHP, "php"),
        (SWIFT, "swift"),
        (SCALA, "scala sbt"),
        (C, "c h cc cpp cxx hh hpp hxx inl ino m mm"),
        (RUBY, "rb rake gemspec"),
        (SHELL, "sh bash zsh ksh"),
        (LUA, "lua"),
        (SQL, "sql"),
        (MARKDOWN, "md markdown mdx"),
    )
    for extension in extensions.split()
}


def find_language(path: str) -> SourceLanguage | None:
    """Return the language by the file's extension."""
    name = path.rpartition("/")[2]
    return LANGUAGES_BY_EXTENSION.get(name.rpartition(".")[2].lower()) if "." in name else None
