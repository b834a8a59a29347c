"""Which tool does what somebody asks for in words? Every tool ranked by BM25 over its name, texts, arguments and modes.

Words are compared by their stems. Words that mean nearly the same (menus/search_words.txt), abbreviations, compounds
and misspellings count as well, but for less. The same words give the same answer on every machine.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import mul
from typing import Any, TypeAlias, cast

from msgspec import Struct

from mcp_server.model.menus import Menus, Mode
from mcp_server.model.query import LONGEST, RUN, split_parts
from mcp_server.model.tools import Schema, Tool
from mcp_server.policy.search_words import STOP_WORDS, Related
from mcp_server.policy.stems import stem

HEADS: Mapping[str, float] = {"name": 3.0, "title": 2.0, "sentence": 1.5, "server": 1.0}
"""Where a tool says what it is for, and how much a word counts there."""
DETAILS: Mapping[str, float] = {"arguments": 1.0, "description": 0.7, "modes": 0.3}
SATURATION = 1.2
"""BM25's k1: how soon it stops mattering how often a word occurs."""
LENGTH = 0.5
"""BM25's b: how much less a word counts in a long text."""
RELATED_WEIGHT = 0.4
REPLACING_WEIGHT = 0.6
"""What a related word counts if no tool has the word itself."""
NEAR_WEIGHT = 0.8
"""What the right spelling of a misspelled or shortened word counts."""
COVERAGE = 0.3
"""How much of a score depends on how many of the words were found."""
MODE_WEIGHTS = (1.0, 0.3, 0.1)
"""What the best, the second and the third tool of a mode count for the mode."""
SHORTEST_ABBREVIATION = 3
MAX_LONGER = 3
"""What begins more words than these is no abbreviation."""
SHORTEST_MISSPELLED = 4
LONG_WORD = 8
"""From this length on two letters may be wrong; below it, one."""
MAX_WORDS = 40
MAX_DEPTH = 4
"""Arguments within arguments, as deep as anybody describes them."""

Scores: TypeAlias = Mapping[int, float]
"""By the number of a tool."""


class ToolMatch(Struct, frozen=True):
    tool: str
    score: float


