"""Does a server's description of itself try to steer a model? Warnings before you approve it, each with its place.

This looks only at words. It never says that a server is safe: a harmless description says nothing about what the
server does. It uses no network, no model and no clock, and takes time linear in the length of the text.

To add a pattern: bound every repeat, begin it with a word that is rare, and add rows to
tests/tables/upstream_texts.yaml, at least one that it finds and one like it that is harmless.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate

from msgspec import Struct

from mcp_server.model.files import is_secret
from mcp_server.model.text import INVISIBLE
from mcp_server.model.upstreams import Catalogue
from mcp_server.policy.upstream_texts import MAX_CHARS, UpstreamText, list_texts, read_hidden_words

MAX_FINDINGS = 200
MAX_WORDS_CHARS = 160
MAX_NAMED = 5
"""Different hidden characters that a finding names."""


class FindingKind(StrEnum):
    """What a text seems to do. The value is how a finding begins."""

    HIDDEN = "hidden characters"
    ORDER = "orders to the model"
    SECRECY = "keeping something from the user"
    SECRET = "paths of secrets"  # noqa: S105  # what is found, not a password
    OTHERS = "words about other servers' tools"
    UNCHECKED = "not checked"


class CatalogueFinding(Struct, frozen=True):
    kind: FindingKind
    place: str
    """Such as `tool add: inputSchema.properties.note.description`; two places if the words go over from one to the
    next."""
    words: str
    """What stands there, as the server wrote it."""


class OtherTools(Struct, frozen=True):
    """What else is mounted: names that a server has no reason to mention."""

    tools: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Stream:
    """Folded texts, one after the other, and where each begins."""

    texts: Sequence[UpstreamText]
    text: str
    starts: Sequence[int] = field(repr=False)


class SteeringPhrase(Struct, frozen=True):
    """A pattern, which is only tried if the text contains one of its needles: most texts contain none."""

    needles: tuple[str, ...]
    pattern: re.Pattern[str]


def begin_with(words: str, rest: str, before: str = "") -> SteeringPhrase:
    """Build a phrase that begins with one of these words, separated by `|`."""
    return SteeringPhrase(tuple(words.split("|")), re.compile(rf"{before}\b(?:{words}){rest}"))


def contain_one(needles: str, pattern: str) -> SteeringPhrase:
    return SteeringPhrase(tuple(needles.split()), re.compile(pattern))


S = r"[\s,:;.\"'()\[\]-]{1,12}"
"""Between two words: more than a blank, so that a line break or a dash does not hide them."""
NEAR = r"[^\n]{0,60}?"
SENTENCE = r"[^\n.]{0,60}?"
PEOPLE = "the user|user|users|human|person|customer|operator|anyone|anybody|them"
USER = rf"(?:the )?(?:{PEOPLE})\b"
NOT = "do not|don't|don’t|dont|never|must not|mustn't|should not|shouldn't|avoid|without"
TELL = (
    "tell|telling|mention|mentioning|inform|informing|notify|notifying|reveal|revealing|disclose|disclosing|alert|"
    "alerting|explain|explaining|report|reporting"
)
PATTERNS: Mapping[FindingKind, Sequence[SteeringPhrase]] = {
    FindingKind.HIDDEN: (
        contain_one("<!--", "<!--"),
        SteeringPhrase(
            (" " * 20, "\t" * 20, "\xa0" * 20, "\u3000" * 20), re.compile(r"[ \t\xa0\u2000-\u200a\u3000]{80}")
        ),
        SteeringPhrase(("\n\n\n\n\n", "\n \n \n", "\n\t\n\t\n"), re.compile(r"\n\s{40}")),
        SteeringPhrase(("\x1b",), re.compile(r"\x1b[\[\]()#P^_]")),
    ),
    FindingKind.ORDER: (
        begin_with(
            "ignore|disregard|forget|override|bypass",
            rf"{S}(?:(?:all|any|the|your|my|these|those|of|every){S}){{0,3}}"
            rf"(?:(?:previous|prior|above|earlier|preceding|other|existing|system|safety){S}){{1,2}}"
            r"(?:instruction|rule|prompt|guideline|direction|message|context|constraint|polic|restriction)",
        ),
        contain_one(
            "<", r"<\s{0,4}/?\s{0,4}(?:important|system|secret|instructions?|critical|admin|override|hidden|urgent)\b"
        ),
        contain_one("[inst [/inst [sys", r"\[/?(?:inst|system|sys)\]"),
        contain_one("<|im_ <|system <|user <|assistant <|endoftext <<sys>>", r"<\|[a-z_]{4,12}|<<sys>>"),
        SteeringPhrase(
            ("system:", "system :", "assistant:", "developer:", "prompt:", "message:"),
            re.compile(r"(?:^|\n)[#\s]{0,8}(?:system|assistant|developer)(?: prompt| message)?\s{0,4}:[^/]"),
        ),
        SteeringPhrase(
            ("system prompt",),
            re.compile(
                rf"\b(?:reveal|print|output|repeat|disclose|leak|send|include|reproduce){S}{NEAR}\bsystem prompt"
            ),
        ),
        begin_with(
            "before|prior to|when|whenever|after",
            rf"{S}(?:you{S})?(?:use|using|call|calling|invoke|invoking|run|running){S}"
            rf"(?:this|any|the|other|another|every){S}{NEAR}"
            rf"\b(?:read|open|cat|fetch|load|send|list|retrieve|collect|upload|forward|copy){S}"
            r"[^\n]{0,60}(?:\.\w{2,5}\b|[~/]|file\b|contents?\b|conversation|history|secret|credential|password|token)",
        ),
        begin_with(
            "pass|put|include|send|add|provide|append|attach|paste|forward|copy",
            rf"{S}{NEAR}(?:conversation|chat history|system prompt|(?:previous|all|prior) messages|message history|"
            rf"credentials|passwords|private keys?|api keys?|secrets)\b{NEAR}\b(?:in|as|into|to|with|through|via)\b",
            before="(?<!never )(?<!not )(?<!n't )",
        ),
        begin_with(
            "otherwise|or else",
            rf"{S}(?:the|this|your|my){S}(?:tool|application|app|server|system|user){S}"
            r"[^\n]{0,40}?(?:not work|crash|break|fail|lose|delete|block|lock)",
        ),
        begin_with("you are now|you are no longer", S),
        begin_with("this tool|this message|this text", r" (?:overrides|supersedes|takes precedence over)\b"),
    ),
    FindingKind.SECRECY: (
        begin_with(NOT, rf"{S}(?:ever{S})?(?:{TELL}){S}{SENTENCE}\b{USER}"),
        begin_with(
            "without",
            rf"{S}(?:the user|user|their|human|his|her|asking|letting|any){S}{SENTENCE}"
            r"(?:knowledge|consent|noticing|permission|approval|know\b|knowing|being aware|confirmation)",
        ),
        begin_with(
            PEOPLE,
            rf"{S}(?:must|should|may|can|does|do|will){S}(?:not|never){S}(?:need{S}to{S})?"
            r"(?:know|see|notice|be told|be aware|be informed|learn|find out)",
        ),
        begin_with("hide|hidden|conceal|keep|secret", rf"{S}{NEAR}\bfrom{S}{USER}"),
        begin_with("keep", rf"{S}(?:this|it|that|these){S}(?:a{S})?(?:secret|hidden|confidential|quiet)\b"),
        begin_with(
            "silently|secretly|covertly|quietly|discreetly",
            rf"{S}(?:\w{{1,20}}{S}){{0,2}}"
            r"(?:read|send|copy|forward|include|call|use|run|execute|upload|collect|add|append|exfiltrate|email)\b",
        ),
    ),
    FindingKind.SECRET: (
        contain_one(
            ".env .netrc .pgpass .npmrc .pypirc .git-cred .htpasswd _history",
            r"(?<![\w.])\.(?:env|netrc|pgpass|npmrc|pypirc|git-credentials|htpasswd|(?:bash|zsh)_history)\b(?!\.)",
        ),
        contain_one("id_", r"(?<![a-z0-9])id_(?:rsa|dsa|ecdsa|ed25519)\b"),
        contain_one("/etc/ /environ", r"/etc/(?:passwd|shadow|sudoers)\b|/proc/(?:self|\d{1,9})/environ"),
        contain_one(
            "mcp.json mcp_ desktop_config.json .claude.json menugate.yaml",
            r"\bmcp(?:_config|_settings)?\.json\b|claude_desktop_config\.json|\.claude\.json|\bmenugate\.yaml\b",
        ),
        contain_one("/. ~.", r"[/~]\.(?:cursor|claude|codeium|codex|gemini|continue|vscode)/"),
        contain_one(
            "wallet.dat login.keychain cookies.sqlite logins.json",
            r"\b(?:wallet\.dat|login\.keychain|cookies\.sqlite|logins\.json)\b",
        ),
    ),
    FindingKind.OTHERS: (
        begin_with(
            "before|after|instead of|in place of|rather than",
            rf"{S}(?:using{S}|calling{S}|use{S}of{S})?(?:any|all|every|the){S}(?:other|another){S}(?:mcp{S})?"
            r"(?:tools?|servers?|functions?)\b",
        ),
        begin_with(
            "do not|don't|never|stop|avoid",
            rf"{S}(?:use|using|call|calling|invoke|trust|trusting){S}"
            rf"(?:any|the|all|all the){S}(?:other|another){S}(?:mcp{S})?(?:tools?|servers?)\b",
        ),
        begin_with("other|another|every|all", rf"{S}mcp{S}servers?\b"),
        SteeringPhrase(
            ("tool", "server", "mcp"),
            re.compile(
                rf"\b(?:when|whenever|if){S}(?:the{S})?[\w.-]{{2,40}}{S}(?:tool|server|mcp){S}"
                rf"(?:from|of|in|on){S}(?:another|other|a different){S}"
            ),
        ),
        begin_with(
            "change|replace|modify|redirect|swap",
            rf"{S}(?:the{S})?(?:recipient|receiver|payee|bcc)\b{NEAR}\b(?:to|with)\b",
        ),
    ),
    FindingKind.UNCHECKED: (),
}
HIDDEN = re.compile(f"[{INVISIBLE}]")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
DIRECTION_MARKS = "\u200e\u200f\u061c"
"""What a text in such a script needs."""
PATH = re.compile(r"(?<![\w./~-])(?:[a-z]:|~|\$\w{1,20}|%\w{1,20}%)?[\w.@-]{0,60}(?:[/\\]{1,2}[\w.@~-]{1,60}){1,12}")
DISTINCT_NAME = re.compile(r"[\w.-]*[a-z0-9][_-][a-z0-9][\w.-]*|[\w.-]{10,}", re.IGNORECASE)
"""Names that are not everyday words."""
IDENTIFIER = re.compile(r"[a-z0-9][\w.-]{2,63}")


def check_catalogue(catalogue: Catalogue, others: OtherTools | None = None) -> tuple[CatalogueFinding, ...]:
    """Return what a person should read before they approve this server. Nothing found does not mean that it is safe."""
    texts, unchecked = _take_texts(catalogue)
    foreign = _list_foreign_names(catalogue, others or OtherTools())
    findings = [*unchecked]
    for text in texts:
        findings += _find_hidden(text)
        findings += _find_in_text(text, foreign)
    findings += _find_across(texts)
    unique = tuple(dict.fromkeys(findings))
    if len(unique) > MAX_FINDINGS:
        more = CatalogueFinding(FindingKind.UNCHECKED, "all", f"{len(unique) - MAX_FINDINGS:,} more findings")
        return (*unique[:MAX_FINDINGS], more)
    return unique


def _take_texts(catalogue: Catalogue) -> tuple[list[UpstreamText], list[CatalogueFinding]]:
    texts, length = list[UpstreamText](), 0
    for text in list_texts(catalogue):
        length += len(text.text)
        if length > MAX_CHARS:
            words = f"everything from here on: the texts have more than {MAX_CHARS:,} characters"
            return texts, [CatalogueFinding(FindingKind.UNCHECKED, text.place, words)]
        texts.append(text)
    return texts, []


def _find_hidden(text: UpstreamText) -> Iterator[CatalogueFinding]:
    if text.text.isascii() and not CONTROL.search(text.text):
        return
    marks = DIRECTION_MARKS if RIGHT_TO_LEFT.search(text.text) else ""
    hidden = [sign for sign in HIDDEN.findall(text.text) if sign not in marks] + CONTROL.findall(text.text)
    if not hidden:
        return
    names = [f"U+{ord(sign):04X}" for sign in dict.fromkeys(hidden)]
    more = f" and {len(names) - MAX_NAMED} others" if len(names) > MAX_NAMED else ""
    words = f"{len(hidden):,} characters that cannot be seen: {', '.join(names[:MAX_NAMED])}{more}"
    if spelled := read_hidden_words(text.text):
        words += f", which spell: {spelled[:MAX_WORDS_CHARS]}"
    yield CatalogueFinding(FindingKind.HIDDEN, text.place, words)


def _find_in_text(text: UpstreamText, foreign: frozenset[str]) -> Iterator[CatalogueFinding]:
    folded = text.plain
    for kind, pattern in _choose_patterns(folded):
        if match := pattern.search(folded):
            yield CatalogueFinding(kind, text.place, _quote(text, match.start(), match.end()))
    for match in PATH.finditer(folded):
        if is_secret(match[0].replace("\\", "/")) or ("/." in match[0] and is_secret(match[0].rpartition("/")[0])):
            yield CatalogueFinding(FindingKind.SECRET, text.place, _quote(text, match.start(), match.end()))
            break
    if foreign:
        named = (match for match in IDENTIFIER.finditer(folded) if match[0].rstrip(".-") in foreign)
        if (match := next(named, None)) is not None:
            yield CatalogueFinding(FindingKind.OTHERS, text.place, _quote(text, match.start(), match.end()))


def _choose_patterns(folded: str) -> Iterator[tuple[FindingKind, re.Pattern[str]]]:
    for kind, phrases in PATTERNS.items():
        for phrase in phrases:
            if any(needle in folded for needle in phrase.needles):
                yield kind, phrase.pattern


def _list_foreign_names(catalogue: Catalogue, others: OtherTools) -> frozenset[str]:
    """The other servers' names that are no everyday words, without this server's own."""
    own = {str(tool.get("name", "")).lower() for tool in catalogue.tools}
    own.add(str(catalogue.server.get("name", "")).lower())
    names = {name.lower() for name in (*others.tools, *others.servers) if DISTINCT_NAME.fullmatch(name)}
    return frozenset(names - own)


def _find_across(texts: Sequence[UpstreamText]) -> Iterator[CatalogueFinding]:
    """Find what is spread over several texts, each of which is harmless by itself."""
    descriptions = [text for text in texts if text.place.endswith(": description")]
    for chosen in (texts, descriptions):
        for joint in (" ", ""):
            stream = _join(chosen, joint)
            for kind, pattern in _choose_patterns(stream.text):
                yield from _find_crossing(stream, kind, pattern)


def _join(texts: Sequence[UpstreamText], joint: str) -> _Stream:
    folded = [text.plain for text in texts]
    starts = list(accumulate((len(text) + len(joint) for text in folded), initial=0))
    return _Stream(texts, joint.join(folded), starts[:-1])


def _find_crossing(stream: _Stream, kind: FindingKind, pattern: re.Pattern[str]) -> Iterator[CatalogueFinding]:
    for match in pattern.finditer(stream.text):
        first = bisect_right(stream.starts, match.start()) - 1
        last = bisect_right(stream.starts, max(match.end() - 1, match.start())) - 1
        if first != last:
            place = f"{stream.texts[first].place} + {stream.texts[last].place}"
            yield CatalogueFinding(kind, place, _shorten(match[0]))
            return


def _quote(text: UpstreamText, start: int, end: int) -> str:
    return _shorten(text.get_original(start, end))


def _shorten(words: str) -> str:
    flat = " ".join(words.split())
    return flat if len(flat) <= MAX_WORDS_CHARS else flat[: MAX_WORDS_CHARS - 1] + "…"
