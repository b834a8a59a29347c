"""Was a pattern meant, written as a list, a sentence, a regular expression or an address? No call would have that text.

`src/**, docs/**`, `git push:* or git pull:*`, `^src/.*`, `"git push":*`, `file:///etc/x`, `[a-z`: each with the
spelling that speaks. What a name can hold (a comma, `and`) is left alone unless what stands beside it is a pattern.
"""

import re
from collections.abc import Callable, Iterator

from mcp_server.model.text import CLOSING, OPENING, quote_text

BETWEEN = re.compile(r"\s*(?:[,;|]+|&&?)\s*|\s+(?:or|and|und|oder)\s+", re.IGNORECASE)
SPACED = re.compile(r"[,;|&]\s")
LOOKS_LIKE_A_PATH = re.compile(r"[*?/]|^\.|\.\w+$")
WRAPPED = re.compile(rf"[{OPENING}](?P<text>[^{OPENING}]+)[{CLOSING}](?P<end>(?::\*)?)")
HALVED = re.compile(r"""(["'])(?P<text>[^"'/]*\s[^"'/]*)\1(?P<end>:\*|\s*\*)""")
LABEL = re.compile(
    r"(?P<label>(?:file_?|dir_?)?paths?|files?|dir(?:ectory)?|folder|glob|pattern):\s*(?=[^\s*])(?P<text>.+)"
)
LINE_LABEL = re.compile(r"(?:command|cmd|line):\s+(?P<text>\S.*)")
EXCEPT = re.compile(
    r"(?:(?:all|any|anything|everything)\s+)?(?:except|but|excluding|not)\s+(?:for\s+)?(?P<text>\S+)", re.I
)
UNSEEN = re.compile("[\u200b\u2060\ufeff]")
SEVERAL = re.compile(
    r"(?P<one>[^()]*)\)\s*(?:and|or|&&?|\|\|?|[,;])\s*(?P<tool>[\w:*-]+)\((?P<other>[^()]*)", re.IGNORECASE
)
COLONS = re.compile(r"(?P<program>[\w-]+):(?P<word>[\w-]+)(?P<end>:\*)?")
REGEX = re.compile(r"(?:(?:re|regexp?):\s*|/(?=\^))(?P<text>.+?)(?<=[^/])/?")
WITH_SUBCOMMANDS = """
git npm pnpm yarn pip uv cargo go docker podman kubectl helm terraform gh aws gcloud apt brew systemctl
"""
SUBCOMMANDS = frozenset(WITH_SUBCOMMANDS.split())
"""Their second word is no file, so that `.*` behind it is no ending."""
Look = Callable[[str], Iterator[str]]


def describe_misspelling(text: str, command: bool) -> str | None:
    """What is wrong with a bracket that was taken for a text to match; None where it can be meant so."""
    looks = (
        _find_unseen_character,
        _find_several_rules,
        _find_curly_quotes,
        *(
            (_find_several_commands, _find_command_misspelling)
            if command
            else (_find_open_bracket, _find_label, _find_several_paths, _find_path_misspelling)
        ),
    )
    return next((wrong for look in looks for wrong in look(text.strip())), None)


def _suggest_pattern(text: str, instead: str) -> str:
    return f"{quote_text(text)} is no pattern; did you mean {quote_text(instead)}?"


def _find_curly_quotes(text: str) -> Iterator[str]:
    if found := WRAPPED.fullmatch(text):
        meant = quote_text(found["text"] + found["end"])
        yield f"quotes are straight here, `\"` or `'`, or left out; did you mean {meant}?"


def _find_unseen_character(text: str) -> Iterator[str]:
    if found := UNSEEN.search(text):
        yield f"it holds U+{ord(found[0]):04X}, which nobody sees; did you mean {quote_text(UNSEEN.sub('', text))}?"


def _find_several_rules(text: str) -> Iterator[str]:
    if found := SEVERAL.fullmatch(text):
        other = quote_text(f"{found['tool']}({found['other']})")
        one = quote_text(found["one"])
        yield f"a rule is about one tool; write {other} as a rule of its own, and {one} in this one"


