"""The search tasks of tests/tables/search_tasks.yaml, and which of them are hidden."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.yaml_text import load_yaml

TABLE: Mapping[str, Any] = load_yaml((Path(__file__).parents[1] / "tables" / "search_tasks.yaml").read_text())
SERVERS: Mapping[str, frozenset[str]] = {name: frozenset(server["tools"]) for name, server in TABLE["servers"].items()}


@dataclass(frozen=True, slots=True)
class SearchTask:
    need: str
    server: str
    tools: tuple[str, ...]
    """The right answers, each as `server:tool`."""
    modes: tuple[str, ...]
    source: str
    shares_words: bool


def read_task(row: Mapping[str, Any]) -> SearchTask:
    tools, modes = tuple(row["tools"]), tuple(row["modes"])
    return SearchTask(row["need"], row["server"], tools, modes, row["source"], row["shares_words"])


TASKS: tuple[SearchTask, ...] = tuple(map(read_task, TABLE["tasks"]))


def find_hidden(needs: Iterable[str]) -> frozenset[str]:
    """Every second need, in the order of their hashes: nobody chose which."""
    return frozenset(sorted(needs, key=lambda need: sha256(need.encode()).hexdigest())[1::2])
