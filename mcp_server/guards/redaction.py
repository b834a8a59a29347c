"""Which parts of a text are secrets, and how does it read without them?

Removed are the exact values that menugate knows, in every common spelling, and anything that looks like a credential.
The second kind is narrow on purpose: source code often mentions passwords, and a redacted line cannot be edited.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast
from urllib.parse import quote, quote_plus

from msgspec import Struct

from mcp_server.guards.spill import cut_middle

REDACTED = "[redacted]"
MIN_SECRET_CHARS = 8
"""A shorter value would match in ordinary words."""
MIN_LINE_CHARS = 16
MAX_DEPTH = 200
MAX_SHAPE_CHARS = 1000
"""From the beginning of a credential, every pattern recognises it within so many characters."""


class Shape(Struct, frozen=True):
    """The pattern of one kind of credential. It is only tried if the text contains one of its needles.

    Patterns are linear: each repeat is bounded or possessive, and either consumes what it scanned or stops at the next
    place where it could begin.
    """

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    put: str | Callable[[re.Match[str]], str] = REDACTED
    any_case: bool = False


def _hide_assigned_value(found: re.Match[str]) -> str:
    """Hide the value of `name = value`, unless it reads like code that merely mentions the secret."""
    key, sign, value = found["key"], found["sign"], found["quoted"] or found["single"] or found["escaped"]
    if value is None:
        value = found["bare"]
        if _is_code(key, value, found["before"]):
            return found[0]
    if value.startswith(PLACEHOLDERS) or value.lower() in WORDS:
        return found[0]
    if key == "PWD" and value.startswith("/") and FOLDER_VARIABLE.search(found.string[: found.start()][-4:]):
        return found[0]
    start = found[0].rindex(value, len(key) + len(sign))
    return found[0][:start] + REDACTED + found[0][start + len(value) :]


def _is_code(key: str, value: str, before: str) -> bool:
    passing = key.lower().startswith("pass")
    if value.isdigit() and not passing:
        return True
    if key.isupper() or before:
        return False
    if not re.fullmatch(r"[A-Za-z_.]+", value):
        return re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_][A-Za-z_0-9]*)+", value) is not None
    return "_" in value or "." in value or not passing or CODE_WORD.search(value) is not None


FOLDER_VARIABLE = re.compile(r"(?:^|[^A-Za-z0-9_])(?:OLD)?$")
"""What stands before `PWD` where it is the shell's own variable; `DB_PWD` is a password."""
PLACEHOLDERS = (REDACTED, "$", "<", "{", "%(", "***", "...", "xxx", "your-", "your_", "YOUR_")
WORDS = {"none", "null", "true", "false", "undefined", "string", "required", "optional", "password", "secret", "token"}
CODE_WORD = re.compile(r"(?i)pass|secret|token|key|self|arg|conf|setting|str|env|input|param|value|field|none|any")
WORD = r"(?<![A-Za-z0-9])"
NAMES = (
    r"password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|authorization"
)

SHAPES = (
    Shape(("sk-",), re.compile(WORD + r"sk-(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20,}+")),
    Shape(("sk_", "rk_"), re.compile(WORD + r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+")),
    Shape(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re.compile(WORD + r"gh[pousr]_[A-Za-z0-9]{20,}+")),
    Shape(("github_pat_",), re.compile(WORD + r"github_pat_[A-Za-z0-9_]{20,}+")),
    Shape(("glpat-",), re.compile(WORD + r"glpat-[A-Za-z0-9_-]{16,}+")),
    Shape(("AKIA", "ASIA"), re.compile(WORD + r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])")),
    Shape(("AIza",), re.compile(WORD + r"AIza[A-Za-z0-9_-]{35,}+")),
    Shape(("ya29.",), re.compile(WORD + r"ya29\.[A-Za-z0-9_-]{10,}+")),
    Shape(("xox",), re.compile(WORD + r"xox[a-z]-[A-Za-z0-9-]{10,}+")),
    Shape(("npm_", "hf_", "pypi-"), re.compile(WORD + r"(?:npm_|hf_|pypi-)[A-Za-z0-9_-]{30,}+")),
    Shape(
        ("eyJ",), re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)?")
    ),
    Shape(
        ("PRIVATE KEY",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]++|-(?!----))*+-----END [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{20,}+)*+)"  # the end is missing
        ),
    ),
    Shape(
        ("bearer",),
        re.compile(r"(?i)\b(bearer[ \t]{1,8})(?=[A-Z._~+/=-]{0,80}[0-9]|[A-Z._~+/=-]{32})[A-Z0-9._~+/=-]{8,}+"),
        rf"\1{REDACTED}",
        any_case=True,
    ),
    Shape(
        ("authorization",),
        re.compile(
            r"(?i)(authorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?:basic|token|digest|negotiate|apikey)[ \t]{1,8})"
            r"[A-Z0-9._~+/=-]{6,}+"
        ),
        rf"\1{REDACTED}",
        any_case=True,
    ),
    Shape(
        ("://",),
        re.compile(r"(://(?:[^\s/:@\"'<>\[\]{}$?#]{0,128}:(?=[^$<{*])|(?=[^\s/:@?#]{16})))[^\s/\"'<>?#]{1,256}(?=@)"),
        rf"\1{REDACTED}",
    ),
    Shape(
        ("pass", "pwd", "secret", "token", "key", "credential", "authorization"),
        re.compile(
            rf"(?i)(?P<before>[?&]?)(?P<key>(?:{NAMES})(?:[_-][A-Z0-9_-]{{0,20}}+|[0-9]{{1,3}}|s)?)"
            r"(?P<sign>(?:\\?[\"'])?[ \t]{0,4}(?:=>|:=|[=:])[ \t]{0,4})"
            r"(?:\"(?P<quoted>(?:[^\"\\\n]|\\.){4,}+)\"?"
            r"|'(?P<single>(?:[^'\\\n]|\\.){4,}+)'?"
            r"|\\\"(?P<escaped>[^\"\\\n]{4,}+)"
            r"|(?P<bare>[^\s\"'\\&;,()\[\]{}<>|`]{6,}+)(?![(\[]))"
        ),
        _hide_assigned_value,
        any_case=True,
    ),
)
SECRET_KEY = re.compile(rf"(?i)(?:^|[_.\- ]|(?<=[a-z])(?=[A-Z]))(?:{NAMES}|apikey|accesskey|privatekey|cookie)s?$")
NOT_SECRET_KEY = re.compile(r"(?i)page|next|continu|progress|sync|csrf|max")