class ToolIndex(Struct, frozen=True):
    """Every tool, ready to be ranked. Built once per policy, because that takes longer than a search."""

    tools: tuple[str, ...]
    everywhere: Mapping[str, Scores]
    """By stem, what it adds to the score of each tool that has it."""
    heads: Mapping[str, Scores]
    """The same, from where the tools say what they are for. Related words count only there: elsewhere there are too
    many of them."""
    vocabulary: "Vocabulary"
    related: Mapping[str, frozenset[str]]

    @classmethod
    def build(cls, tools: Iterable[Tool], menus: Menus, related: Iterable[Related] = ()) -> "ToolIndex":
        known = tuple(tools)
        texts = [collect_texts(tool, menus.find_modes_with(tool.name)) for tool in known]
        words = [{name: stem_words(text) for name, text in fields.items()} for fields in texts]
        written = {word for fields in texts for text in fields.values() for word in split_words(text)}
        return cls(
            tuple(tool.name for tool in known),
            _weigh_words(words, {**HEADS, **DETAILS}),
            _weigh_words(words, HEADS),
            Vocabulary.build(written - STOP_WORDS),
            build_related(related),
        )

    def rank(self, need: str) -> list[ToolMatch]:
        """Rank the tools that have a word of the need or one near it, best first, equals in the order given."""
        scores: defaultdict[int, float] = defaultdict(float)
        covered: Counter[int] = Counter()
        words = list(self._find_meanings(need))
        for meanings in words:
            for number, score in self._score_word(meanings).items():
                scores[number] += score
                covered[number] += 1
        for number in scores:
            scores[number] *= 1 - COVERAGE + COVERAGE * covered[number] / len(words)
        ranked = sorted(scores.items(), key=lambda pair: (-round(pair[1], 6), pair[0]))
        return [ToolMatch(self.tools[number], score) for number, score in ranked]

    def _score_word(self, meanings: Mapping[str, tuple[float, Mapping[str, Scores]]]) -> Scores:
        """Score one word of a need by the best of its meanings, so that no word counts twice."""
        best: dict[int, float] = {}
        for meaning, (weight, postings) in meanings.items():
            for number, score in postings.get(meaning, {}).items():
                best[number] = max(best.get(number, 0.0), weight * score)
        return best

    def _find_meanings(self, need: str) -> Iterator[Mapping[str, tuple[float, Mapping[str, Scores]]]]:
        """For each word, the stems that it may stand for, how much each counts, and where it is looked for."""
        for word in self._list_words(need):
            own = stem(word)
            known = {own: 1.0} if self._is_known(own) else dict.fromkeys(self._find_near(word, own), NEAR_WEIGHT)
            meanings: dict[str, tuple[float, Mapping[str, Scores]]] = {}
            for one, weight in known.items():
                share = weight * (RELATED_WEIGHT if one in self.everywhere else REPLACING_WEIGHT)
                for other in self.related.get(one, ()):
                    meanings[other] = max(meanings.get(other, (0.0, self.heads)), (share, self.heads), key=_get_weight)
            yield meanings | {one: (weight, self.everywhere) for one, weight in known.items()}

    def _list_words(self, need: str) -> list[str]:
        """The content words, and pairs that are one word somewhere: `drop down`, `check out`."""
        words = split_words(need)[:MAX_WORDS]
        compounds = [one + other for one, other in pairwise(words) if self._is_known(stem(one + other))]
        return list(dict.fromkeys([*(word for word in words if word not in STOP_WORDS), *compounds]))

    def _is_known(self, one: str) -> bool:
        return one in self.everywhere or one in self.related

    def _find_near(self, word: str, own: str) -> frozenset[str]:
        """Find the words meant by an unknown one: longer ones that begin with it, else those spelled much like it."""
        longer = frozenset(map(stem, self.vocabulary.find_longer(own) if len(own) >= SHORTEST_ABBREVIATION else ()))
        if 0 < len(longer) <= MAX_LONGER:
            return longer
        return frozenset(map(stem, self.vocabulary.find_nearest(word)))


def rank_modes(matches: Iterable[ToolMatch], menus: Menus) -> list[str]:
    """Rank the modes by the tools in them that match: by the best, and a little by the next ones."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for match in matches:
        for mode in menus.find_modes_with(match.tool):
            scores[mode.name].append(match.score)
    order = {mode.name: number for number, mode in enumerate(menus)}
    points = {name: sum(map(mul, sorted(best, reverse=True), MODE_WEIGHTS)) for name, best in scores.items()}
    return sorted(points, key=lambda name: (-round(points[name], 6), order[name]))


def _get_weight(meaning: tuple[float, Any]) -> float:
    return meaning[0]


def split_words(text: str) -> list[str]:
    """Split a text into lower-case words, and names into their parts; such a name is also a word of its own."""
    return [word for run in RUN.findall(text) for word in (*split_parts(run[:LONGEST]), run[:LONGEST].casefold())]


def stem_words(text: str) -> list[str]:
    return [stem(word) for word in split_words(text) if word not in STOP_WORDS]


def build_related(lines: Iterable[Related]) -> dict[str, frozenset[str]]:
    """By stem, the other stems that it may mean."""
    related: defaultdict[str, set[str]] = defaultdict(set)
    for words, meanings in lines:
        stems = {stem(word) for word in meanings}
        for word in words:
            related[stem(word)] |= stems - {stem(word)}
    return {one: frozenset(others) for one, others in related.items()}


def find_server(tool: Tool) -> str:
    """The server of a tool that an upstream offers; empty for other tools."""
    server, colon, _ = (tool.written or "").partition(":")
    return server if colon else ""


def collect_texts(tool: Tool, modes: Iterable[Mode]) -> dict[str, str]:
    """Collect the texts in which a tool's words stand."""
    sentence, _, rest = tool.description.partition(". ")
    server = find_server(tool)
    return {
        "name": (tool.written or "").partition(":")[2] if server else tool.name,
        "title": tool.title,
        "server": server,
        "sentence": sentence,
        "description": rest,
        "arguments": " ".join(describe_arguments(tool.arguments)),
        "modes": " ".join(f"{mode.name} {mode.title} {' '.join(mode.triggers)} {mode.when}" for mode in modes),
    }


