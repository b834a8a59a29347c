"""Which words of a C or C++ compiler only compile, and which file do they write?

A closed list: `-fplugin=`, `-wrapper`, `-B`, `-specs=`, `-Wl,` and others start what they name, and `@FILE` holds more
options. What the compiler makes is unknown code, so running it asks.
"""

import re
from collections.abc import Sequence

from tools.shell.compiler_flags import FLAGS
from tools.shell.program_arguments import is_certain, is_pattern, may_become_option

COMPILERS = frozenset("gcc g++ cc c++ clang clang++".split())  # noqa: SIM905
VALUED = re.compile("-(?:I|L|D|U|l|include|isystem|iquote|idirafter|x|arch|MT|MQ)")


def find_compiled_file(words: Sequence[str]) -> str | None:
    """Return the file that `-o` names, `.` if there is none, or None if the words may do more than compile."""
    written, at = ".", 0
    while at < len(words):
        word = words[at]
        if may_become_option(word) or word.startswith("@") or (is_pattern(word) and word[:1] == "-"):
            return None
        if word == "-o" or VALUED.fullmatch(word):
            value = words[at + 1] if at + 1 < len(words) else ""
            if not value or not is_certain(value) or value.startswith(("-", "@")):
                return None
            written = value if word == "-o" else written
            at += 2
        elif word.startswith("-o") or (word.startswith("-") and word != "-" and not FLAGS.fullmatch(word)):
            return None
        else:
            at += 1
    return written