def _find_several_commands(text: str) -> Iterator[str]:
    if any(mark in text for mark in "\"'\\`") or "*" not in text:
        return
    parts = [part for part in BETWEEN.split(text) if part]
    programs = {part.split()[0] for part in parts}
    if len(parts) > 1 and (any(part.endswith(":*") for part in parts[:-1]) or len(programs) == 1):
        yield _suggest_separate_rules(parts)


def _find_several_paths(text: str) -> Iterator[str]:
    parts = [part.strip("\"'") for part in _split_outside_braces(text)]
    if len(parts) < 2 or any(not part or re.search(r"\s", part) for part in parts):
        return
    wild = any(mark in part for part in parts for mark in "*?")
    shaped = all(LOOKS_LIKE_A_PATH.search(part) for part in parts)
    if (wild and (shaped or SPACED.search(text))) or all(part.startswith(".") for part in parts):
        yield _suggest_separate_rules(parts)


def _split_outside_braces(text: str) -> list[str]:
    """`{a,b}` is one pattern."""
    kept = re.sub(r"\{[^{}]*\}", lambda found: "x" * len(found[0]), text)
    parts, at = list[str](), 0
    for found in BETWEEN.finditer(kept):
        parts.append(text[at : found.start()])
        at = found.end()
    return [*parts, text[at:]]


def _suggest_separate_rules(parts: list[str]) -> str:
    return f"a rule has one pattern; write a rule for each on a line of its own: {', '.join(map(quote_text, parts))}"


def _find_command_misspelling(text: str) -> Iterator[str]:
    words = text.split()
    if found := HALVED.fullmatch(text):
        yield _suggest_pattern(text, f"{found['text']}:*")
    elif re.search(r"\w:\*{2,}$", text):
        yield _suggest_pattern(text, text.rstrip("*") + "*")
    elif found := LINE_LABEL.fullmatch(text):
        yield _suggest_pattern(text, found["text"])
    elif (found := COLONS.fullmatch(text)) and found["program"] in SUBCOMMANDS and found["word"] != "*":
        yield _suggest_pattern(text, f"{found['program']} {found['word']}:*")
    elif text.startswith("^") or re.search(r"[\w-]\$$", text) or _is_any_ending(words):
        yield f"a command is no regular expression here; did you mean {quote_text(_format_command_prefix(text))}?"


def _is_any_ending(words: list[str]) -> bool:
    """Is `.*` at the end meant for anything, and no ending of a file's name?"""
    return words[-1].endswith(".*") and (len(words) == 1 or (len(words) == 2 and words[0] in SUBCOMMANDS))


def _format_command_prefix(text: str) -> str:
    return f"{re.sub(r'(?:[.]?[*]|[$]|:[*])+$', '', text.lstrip('^')).strip()}:*"


def _find_open_bracket(text: str) -> Iterator[str]:
    """A bracket that nothing closes."""
    if any(mark in text for mark in "\"'\\"):
        return
    if text.count("(") > text.count(")"):
        instead = text[1:] if text.startswith("(") else f"{text})"
        yield f"a bracket is not closed; did you mean {quote_text(instead)}?"
    for start, end in ("[]", "{}"):
        if start in text and end not in text[text.rindex(start) :]:
            yield f"`{start}` is not closed; did you mean {quote_text(text + end)}?"


def _find_label(text: str) -> Iterator[str]:
    if re.match(r"file:/", text, re.IGNORECASE):
        yield f"{quote_text(text)} is an address; did you mean the path {quote_text('/' + text[5:].lstrip('/'))}?"
    elif found := LABEL.fullmatch(text):
        yield _suggest_pattern(text, found["text"])


def _find_path_misspelling(text: str) -> Iterator[str]:
    if (found := REGEX.fullmatch(text)) or text.startswith("^"):
        plain = (
            (found["text"] if found else text)
            .removeprefix("^")
            .removesuffix("$")
            .replace("/.*", "/**")
            .replace(".*", "*")
        )
        yield f"a path is no regular expression here; did you mean {quote_text(plain)}?"
    elif (found := EXCEPT.fullmatch(text)) and LOOKS_LIKE_A_PATH.search(found["text"]):
        meant = quote_text(found["text"])
        yield f"a rule has no exceptions: name what it is about, a rule for each; {meant} alone is about that path"