def describe_arguments(schema: Schema, depth: int = 0) -> Iterator[str]:
    """Yield the names, descriptions and choices of a schema's arguments. A server may have written any JSON here."""
    properties = schema.get("properties")
    if depth < MAX_DEPTH and isinstance(properties, Mapping):
        for name, value in cast(Mapping[str, Any], properties).items():
            yield name
            if isinstance(value, Mapping):
                yield from _describe_value(cast(Schema, value), depth + 1)


def _describe_value(value: Schema, depth: int) -> Iterator[str]:
    if isinstance(text := value.get("description"), str):
        yield text
    if isinstance(choices := value.get("enum"), list | tuple):
        yield from (choice for choice in cast(Sequence[Any], choices) if isinstance(choice, str))
    yield from describe_arguments(value, depth)
    if isinstance(items := value.get("items"), Mapping):
        yield from describe_arguments(cast(Schema, items), depth)


def _weigh_words(documents: Sequence[Mapping[str, Sequence[str]]], weights: Mapping[str, float]) -> dict[str, Scores]:
    """Score every word of every tool by BM25 over weighted fields."""
    total = len(documents)
    average = {name: sum(len(document[name]) for document in documents) / max(total, 1) or 1.0 for name in weights}
    weighed: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for number, document in enumerate(documents):
        for name, weight in weights.items():
            share = weight / (1 - LENGTH + LENGTH * len(document[name]) / average[name])
            for word, times in Counter(document[name]).items():
                weighed[word][number] = weighed[word].get(number, 0.0) + share * times
    return {
        word: {number: _score_rarity(len(those), total) * sum_ / (sum_ + SATURATION) for number, sum_ in those.items()}
        for word, those in weighed.items()
    }


def _score_rarity(having: int, total: int) -> float:
    """BM25's idf: the fewer tools have a word, the more it says."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


class Vocabulary(Struct, frozen=True):
    """Every word as it is written somewhere, to recognize misspelled and shortened ones."""

    words: tuple[tuple[int, str], ...]
    """Each word after the set of its letters, which rules most words out at once."""

    @classmethod
    def build(cls, words: Iterable[str]) -> "Vocabulary":
        return cls(tuple((_collect_letters(word), word) for word in sorted(words)))

    def find_longer(self, start: str) -> tuple[str, ...]:
        return tuple(word for _, word in self.words if word.startswith(start))

    def find_nearest(self, wrong: str) -> tuple[str, ...]:
        """Return the words with the fewest wrong letters, if those are few enough for the length."""
        if len(wrong) < SHORTEST_MISSPELLED or not wrong.isalpha():
            return ()
        allowed, letters = (1 if len(wrong) < LONG_WORD else 2), _collect_letters(wrong)
        distances = [
            (count_wrong_letters(wrong, word), word)
            for mask, word in self.words
            if (mask ^ letters).bit_count() <= 2 * allowed
            and abs(len(word) - len(wrong)) <= allowed
            and len(word) >= SHORTEST_MISSPELLED
        ]
        least = min((distance for distance, _ in distances), default=0)
        return tuple(word for distance, word in distances if distance == least <= allowed)


def _collect_letters(word: str) -> int:
    """The letters of a word as a set of bits."""
    letters = 0
    for char in word:
        letters |= 1 << (ord(char) & 63)
    return letters


def count_wrong_letters(one: str, other: str) -> int:
    """Count letters that are missing, added, replaced, or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, char in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, there in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (char != there))
            if i > 1 and j > 1 and (char, one[i - 2]) == (other[j - 2], there):
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
