"""What will a program get for a word of the line, as far as that is known before bash expands it?

Programs see strings, so unknown words are strings here as well: marked ones that no table takes for an option it knows.
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mcp_server.model.shell import ShellWord, WordRole
from mcp_server.model.text import quote_text
from tools.shell.expansions import NUMBER
from tools.shell.verdicts import NeedsApproval

ONE_UNKNOWN, SOME_UNKNOWN = "-$1:", "-$*:"
"""In front of the source of a word that may become anything: one word, or any number of them."""
EXPANDED = frozenset("*?[{~")
PROTECTED = re.compile(r"""\\.|'[^']*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
"""In what is left of a word without these, bash looks for patterns."""
GLOB = re.compile(r"[*?]|\[.*\]", re.DOTALL)
QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
PLAIN_BRACES = re.compile(r"(?:[\w./-]*[\w/]|(?:[\w./-]*/)?\*\.)(?:\{\w+(?:,\w+)+\}[\w./*-]*)+")
"""Such as `src/{a,b}.py` or `*.{py,sh}`. Others can spell names that nobody reads, as in `.{env,x}`."""
BRACE = re.compile(r"\{([^{}]*,[^{}]*)\}")
NAMED_STREAM = re.compile(r"\{[A-Za-z_]\w*\}")
WITH_NUMBER = re.compile(r"[\w.:/=+-]*|\"[\w.:/=+-]*\"|[\w.:/=+-]*\"0\"")
"""A word with a number in the place of what bash computes, as in `-j$(nproc)`."""
LIST = re.compile(r"\$(?:[@*]|\{[@*])")


class PartlyKnown(str):
    """Known only at its beginning. It cannot become an option, but it may be any code or any path."""

    __slots__ = ()


class MatchedNames(PartlyKnown):
    """A pattern such as `src/*`, which stands for any number of words that begin as it does. A dash at its beginning
    was written, or stands for what a name may begin with."""

    __slots__ = ()


Fits: TypeAlias = Callable[[Sequence[str]], bool]
"""Is a program harmless with these arguments?"""


def may_have_any_words(_: Sequence[str]) -> bool:
    return True


def is_unknown(argument: str) -> bool:
    return argument.startswith((ONE_UNKNOWN, SOME_UNKNOWN))


def may_become_option(argument: str) -> bool:
    """It may become an option, and not only one that it already is."""
    if not isinstance(argument, MatchedNames):
        return is_unknown(argument)
    # `--ignore=src/*` stays this option, with whatever value.
    return argument[:1] == "-" and "=" not in re.split(r"[*?[{]", argument)[0]


def list_spellings(argument: str) -> list[str]:
    """List the words that bash makes of `src/{a,b}.py`, besides the word itself."""
    inner = BRACE.search(argument)
    if inner is None:
        return [argument]
    each = [f"{argument[: inner.start()]}{one}{argument[inner.end() :]}" for one in inner[1].split(",")]
    return [argument, *(one for spelling in each for one in list_spellings(spelling))]


def is_pattern(argument: str) -> bool:
    return isinstance(argument, MatchedNames)


def is_certain(argument: str) -> bool:
    return not is_unknown(argument) and not isinstance(argument, PartlyKnown)


def show_argument(argument: str) -> str:
    """Return it as it stands in the line."""
    if is_unknown(argument):
        return argument[len(ONE_UNKNOWN) :]
    return argument[1:] if argument[:1] == "-" and argument[1:2] in EXPANDED and argument[1:2] else argument


def read_argument(word: ShellWord) -> str:
    if word.role is not WordRole.WORD:
        raise NeedsApproval(f"{quote_text(word.source)} is not a plain word")
    bare, open_text = QUOTED.sub("", word.source), PROTECTED.sub("", word.source)
    has_pattern = GLOB.search(open_text) is not None
    if NAMED_STREAM.fullmatch(word.source):
        raise NeedsApproval(f"{quote_text(word.source)} in front of a redirection would set a variable")
    if not word.known:
        return _read_unknown(word, bare, has_pattern)
    if BRACES.search(bare) and not PLAIN_BRACES.fullmatch(word.source):
        raise NeedsApproval(f"{quote_text(word.source)} stands for several words")
    if word.text[:1] in EXPANDED and bare[:1] == word.text[:1] and word.text not in ("{}", "[", "[["):
        # It may become the name of any file, and such a name may look like an option.
        return MatchedNames(f"-{word.text}") if has_pattern else f"-{word.text}"
    if has_pattern and word.text[:1] == "-" and word.text[1:2] in EXPANDED:
        return SOME_UNKNOWN + word.source
    # `-x{p,q}y` is two options that are not written out.
    return MatchedNames(word.text) if has_pattern or (word.text[:1] == "-" and BRACES.search(bare)) else word.text


def _read_unknown(word: ShellWord, bare: str, has_pattern: bool) -> str:
    if WITH_NUMBER.fullmatch(numbered := NUMBER.sub("0", word.source)):
        return numbered.replace('"', "")
    nested = "`" in word.source or "$(" in word.source
    whole = re.fullmatch('"[^"]*"', word.source) is not None
    single = (whole or (not nested and "$" not in bare)) and not LIST.search(word.source)
    if word.text == "$()" and word.source[:1] in "<>":  # a process substitution becomes the name of a pipe
        return "/dev/fd/63"
    if not single or "{" in bare or (has_pattern and word.text[:1] in ("-", "$", *EXPANDED)):
        return SOME_UNKNOWN + word.source
    if word.text[:1] in ("-", "$", "", *EXPANDED):
        return ONE_UNKNOWN + word.source
    return MatchedNames(word.text) if has_pattern else PartlyKnown(word.text)