class Redactor:
    """Knows the values that must never be shown, and removes them from every outgoing text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms: tuple[str, ...] = ()
        self._exact: re.Pattern[str] | None = None
        self._reach = MAX_SHAPE_CHARS
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """From now on, remove these values as well. None is ever forgotten: a program may still use an old one."""
        forms = {form for secret in secrets for form in _build_spellings(secret)}
        if not forms <= set(self._forms):
            known = tuple(sorted(forms.union(self._forms), key=lambda form: (-len(form), form)))
            self._reach = max(MAX_SHAPE_CHARS, len(known[0]))
            # The forms last: another thread may be looking for them, and replaces what the pattern knows.
            self._exact = re.compile("|".join(map(re.escape, known)))
            self._forms = known

    def get_spellings(self) -> tuple[str, ...]:
        """Return every spelling of every value known by now; the same object until more are known."""
        return self._forms

    def redact_known_values(self, text: str) -> str:
        """Remove only values known to be secret. Lookalikes stay, because the text must still match the original."""
        for form in self._forms:
            if form in text:
                return self._exact.sub(REDACTED, text) if self._exact is not None else text
        return text

    def redact_beginning(self, text: str, most: int) -> str:
        """Return at most this many characters from the beginning, without secrets or the first half of one."""
        if len(text) > most:
            text = text[: most + self._reach]
        return self.redact(text)[:most]

    def split_at_secrets(self, text: str) -> Iterator[tuple[str, bool]]:
        """Split the text into parts, each flagged True if it is a known secret."""
        at = 0
        for found in self._exact.finditer(text) if self._exact is not None else ():
            if found.start() > at:
                yield text[at : found.start()], False
            yield found[0], True
            at = found.end()
        if at < len(text):
            yield text[at:], False

    def redact(self, text: str) -> str:
        text = self.redact_known_values(text)
        lower = text.lower()
        for shape in SHAPES:
            where = lower if shape.any_case else text
            for needle in shape.needles:
                if needle in where:
                    text = shape.pattern.sub(shape.put, text)
                    break
        return text

    def redact_value(self, value: Any, under_secret_key: bool = False, depth: int = 0) -> Any:
        """Return the same JSON without secrets: those inside its strings, and every value whose key marks it as one.
        `under_secret_key`: the key of this value does."""
        if isinstance(value, str):
            return REDACTED if under_secret_key and value else self.redact(value)
        if depth > MAX_DEPTH:
            return REDACTED if isinstance(value, Mapping | list | tuple) else value
        if isinstance(value, Mapping):
            return {
                self.redact(key) if isinstance(key, str) else key: self.redact_value(
                    inner, is_secret_key(key), depth + 1
                )
                for key, inner in cast(Mapping[Any, Any], value).items()
            }
        if isinstance(value, list | tuple):
            return [self.redact_value(item, under_secret_key, depth + 1) for item in cast(Iterable[Any], value)]
        return value

    def redact_and_cut(self, text: str, limit: int) -> str:
        """At most `limit` characters, without secrets, and without half a secret at a cut."""
        text = self.redact(text)
        return text if len(text) <= limit else cut_middle(text, limit)


def is_secret_key(key: Any) -> bool:
    """Does this key mark its value as a secret?"""
    return isinstance(key, str) and SECRET_KEY.search(key) is not None and NOT_SECRET_KEY.search(key) is None


def _build_spellings(secret: str) -> Iterator[str]:
    if len(secret) < MIN_SECRET_CHARS:
        return
    lines = [line.strip() for line in secret.splitlines()]
    parts = [secret] + [line for line in lines if len(line) >= MIN_LINE_CHARS and "-----" not in line] * (
        len(lines) > 1
    )
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        yield from (part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1])
        yield from (raw.hex(), raw.hex().upper())
        with_percent = (quote(part, safe="", errors="replace"), quote_plus(part, errors="replace"))
        yield from with_percent
        yield from (re.sub("%..", lambda code: code[0].lower(), form) for form in with_percent)
        yield from _build_base64_spellings(raw)


def _build_base64_spellings(raw: bytes) -> Iterator[str]:
    """Return the base64 characters that the secret alone determines, for each of the three offsets in a longer text."""
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + raw)
        start = (0, 2, 3)[shift]
        end = (shift + len(raw)) * 8 // 6
        core = whole[start:end].decode()
        yield from (core, core.replace("+", "-").replace("/", "_"))
