"""How well does a ranking find the tools of the search tasks? And plain BM25, to compare with."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from mcp_server.model.tools import Tool
from tests.upstreams.search_tasks import TASKS, SearchTask, find_hidden

HIDDEN = find_hidden(task.need for task in TASKS)
OPEN_TASKS = tuple(task for task in TASKS if task.need not in HIDDEN)
HIDDEN_TASKS = tuple(task for task in TASKS if task.need in HIDDEN)


@dataclass(frozen=True, slots=True)
class SearchScore:
    """Shares of the tasks. It prints no task: some are hidden."""

    first: float
    three: float
    five: float


def score_ranking(rank: Callable[[str], Sequence[str]], tasks: Collection[SearchTask]) -> SearchScore:
    """Score a ranking of tools, each as `server:tool`."""

    def share(places: int) -> float:
        return sum(not set(task.tools).isdisjoint(rank(task.need)[:places]) for task in tasks) / len(tasks)

    return SearchScore(share(1), share(3), share(5))


class PlainRanking:
    """BM25 as it stands in textbooks, over all of a tool's texts as one, words as they are written."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.names = [tool.written or tool.name for tool in tools]
        self.texts = [Counter(split_plainly(describe_plainly(tool))) for tool in tools]
        self.average = sum(text.total() for text in self.texts) / len(self.texts)
        self.having = Counter(word for text in self.texts for word in text)

    def rank(self, need: str) -> list[str]:
        scores = [sum(self._score(word, text) for word in split_plainly(need)) for text in self.texts]
        order = sorted(range(len(scores)), key=lambda number: -scores[number])
        return [self.names[number] for number in order if scores[number]]

    def _score(self, word: str, text: Counter[str]) -> float:
        having, total = self.having[word], len(self.texts)
        rarity = math.log(1 + (total - having + 0.5) / (having + 0.5))
        return rarity * text[word] * 2.2 / (text[word] + 1.2 * (0.25 + 0.75 * text.total() / self.average))


def describe_plainly(tool: Tool) -> str:
    return f"{tool.written} {tool.title} {tool.description} {' '.join(tool.arguments.get('properties', {}))}"


def split_plainly(text: str) -> list[str]:
    return re.findall("[a-z0-9]+", text.lower())
