"""Was a pattern meant, written as a list, a sentence, a regular expression or an address? No call would have that text.

`src/**, docs/**`, `git push:* or git pull:*`, `^src/.*`, `"git push":*`, `file:///etc/x`, `[a-z`: each with the
spelling that speaks. What a name can hold (a comma, `and`) is left alone unless what stands beside it is a pattern.
"""

import re
from collections.abc import Callable, Iterator

from mcp_server.model.text import CLOSING, OPENING, quoted

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


def misspelled(text: str, command: bool) -> str | None:
    """What is wrong with a bracket that was taken for a text to match; None where it can be meant so."""
    looks = (
        _unseen,
        _several_rules,
        _wrapped,
        *((_several_commands, _command) if command else (_open, _labelled, _several_paths, _path)),
    )
    return next((wrong for look in looks for wrong in look(text.strip())), None)


def _meant(text: str, instead: str) -> str:
    return f"{quoted(text)} is no pattern; did you mean {quoted(instead)}?"


def _wrapped(text: str) -> Iterator[str]:
    if found := WRAPPED.fullmatch(text):
        meant = quoted(found["text"] + found["end"])
        yield f"quotes are straight here, `\"` or `'`, or left out; did you mean {meant}?"


def _unseen(text: str) -> Iterator[str]:
    if found := UNSEEN.search(text):
        yield f"it holds U+{ord(found[0]):04X}, which nobody sees; did you mean {quoted(UNSEEN.sub('', text))}?"


def _several_rules(text: str) -> Iterator[str]:
    if found := SEVERAL.fullmatch(text):
        other = quoted(f"{found['tool']}({found['other']})")
        yield f"a rule is about one tool; write {other} as a rule of its own, and {quoted(found['one'])} in this one"


def _several_commands(text: str) -> Iterator[str]:
    if any(mark in text for mark in "\"'\\`") or "*" not in text:
        return
    parts = [part for part in BETWEEN.split(text) if part]
    programs = {part.split()[0] for part in parts}
    if len(parts) > 1 and (any(part.endswith(":*") for part in parts[:-1]) or len(programs) == 1):
        yield _one_each(parts)


def _several_paths(text: str) -> Iterator[str]:
    parts = [part.strip("\"'") for part in _split_outside_braces(text)]
    if len(parts) < 2 or any(not part or re.search(r"\s", part) for part in parts):
        return
    wild = any(mark in part for part in parts for mark in "*?")
    shaped = all(LOOKS_LIKE_A_PATH.search(part) for part in parts)
    if (wild and (shaped or SPACED.search(text))) or all(part.startswith(".") for part in parts):
        yield _one_each(parts)


def _split_outside_braces(text: str) -> list[str]:
    """`{a,b}` is one pattern."""
    kept = re.sub(r"\{[^{}]*\}", lambda found: "x" * len(found[0]), text)
    parts, at = list[str](), 0
    for found in BETWEEN.finditer(kept):
        parts.append(text[at : found.start()])
        at = found.end()
    return [*parts, text[at:]]


def _one_each(parts: list[str]) -> str:
    return f"a rule has one pattern; write a rule for each on a line of its own: {', '.join(map(quoted, parts))}"


def _command(text: str) -> Iterator[str]:
    words = text.split()
    if found := HALVED.fullmatch(text):
        yield _meant(text, f"{found['text']}:*")
    elif re.search(r"\w:\*{2,}$", text):
        yield _meant(text, text.rstrip("*") + "*")
    elif found := LINE_LABEL.fullmatch(text):
        yield _meant(text, found["text"])
    elif (found := COLONS.fullmatch(text)) and found["program"] in SUBCOMMANDS and found["word"] != "*":
        yield _meant(text, f"{found['program']} {found['word']}:*")
    elif text.startswith("^") or re.search(r"[\w-]\$$", text) or _any(words):
        yield f"a command is no regular expression here; did you mean {quoted(_begun(text))}?"


def _any(words: list[str]) -> bool:
    """Is `.*` at the end meant for anything, and no ending of a file's name?"""
    return words[-1].endswith(".*") and (len(words) == 1 or (len(words) == 2 and words[0] in SUBCOMMANDS))


def _begun(text: str) -> str:
    return f"{re.sub(r'(?:[.]?[*]|[$]|:[*])+$', '', text.lstrip('^')).strip()}:*"


def _open(text: str) -> Iterator[str]:
    """A bracket that nothing closes."""
    if any(mark in text for mark in "\"'\\"):
        return
    if text.count("(") > text.count(")"):
        instead = text[1:] if text.startswith("(") else f"{text})"
        yield f"a bracket is not closed; did you mean {quoted(instead)}?"
    for start, end in ("[]", "{}"):
        if start in text and end not in text[text.rindex(start) :]:
            yield f"`{start}` is not closed; did you mean {quoted(text + end)}?"


def _labelled(text: str) -> Iterator[str]:
    if re.match(r"file:/", text, re.IGNORECASE):
        yield f"{quoted(text)} is an address; did you mean the path {quoted('/' + text[5:].lstrip('/'))}?"
    elif found := LABEL.fullmatch(text):
        yield _meant(text, found["text"])


def _path(text: str) -> Iterator[str]:
    if (found := REGEX.fullmatch(text)) or text.startswith("^"):
        plain = (
            (found["text"] if found else text)
            .removeprefix("^")
            .removesuffix("$")
            .replace("/.*", "/**")
            .replace(".*", "*")
        )
        yield f"a path is no regular expression here; did you mean {quoted(plain)}?"
    elif (found := EXCEPT.fullmatch(text)) and LOOKS_LIKE_A_PATH.search(found["text"]):
        meant = quoted(found["text"])
        yield f"a rule has no exceptions: name what it is about, a rule for each; {meant} alone is about that path"
