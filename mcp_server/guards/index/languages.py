"""Which language is this file in, and how does that language define things?

One entry per language: its file extensions, its comments and strings, how its blocks end, and the lines that define
something. Every pattern is anchored to the start of a line and bounded in what it consumes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

Patterns: TypeAlias = tuple[tuple[str, str], ...]
"""A kind, and the pattern of a line that defines one, with the group `name`, and `within` if the line states that
too."""

HEAD = r"^[ \t]{0,200}+"
NAME = r"(?P<name>[^\W\d][\w$]{0,200}+)"


@dataclass(frozen=True)
class SourceLanguage:
    name: str
    blocks: str
    """`indent`, `brace`, `end`, `none` or `heading`."""
    comments: tuple[str, ...]
    strings: tuple[str, ...]
    patterns: Patterns

    @cached_property
    def compiled_patterns(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        return tuple((kind, re.compile(pattern, re.MULTILINE)) for kind, pattern in self.patterns)


C_LIKE = ("//", "/*")
STEERING = (
    "if|for|while|switch|catch|return|function|else|new|throw|await|do|try|typeof|delete|case|in|of|with|yield|sizeof|"
    "using|lock|foreach|synchronized|match|when|loop|unsafe|super|this|assert|not|and|or|finally|except|lambda"
)
FREE = rf"(?!(?:{STEERING})\b){NAME}"
"""A name that no keyword introduces."""
SHOWN = (
    r"(?:(?:public|private|protected|internal|static|final|abstract|sealed|open|override|virtual|async|partial|export|"
    r"default|declare|readonly|inline|data|suspend|unsafe|extern|pub|pub\([^)\n]{0,60}\)|native|strictfp|mutating|"
    r"nonisolated|indirect|fileprivate|implicit|case|lazy|annotation|value|inner|companion|tailrec|operator|infix|"
    r"external|expect|actual|new|required|convenience|class(?=[ \t]+func)|const(?=[ \t]+(?:fn|unsafe|async|extern)))"
    r"[ \t]{1,20}+){0,8}+"
)
"""Modifiers that may precede the keyword of a definition."""
GIVEN = r"\((?:[^;{}()]|\([^;{}()]{0,200}+\)|\{[^;{}()]{0,200}+\}){0,600}+\)"
GENERIC = r"<(?:[^<>;{}()\n]|<(?:[^<>;{}()\n]|<[^<>;{}()\n]{0,60}+>){0,60}+>){0,60}+>"
CALLED = rf"[ \t]{{0,20}}+(?:{GENERIC})?[ \t]{{0,20}}+{GIVEN}"
TYPED = rf"(?:[\w$.:]{{1,100}}+(?:{GENERIC})?[\[\]?*&]{{0,8}}+[ \t]{{1,20}}+[*&]{{0,4}}+){{1,4}}?"

PYTHON = SourceLanguage(
    "python",
    "indent",
    ("#",),
    ('"""', "'''", '"', "'"),
    (
        ("class", rf"{HEAD}class[ \t]++{NAME}"),
        ("function", rf"{HEAD}(?:async[ \t]++)?def[ \t]++{NAME}"),
        ("variable", rf"^{FREE}[ \t]{{0,20}}+(?:=(?!=)|:)"),
    ),
)
JAVASCRIPT = SourceLanguage(
    "javascript",
    "brace",
    C_LIKE,
    ('"', "'", "`"),
    (
        ("class", rf"{HEAD}{SHOWN}class[ \t]+{NAME}"),
        ("interface", rf"{HEAD}{SHOWN}interface[ \t]+{NAME}"),
        ("enum", rf"{HEAD}{SHOWN}enum[ \t]+{NAME}"),
        ("type", rf"{HEAD}{SHOWN}type[ \t]+{NAME}[ \t]*+(?:{GENERIC})?[ \t]*+="),
        ("module", rf"{HEAD}{SHOWN}(?:namespace|module)[ \t]+{NAME}"),
        ("function", rf"{HEAD}{SHOWN}function[ \t]*+\*?[ \t]*+{NAME}"),
        (
            "function",
            rf"{HEAD}{SHOWN}(?:const|let|var)[ \t]+{NAME}[^=\n]{{0,200}}=[ \t]*+(?:async[ \t]*+)?"
            rf"(?:function\b|{GIVEN}[^=\n{{]{{0,100}}=>|[\w$]{{1,100}}+[ \t]*+=>)",
        ),
        ("method", rf"^[ \t]{{1,200}}+{SHOWN}(?:(?:get|set)[ \t]+)?\*?{FREE}{CALLED}[^;{{}}\n]{{0,200}}+\{{"),
        ("constant", rf"^(?:export[ \t]+)?const[ \t]+{NAME}"),
        ("variable", rf"^(?:export[ \t]+)?(?:let|var)[ \t]+{NAME}"),
    ),
)
GO = SourceLanguage(
    "go",
    "brace",
    C_LIKE,
    ('"', "raw `", "sign '"),
    (
        (
            "method",
            r"^func[ \t]+\((?:\w{1,100}+[ \t]+)?\*?(?P<within>\w{1,100}+)(?:\[[^\]\n]{0,200}+\])?\)[ \t]*+"
            rf"{NAME}",
        ),
        ("function", rf"^func[ \t]+{NAME}"),
        ("struct", rf"{HEAD}(?:type[ \t]+)?{NAME}(?:\[[^\]\n]{{0,200}}+\])?[ \t]+struct\b"),
        ("interface", rf"{HEAD}(?:type[ \t]+)?{NAME}(?:\[[^\]\n]{{0,200}}+\])?[ \t]+interface\b"),
        ("type", rf"^type[ \t]+{NAME}"),
        ("constant", rf"^const[ \t]+{NAME}"),
        ("variable", rf"^var[ \t]+{NAME}"),
    ),
)
RUST = SourceLanguage(
    "rust",
    "brace",
    C_LIKE,
    ("r#", 'long "', "sign '"),
    (
        ("function", rf'{HEAD}{SHOWN}(?:extern[ \t]+"[^"\n]{{0,20}}"[ \t]+)?fn[ \t]+{NAME}'),
        ("struct", rf"{HEAD}{SHOWN}(?:struct|union)[ \t]+{NAME}"),
        ("enum", rf"{HEAD}{SHOWN}enum[ \t]+{NAME}"),
        ("interface", rf"{HEAD}{SHOWN}trait[ \t]+{NAME}"),
        ("class", rf"{HEAD}{SHOWN}impl(?:{GENERIC})?[ \t]+(?:[^\n{{]{{1,200}}?[ \t]+for[ \t]+)?&?{NAME}"),
        ("type", rf"{HEAD}{SHOWN}type[ \t]+{NAME}"),
        ("module", rf"{HEAD}{SHOWN}mod[ \t]+{NAME}"),
        ("constant", rf"{HEAD}(?:pub[ \t]+)?(?:const|static)[ \t]+(?:mut[ \t]+)?{NAME}[ \t]*+:"),
        ("function", rf"{HEAD}macro_rules![ \t]*+{NAME}"),
    ),
)
CURLY: Patterns = (
    ("class", rf"{HEAD}{SHOWN}(?:class|object|record|actor|extension|trait)[ \t]+{NAME}"),
    ("interface", rf"{HEAD}{SHOWN}(?:interface|protocol|@interface)[ \t]+{NAME}"),
    ("enum", rf"{HEAD}{SHOWN}enum[ \t]+(?:class[ \t]+|struct[ \t]+)?{NAME}"),
    ("struct", rf"{HEAD}{SHOWN}(?:struct|union)[ \t]+{NAME}"),
    ("module", rf"{HEAD}{SHOWN}namespace[ \t]+{NAME}"),
    (
        "function",
        rf"{HEAD}{SHOWN}(?:fun|func|function|def)[ \t]+&?(?:{GENERIC}[ \t]*+)?(?:[\w<>?]{{1,80}}\.)?{NAME}",
    ),
    ("type", rf"{HEAD}{SHOWN}typealias[ \t]+{NAME}"),
)
JAVA = SourceLanguage(
    "java",
    "brace",
    C_LIKE,
    ('"""', '"', "sign '"),
    (*CURLY, ("method", rf"^[ \t]{{1,200}}+{SHOWN}(?:{TYPED})?{FREE}{CALLED}[^;{{}}()=]{{0,200}}+\{{")),
)
KOTLIN = SourceLanguage("kotlin", "brace", C_LIKE, ('"""', '"', "sign '"), CURLY)
CSHARP = SourceLanguage("csharp", "brace", C_LIKE, ('"""', '"', "sign '"), JAVA.patterns)
PHP = SourceLanguage("php", "brace", ("//", "/*", "#"), ('long "', "long '"), CURLY)
SWIFT = SourceLanguage("swift", "brace", C_LIKE, ('"""', '"'), CURLY)
SCALA = SourceLanguage("scala", "brace", C_LIKE, ('"""', '"', "sign '"), CURLY)
C = SourceLanguage(
    "c",
    "brace",
    C_LIKE,
    ('"', "sign '"),
    (
        ("class", rf"{HEAD}class[ \t]+{NAME}(?=[^;()=]{{0,300}}\{{)"),
        ("struct", rf"{HEAD}(?:typedef[ \t]+)?(?:struct|union)[ \t]+{NAME}(?=[^;()=]{{0,300}}\{{)"),
        ("enum", rf"{HEAD}(?:typedef[ \t]+)?enum[ \t]+(?:class[ \t]+)?{NAME}(?=[^;()=]{{0,300}}\{{)"),
        ("module", rf"{HEAD}namespace[ \t]+{NAME}"),
        ("constant", rf"^[ \t]{{0,20}}+#[ \t]{{0,20}}+define[ \t]+{NAME}"),
        (
            "function",
            rf"{HEAD}(?:{TYPED})?(?:(?P<within>\w{{1,100}})::){{0,4}}~?{FREE}{CALLED}[\w \t\n:&]{{0,100}}+\{{",
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
        ("class", rf"{HEAD}class[ \t]+(?:[\w]{{1,100}}::){{0,6}}{NAME}"),
        ("module", rf"{HEAD}module[ \t]+(?:[\w]{{1,100}}::){{0,6}}{NAME}"),
        ("function", rf"{HEAD}def[ \t]+(?:self\.)?{NAME}"),
        ("constant", r"^[ \t]{0,20}+(?P<name>[A-Z][A-Z0-9_]{1,100}+)[ \t]*+=(?!=)"),
    ),
)
SHELL = SourceLanguage(
    "shell",
    "brace",
    ("shell #",),
    ('long "', "plain '"),
    (
        ("function", rf"{HEAD}function[ \t]+(?P<name>[\w:.-]{{1,200}}+)"),
        ("function", rf"{HEAD}(?P<name>[\w:.-]{{1,200}}+)[ \t]*+\([ \t]*+\)"),
    ),
)
LUA = SourceLanguage(
    "lua",
    "end",
    ("--[[", "--"),
    ('"', "'"),
    (("function", rf"{HEAD}(?:local[ \t]+)?function[ \t]+(?:(?P<within>[\w]{{1,100}})[.:]){{0,6}}{NAME}"),),
)
CREATE = r"(?i)^[ \t]{0,200}+create[ \t]+(?:or[ \t]+replace[ \t]+)?"
SQL_NAME = r"(?:[\w\"`]{1,100}\.){0,2}[\"`\[]?(?P<name>[\w$]{1,200}+)"
SQL = SourceLanguage(
    "sql",
    "none",
    ("--", "/*"),
    ("plain '",),
    (
        (
            "table",
            rf"{CREATE}(?:(?:temp|temporary|virtual|unique|materialized)[ \t]+){{0,3}}"
            r"(?:table|view|index|trigger)[ \t]+"
            rf"(?:if[ \t]+not[ \t]+exists[ \t]+)?{SQL_NAME}",
        ),
        ("function", rf"{CREATE}(?:function|procedure)[ \t]+{SQL_NAME}"),
    ),
)
MARKDOWN = SourceLanguage(
    "markdown", "heading", ("```",), (), (("heading", r"^#{1,6}[ \t]+(?P<name>[^\n]{1,200}?)[ \t]*+#*+[ \t]*+$"),)
)

NAMES: Mapping[str, SourceLanguage] = {
    ending: tongue
    for tongue, endings in (
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
    for ending in endings.split()
}


def find_language(path: str) -> SourceLanguage | None:
    """Return the language by the file's extension."""
    name = path.rpartition("/")[2]
    return NAMES.get(name.rpartition(".")[2].lower()) if "." in name else None
