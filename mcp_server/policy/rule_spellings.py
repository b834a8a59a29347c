"""Is this pattern written as a list, a sentence, a regular expression or a URL? It would match no call.

Finds `src/**, docs/**`, `git push:* or git pull:*`, `^src/.*`, `"git push":*`, `file:///etc/x` and `[a-z`, and suggests
the spelling that works. What a file name may contain (a comma, `and`) is a fault only next to a pattern.
"""

import re
from collections.abc import Iterator

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
"""Their second word is not a file, so `.*` after it is not a file extension."""


def describe_misspelling(text: str, command: bool) -> str | None:
    """Say what is wrong with text in brackets; None if it may be text to match."""
    checks = (
        _find_unseen_character,
        _find_several_rules,
        _find_curly_quotes,
        *(
            (_find_several_commands, _find_command_misspelling)
            if command
            else (_find_open_bracket, _find_label, _find_several_paths, _find_path_misspelling)
        ),
    )
    return next((fault for check in checks for fault in check(text.strip())), None)


def _suggest_pattern(text: str, instead: str) -> str:
    return f"{quote_text(text)} is not a pattern; did you mean {quote_text(instead)}?"


def _find_curly_quotes(text: str) -> Iterator[str]:
    if match := WRAPPED.fullmatch(text):
        pattern = quote_text(match["text"] + match["end"])
        yield f"use straight quotes, `\"` or `'`, or none; did you mean {pattern}?"


def _find_unseen_character(text: str) -> Iterator[str]:
    if match := UNSEEN.search(text):
        visible = quote_text(UNSEEN.sub("", text))
        yield f"it contains the invisible character U+{ord(match[0]):04X}; did you mean {visible}?"


def _find_several_rules(text: str) -> Iterator[str]:
    if match := SEVERAL.fullmatch(text):
        one, other = quote_text(match["one"]), quote_text(f"{match['tool']}({match['other']})")
        yield f"a rule names one tool; write a separate rule for {other}, and keep only {one} in this one"


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
    """Split a list of patterns; `{a,b}` is one pattern."""
    masked = re.sub(r"\{[^{}]*\}", lambda braces: "x" * len(braces[0]), text)
    parts, start = list[str](), 0
    for separator in BETWEEN.finditer(masked):
        parts.append(text[start : separator.start()])
        start = separator.end()
    return [*parts, text[start:]]


def _suggest_separate_rules(parts: list[str]) -> str:
    return f"a rule has one pattern; write a rule for each on its own line: {', '.join(map(quote_text, parts))}"


def _find_command_misspelling(text: str) -> Iterator[str]:
    words = text.split()
    if match := HALVED.fullmatch(text):
        yield _suggest_pattern(text, f"{match['text']}:*")
    elif re.search(r"\w:\*{2,}$", text):
        yield _suggest_pattern(text, text.rstrip("*") + "*")
    elif match := LINE_LABEL.fullmatch(text):
        yield _suggest_pattern(text, match["text"])
    elif (match := COLONS.fullmatch(text)) and match["program"] in SUBCOMMANDS and match["word"] != "*":
        yield _suggest_pattern(text, f"{match['program']} {match['word']}:*")
    elif text.startswith("^") or re.search(r"[\w-]\$$", text) or _is_any_ending(words):
        yield f"commands are not regular expressions; did you mean {quote_text(_format_command_prefix(text))}?"


def _is_any_ending(words: list[str]) -> bool:
    """True if `.*` at the end means "anything", not a file extension."""
    return words[-1].endswith(".*") and (len(words) == 1 or (len(words) == 2 and words[0] in SUBCOMMANDS))


def _format_command_prefix(text: str) -> str:
    return f"{re.sub(r'(?:[.]?[*]|[$]|:[*])+$', '', text.lstrip('^')).strip()}:*"


def _find_open_bracket(text: str) -> Iterator[str]:
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
        yield f"{quote_text(text)} is a URL; did you mean the path {quote_text('/' + text[5:].lstrip('/'))}?"
    elif match := LABEL.fullmatch(text):
        yield _suggest_pattern(text, match["text"])


def _find_path_misspelling(text: str) -> Iterator[str]:
    if (match := REGEX.fullmatch(text)) or text.startswith("^"):
        path_pattern = (
            (match["text"] if match else text)
            .removeprefix("^")
            .removesuffix("$")
            .replace("/.*", "/**")
            .replace(".*", "*")
        )
        yield f"paths are not regular expressions; did you mean {quote_text(path_pattern)}?"
    elif (match := EXCEPT.fullmatch(text)) and LOOKS_LIKE_A_PATH.search(match["text"]):
        path = quote_text(match["text"])
        yield f"a rule cannot have exceptions; write a rule for each path it should match ({path} matches only itself)"
