"""Which options of a C or C++ compiler only say how it compiles? A closed list."""

import re

FLAGS = re.compile(
    r"-[cSEvswCPH]|-[DUILl].+|-(?:isystem|iquote|std=|O|x).*|-g(?!split|record)\w*|-M|-MM|-MD|-MMD|-MP|-MG"
    r"|-W(?![apl],)[\w=+-]*|-m(?!llvm)[\w=+.-]+|-pedantic(?:-errors)?|-ansi|-pthread|-shared|-static(?:-lib\w+)?|-pipe|-rdynamic"
    r"|-fsyntax-only|-print-[\w-]+(?:=\w+)?|-dumpversion|-dumpmachine|--(?:coverage|version|help|print-[\w-]+)|-###"
    r"|-f(?!plugin|pass-plugin|dump|profile|auto-profile|use-ld|compare-debug|callgraph|opt-info|save|stack-usage|crash|integrated"
    r"|module|load|debug)[a-zA-Z][\w-]*(?:=[\w,+-]+)?"
)
VARIABLE = re.compile("(?:C|CXX|CPP|LD|OBJC|F)FLAGS")
"""The variables that hold such options, for `make` and other build tools."""
PLAIN_TEXT = re.compile(r"[\w ./=+,-]*")


def holds_plain_flags(name: str, value: str) -> bool:
    """True if it holds options for a compiler, and none of them starts or loads anything."""
    if not VARIABLE.fullmatch(name) or not PLAIN_TEXT.fullmatch(value):
        return False
    return all(map(FLAGS.fullmatch, value.split()))
