"""Are the tasks of tests/tables/search_tasks.yaml complete, and do half of them share no word with the tool's name?"""

import re
from collections import Counter

import pytest

from tests.upstreams.search_tasks import SERVERS, TABLE, TASKS, SearchTask, find_hidden

SEED_MODES = {"swe", "git", "data", "search", "library", "browser", "deploy", "ai"}
STOP_WORDS = frozenset(
    """
    a about after again all although an and any are as at be before but by can could did do does for from had has
    have he here his how i if in instead into is it its just let me my no none not now of off on once one only or other
    our out over own per she should since so some than that the their them then there these they this those to up was
    we were what when where which while who whom whose why will with without would you your
    """.split()  # noqa: SIM905  # one word a line would be a page
)
ENDINGS = re.compile("(s|es|ed|er|ers|ly|ions?|ings?|e|at(e|es|ed|ors?|ing|ions?))$")


def stem(word: str) -> str:
    """Cut off one ending, rather too much than too little: what it keeps apart are different words."""
    word = re.sub(r"ies$", "y", word)
    if ending := ENDINGS.search(word, 3):
        word = word[: ending.start()]
    word = re.sub(r"([^lsz])\1$", r"\1", word)
    return re.sub(r"y$", "i", word)


def content_stems(text: str) -> set[str]:
    """Those of the words of a need or of a name, snake_case, kebab-case and camelCase taken apart."""
    parts = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    words = re.findall(r"[a-z0-9]+", parts.lower())
    return {stem(word) for word in words if word not in STOP_WORDS}


def shared_stems(task: SearchTask) -> set[str]:
    names = " ".join(tool.partition(":")[2] for tool in task.tools)
    return content_stems(task.need) & content_stems(names)


@pytest.mark.parametrize(
    ("need", "name", "shared"),
    [
        ("moving two directories", "move_file", {"mov"}),
        ("fill in a form", "write_file", set[str]()),
        ("which entity is related to it", "create_relations", {"rel"}),
        ("the largest directories", "directoryTree", {"directori"}),
        ("wait for log messages", "toggle-simulated-logging", {"log"}),
        ("navigation to a page", "browser_navigate", {"navig"}),
        ("for the one with it", "browser_wait_for", set[str]()),
        ("what a web page says", "fetch", set[str]()),
    ],
)
def test_words_are_compared_by_their_stems(need: str, name: str, shared: set[str]) -> None:
    assert content_stems(need) & content_stems(name) == shared


def test_half_of_ninety_tasks_share_no_word_with_the_name_of_a_right_tool() -> None:
    wrong = {task.need: shared_stems(task) for task in TASKS if bool(shared_stems(task)) != task.shares_words}
    assert wrong == {}
    assert Counter(task.shares_words for task in TASKS) == {True: 45, False: 45}


def test_every_second_task_by_hash_is_hidden() -> None:
    needs = [task.need for task in TASKS]
    assert len(set(needs)) == 90
    assert len(find_hidden(needs)) == 45
    assert find_hidden(needs) == find_hidden(reversed(needs))
    # Their SHA-256 sums begin with ca97, 3e23, 2e7d and 18ac.
    assert find_hidden("abcd") == {"c", "a"}


def test_needs_are_short_and_written_once() -> None:
    assert [task.need for task in TASKS if not 3 <= len(task.need.split()) <= 15] == []
    spelled = Counter(" ".join(re.findall(r"\w+", task.need.lower())) for task in TASKS)
    assert [need for need, times in spelled.items() if times > 1] == []


def test_every_field_is_there_and_says_something_true() -> None:
    assert [row for row in TABLE["tasks"] if set(row) != set(SearchTask.__dataclass_fields__)] == []
    for task in TASKS:
        answers = [tuple(tool.split(":")) for tool in task.tools]
        assert answers[0][0] == task.server, task
        assert [tool for server, tool in answers if tool not in SERVERS[server]] == [], task
        assert set(task.modes) <= SEED_MODES, task
        assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull|blob)/\S+", task.source), task
        assert isinstance(task.shares_words, bool), task


def test_every_server_has_tasks() -> None:
    tasks = Counter(task.server for task in TASKS)
    assert set(tasks) == set(SERVERS)
    assert min(tasks.values()) >= 4
